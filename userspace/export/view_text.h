/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time line of a capture, drawn in characters: for each thread its spans, nested, and below
 * them its state. A column is a stretch of time and shows what took most of it; where a column
 * hides spans it says how many there are.
 */
#ifndef WAFFLE_EXPORT_VIEW_TEXT_H
#define WAFFLE_EXPORT_VIEW_TEXT_H

#include <stdio.h>

#include "model/model.h"
#include "util/error.h"

#define VIEW_WIDTH_MIN 40
#define VIEW_WIDTH_MAX 1000

struct view_options {
	uint64_t from_ts, to_ts; /* what to draw; 0 and UINT64_MAX: all */
	const char *span;        /* draw the slowest span of this name; NULL: not asked */
	const char *thread;      /* a tid, or the name of threads; NULL: all */
	uint32_t width;          /* in columns */
	uint32_t lanes;          /* at most so many threads; 0: all */
	bool utf8, colour;
};

/* Fails if there is no such span or thread, or nothing in that time. */
int view_print_text(const struct model *model, const struct view_options *options, FILE *out,
		    struct error *err);

/* Columns of the terminal behind `out`: $COLUMNS, else what the terminal says, else 80. */
uint32_t view_width_of(FILE *out);
/* Whether the environment's locale writes UTF-8. */
bool view_utf8_locale(void);

#endif
