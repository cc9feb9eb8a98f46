/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own limit on the size of files, which holds for memfds, too. */
#ifndef WAFFLE_USDT_FILE_LIMIT_H
#define WAFFLE_USDT_FILE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

/* Whether the program may make a file of this size. If it does without asking, the kernel sends it
 * SIGXFSZ, which ends it. Async-signal-safe. */
static inline bool file_limit_allows(size_t bytes)
{
	struct rlimit limit;

	return !getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur >= bytes;
}

#endif
