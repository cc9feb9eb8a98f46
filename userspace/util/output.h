/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that appears whole or not at all: written beside its final name (O_EXCL, mode 0644),
 * renamed over it by output_commit(). A failure leaves the old file as it was. The file belongs to
 * the user who called sudo (SUDO_UID, SUDO_GID), if waffle-bpf runs as root.
 */
#ifndef WAFFLE_UTIL_OUTPUT_H
#define WAFFLE_UTIL_OUTPUT_H

#include <stdio.h>

#include "util/error.h"

struct output {
	FILE *file;             /* NULL: not open */
	char *path, *temporary; /* temporary NULL: writing straight to a device or a pipe */
};

/* "-" is standard output; an existing device or pipe is written to directly. */
int output_open(struct output *output, const char *path, struct error *err);
/* Flushes, syncs nothing, renames. On an error the temporary file is removed. Frees in any case. */
int output_commit(struct output *output, struct error *err);
/* Removes the temporary file and frees; nothing to do if not open or committed. */
void output_abort(struct output *output);
/* Gives an open file to the user who called sudo; silently nothing if there is none. */
void output_give_to_caller(int fd);

#endif
