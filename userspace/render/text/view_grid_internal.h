/* SPDX-License-Identifier: Apache-2.0 */
/* A window of a capture, divided into columns: the span and the thread state that took most of each
 * column. */
#ifndef WAFFLE_RENDER_TEXT_VIEW_GRID_INTERNAL_H
#define WAFFLE_RENDER_TEXT_VIEW_GRID_INTERNAL_H

#include "render/text/lanes.h"

#define GRID_STATES (WAFFLE_THREAD_BLOCKED + 1)
/* Rows of nested spans in a lane; deeper spans are only counted. */
#define GRID_ROWS_MAX 8

struct grid_cell {
	uint64_t ns;
	uint32_t span;   /* the span that took most of the column, or MODEL_NONE */
	uint32_t hidden; /* number of other spans of this row that no column shows */
};

struct grid_state {
	uint64_t ns[GRID_STATES]; /* by enum waffle_thread_state */
};

struct grid_lane {
	uint32_t thread;
	uint64_t spans, deeper; /* number in the window, and of those below the last row */
	uint32_t rows;
	struct grid_cell *cells[GRID_ROWS_MAX]; /* for each row, a cell for each column */
	struct grid_state *states;              /* an entry for each column */
	struct lane_rows open;
};

struct grid {
	const struct model *model;
	uint64_t from_ts, to_ts;
	uint32_t columns;
	VEC(struct grid_lane) lanes;
	uint32_t *lane_of; /* lane of each thread, or MODEL_NONE */
};

/* `columns` must not exceed the window's nanoseconds. */
void grid_make(struct grid *grid, const struct model *model, uint64_t from_ts, uint64_t to_ts,
	       uint32_t columns, const uint32_t *threads, size_t count);
void grid_free(struct grid *grid);

/* Time at which a column begins; for grid->columns, the window's end. */
uint64_t grid_column_ts(const struct grid *grid, uint32_t column);
uint32_t grid_column_at(const struct grid *grid, uint64_t ts);

#endif
