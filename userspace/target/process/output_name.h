/* SPDX-License-Identifier: Apache-2.0 */
/* The name of a capture's file, so that each rank of a job gets its own from one command line. */
#ifndef WAFFLE_TARGET_PROCESS_OUTPUT_NAME_H
#define WAFFLE_TARGET_PROCESS_OUTPUT_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

/*
 * Replaces in `pattern`: %h by the name of the host, %p by `pid`, %r by the rank of this process or
 * else of the process `pid`, and %% by %. In that second case the process has chosen a part of the
 * name, and *target_rank is its rank, else PROCESS_RANK_NONE: the file must be a new one, since the
 * caller may be root and the process anybody's. `option` begins the messages: "-o". Returns -EINVAL
 * for another letter, -ENODATA if the rank is unknown, and -ENAMETOOLONG, with a message.
 */
int output_name_expand(char *path, size_t size, const char *option, const char *pattern, pid_t pid,
		       uint32_t *target_rank, struct error *err);

/* Whether a pattern has the pid, so that each process has a file of its own. */
bool output_name_has_pid(const char *pattern);

/* Replaces in the name of a host what would lead to another folder, or a terminal would obey. */
void output_name_clean(char *text);

#endif
