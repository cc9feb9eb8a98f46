/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WAFFLE_RENDER_TEXT_VIEW_OPTIONS_H
#define WAFFLE_RENDER_TEXT_VIEW_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

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

#endif
