// SPDX-License-Identifier: Apache-2.0
#include "render/text/view_grid_internal.h"

#include <stdlib.h>

#include "util/search.h"
#include "util/memory.h"

uint64_t grid_column_ts(const struct grid *grid, uint32_t column)
{
	uint64_t length = grid->to_ts - grid->from_ts;

	return grid->from_ts + length / grid->columns * column +
	       length % grid->columns * column / grid->columns;
}

uint32_t grid_column_at(const struct grid *grid, uint64_t ts)
{
	/* The first column that does not end at ts or before. */
	return lower_bound(grid->columns - 1, i, grid_column_ts(grid, i + 1) <= ts);
}

/* The last column that overlaps a part of the window. */
static uint32_t last_column(const struct grid *grid, uint64_t from_ts, uint64_t to_ts)
{
	return grid_column_at(grid, to_ts > from_ts ? to_ts - 1 : to_ts);
}

/* How much of [from, to) is in a column. */
static uint64_t column_share(const struct grid *grid, uint32_t column, uint64_t from, uint64_t to)
{
	uint64_t begin = grid_column_ts(grid, column), end = grid_column_ts(grid, column + 1);

	begin = begin > from ? begin : from;
	end = end < to ? end : to;
	return end > begin ? end - begin : 0;
}

/* ---- spans ---- */

static struct grid_cell *cells_new(uint32_t columns)
{
	struct grid_cell *cells = memory_get(columns * sizeof(*cells));

	for (uint32_t i = 0; i < columns; i++)
		cells[i] = (struct grid_cell){.span = MODEL_NONE};
	return cells;
}

static void lane_add_span(struct grid *grid, struct grid_lane *lane, uint32_t index, uint64_t from,
			  uint64_t to, uint8_t *span_row)
{
	const struct model_span *span = &grid->model->spans.data[index];
	uint32_t row = lane_rows_place(&lane->open, span->start_ts, span->end_ts);
	uint32_t last = last_column(grid, from, to);

	lane->spans++;
	*span_row = GRID_ROWS_MAX;
	if (row >= GRID_ROWS_MAX) {
		lane->deeper++;
		return;
	}
	while (lane->rows <= row)
		lane->cells[lane->rows++] = cells_new(grid->columns);
	*span_row = (uint8_t)row;
	for (uint32_t i = grid_column_at(grid, from); i <= last; i++) {
		struct grid_cell *cell = &lane->cells[row][i];
		uint64_t ns = column_share(grid, i, from, to);

		if (cell->span == MODEL_NONE || ns > cell->ns)
			*cell = (struct grid_cell){.ns = ns, .span = index};
	}
}

/* Counts a span that no column shows, in the column that has most of it. */
static void count_hidden(const struct grid *grid, struct grid_lane *lane, uint32_t row,
			 uint32_t index, uint64_t from, uint64_t to)
{
	uint32_t first = grid_column_at(grid, from), last = last_column(grid, from, to);
	uint32_t most = first;

	/* A span in more than two columns fills those in between, so three columns are enough to
	 * check. */
	for (uint32_t i = first; i <= last && i < first + 3; i++) {
		if (lane->cells[row][i].span == index)
			return;
		if (column_share(grid, i, from, to) > column_share(grid, most, from, to))
			most = i;
	}
	lane->cells[row][most].hidden++;
}

static struct grid_lane *span_lane(const struct grid *grid, size_t index, uint64_t *from,
				   uint64_t *to)
{
	const struct model_span *span = &grid->model->spans.data[index];
	uint32_t lane = grid->lane_of[span->thread];

	*from = span->start_ts;
	*to = span->end_ts;
	if (lane == MODEL_NONE || !lane_clip(grid->from_ts, grid->to_ts, from, to))
		return NULL;
	return &grid->lanes.data[lane];
}

static void add_spans(struct grid *grid)
{
	size_t count = grid->model->spans.len;
	uint8_t *rows = memory_get(count + 1);
	uint64_t from, to;

	for (size_t i = 0; i < count; i++) {
		struct grid_lane *lane = span_lane(grid, i, &from, &to);

		rows[i] = GRID_ROWS_MAX;
		if (lane)
			lane_add_span(grid, lane, (uint32_t)i, from, to, &rows[i]);
	}
	for (size_t i = 0; i < count; i++)
		if (rows[i] < GRID_ROWS_MAX) {
			struct grid_lane *lane = span_lane(grid, i, &from, &to);

			count_hidden(grid, lane, rows[i], (uint32_t)i, from, to);
		}
	free(rows);
}

/* ---- states ---- */

static int add_interval(const struct model_interval *interval, void *arg)
{
	struct grid *grid = arg;
	uint64_t from = interval->from_ts, to = interval->to_ts;
	uint32_t lane = grid->lane_of[interval->thread];

	if (lane == MODEL_NONE || !lane_clip(grid->from_ts, grid->to_ts, &from, &to))
		return 0;
	for (uint32_t i = grid_column_at(grid, from); i <= last_column(grid, from, to); i++)
		grid->lanes.data[lane].states[i].ns[interval->state] +=
			column_share(grid, i, from, to);
	return 0;
}

/* ---- the grid ---- */

void grid_make(struct grid *grid, const struct model *model, uint64_t from_ts, uint64_t to_ts,
	       uint32_t columns, const uint32_t *threads, size_t count)
{
	*grid = (struct grid){
		.model = model, .from_ts = from_ts, .to_ts = to_ts, .columns = columns};
	grid->lane_of = memory_get((model->threads.len + 1) * sizeof(*grid->lane_of));
	for (size_t i = 0; i <= model->threads.len; i++)
		grid->lane_of[i] = MODEL_NONE;
	for (size_t i = 0; i < count; i++) {
		struct grid_lane lane = {.thread = threads[i],
					 .states = memory_zeroed(columns, sizeof(*lane.states))};

		vec_add(&grid->lanes, lane);
		grid->lane_of[threads[i]] = (uint32_t)i;
	}
	add_spans(grid);
	model_each_interval(model, add_interval, grid);
}

void grid_free(struct grid *grid)
{
	for (size_t i = 0; i < grid->lanes.len; i++) {
		struct grid_lane *lane = &grid->lanes.data[i];

		for (uint32_t row = 0; row < lane->rows; row++)
			free(lane->cells[row]);
		free(lane->states);
		lane_rows_free(&lane->open);
	}
	vec_free(&grid->lanes);
	free(grid->lane_of);
}
