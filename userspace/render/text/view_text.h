/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of a capture, drawn with characters: the nested spans of each thread, and its state
 * below them. A column is a period of time and shows what took most of it. It tells how many spans
 * it hides.
 */
#ifndef WAFFLE_RENDER_TEXT_VIEW_TEXT_H
#define WAFFLE_RENDER_TEXT_VIEW_TEXT_H

#include <stdio.h>

#include "model/model.h"
#include "util/error.h"

#define VIEW_WIDTH_MIN 40
#define VIEW_WIDTH_MAX 1000

struct view_options {
	uint64_t from_ts, to_ts; /* window to draw; 0 and UINT64_MAX: everything */
	const char *span;        /* draw the slowest span of this name; NULL: no span */
	/* Draw only the thread with this tid, or threads of this name; NULL: all. */
	const char *thread;
	uint32_t width; /* in columns */
	uint32_t lanes; /* maximum number of threads; 0: all */
	bool utf8, colour;
};

/* Fails if the span or the thread does not exist, or the window is empty. */
int view_print_text(const struct model *model, const struct view_options *options, FILE *out,
		    struct error *err);

/* Width of the terminal: $COLUMNS, else the terminal's own, else 80. */
uint32_t view_width_of(FILE *out);
/* Whether the locale uses UTF-8. */
bool view_utf8_locale(void);

#endif
