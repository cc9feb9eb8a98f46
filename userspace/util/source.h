/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text that users write for waffle to parse, and messages that point at an error in it:
 *
 *	--filter: unknown field 'nmae'; did you mean name
 *	  nmae ~ "nccl*" && dur > 10ms
 *	  ^~~~
 */
#ifndef WAFFLE_UTIL_SOURCE_H
#define WAFFLE_UTIL_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

/* The text, and its name in messages. */
struct source {
	const char *origin;
	const char *text;
	size_t len;
};

/* A part of the source for use in a message, cut if it is long. Control characters are replaced, so
 * that none reaches a terminal. */
#define SOURCE_SHOWN_COLUMNS 48
struct source_shown {
	char text[4 * SOURCE_SHOWN_COLUMNS + 1];
};
struct source_shown source_show(const char *text, size_t len);

/* Sets a message that points at [from, to) of the source. Returns -EINVAL. */
int source_fault(const struct source *source, uint32_t from, uint32_t to, struct error *err,
		 const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Makes one line of such a message, for where there is room for one only: "… (at 'nmae ~ …')".
 * Other messages stay as they are. */
void source_fault_one_line(struct error *err);

#endif
