/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files for viewers that were cut off, because their program was killed or the disk was full: what
 * of one is whole, and what completes it. The file is not trusted, and may have any size: it is
 * read once, in pieces.
 */
#ifndef WAFFLE_EXPORT_REPAIR_REPAIR_H
#define WAFFLE_EXPORT_REPAIR_REPAIR_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

struct repair_plan {
	uint64_t kept;    /* bytes at the beginning that are whole */
	uint64_t dropped; /* bytes behind them that are not */
	uint64_t items;   /* events or packets in the whole part */
	const char *tail; /* what has to follow it; "": nothing */
};

/* Whether the file needs no repair. */
static inline bool repair_is_whole(const struct repair_plan *plan)
{
	return !plan->dropped && !*plan->tail;
}

/*
 * Read the regular file `fd` from its begin. `path` is for messages. Return 0; -EBADMSG if it is
 * not of the format, or damaged elsewhere than at its end; or the errno of a failed read.
 */
int repair_scan_chrome(struct repair_plan *plan, int fd, const char *path, struct error *err);
int repair_scan_perfetto(struct repair_plan *plan, int fd, const char *path, struct error *err);

/* Writes the whole part and its tail to `out`, which appears whole or not at all (util/output.h).
 */
int repair_write(const struct repair_plan *plan, int fd, const char *path, const char *out,
		 struct error *err);

#endif
