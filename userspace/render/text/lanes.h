/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the drawings of timelines: rows of nested spans, and lists of items with a bounded
 * length. */
#ifndef WAFFLE_RENDER_TEXT_LANES_H
#define WAFFLE_RENDER_TEXT_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "util/vec.h"

/* ---- rows ---- */

/* The ends of the open spans of a thread, the outermost first. Zero-initialised is empty. */
struct lane_rows {
	VEC(uint64_t) ends;
};

/*
 * Places a thread's next span and returns its row; 0 is the outermost. Spans must come in the order
 * of their start times. A span is placed below all spans that are open when it begins, even those
 * that end before it does.
 */
uint32_t lane_rows_place(struct lane_rows *rows, uint64_t start_ts, uint64_t end_ts);
void lane_rows_free(struct lane_rows *rows);

/* ---- strips ---- */

/* An item in a row, or `count` adjacent items that are each too short to be visible. */
struct strip_item {
	uint64_t from_ts, to_ts;
	uint64_t ns[WAFFLE_THREAD_BLOCKED + 1]; /* time of each kind: enum waffle_thread_state */
	uint32_t count;
	uint32_t ref; /* the caller's reference, if count is 1 */
};

/* The items of one row, in the order of their start times. */
struct strip {
	VEC(struct strip_item) items;
	uint64_t resolution; /* adjacent items that fit in this are merged; ns */
	/* When there are more items than this (at least 2), the resolution is doubled. */
	uint32_t max;
};

void strip_add(struct strip *strip, struct strip_item item);
void strip_free(struct strip *strip);

/* ---- time ---- */

/* Clips [from, to] to a window. False: nothing is left. A moment at the end of the window is
 * inside. */
bool lane_clip(uint64_t window_from, uint64_t window_to, uint64_t *from, uint64_t *to);

#endif
