/* SPDX-License-Identifier: Apache-2.0 */
/* What drawings of time lines share: the rows of nested spans, and lists of items that stay short.
 */
#ifndef WAFFLE_EXPORT_LANES_H
#define WAFFLE_EXPORT_LANES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "util/vec.h"

/* ---- rows ---- */

/* The spans of a thread that are open, the outermost first. Zero-initialised is empty. */
struct lane_rows {
	VEC(uint64_t) ends;
};

/*
 * The row of a thread's next span, by its begin: 0 is the outermost. A span is below all that are
 * open when it begins, also below one that ends before it. MODEL_NONE: out of memory.
 */
uint32_t lane_rows_place(struct lane_rows *rows, uint64_t start_ts, uint64_t end_ts);
void lane_rows_free(struct lane_rows *rows);

/* ---- strips ---- */

/* Something in a row, or `count` neighbours of which each is too short to be seen. */
struct strip_item {
	uint64_t from_ts, to_ts;
	uint64_t ns[WAFFLE_THREAD_BLOCKED + 1]; /* of its time, that of each kind */
	uint32_t count;
	uint32_t ref; /* the caller's, of a single one */
};

/* Items of one row by their begins. */
struct strip {
	VEC(struct strip_item) items;
	uint64_t resolution; /* neighbours that fit in this are one item */
	uint32_t max;        /* at more items than this, 2 at least, the resolution is doubled */
};

/* False: out of memory. */
bool strip_add(struct strip *strip, struct strip_item item);
void strip_free(struct strip *strip);

/* ---- time ---- */

/* The part of [from, to] that is in a window; false: none. A moment is in it up to its end. */
bool lane_clip(uint64_t window_from, uint64_t window_to, uint64_t *from, uint64_t *to);

#endif
