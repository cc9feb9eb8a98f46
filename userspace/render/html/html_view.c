// SPDX-License-Identifier: Apache-2.0
/*
 * Timelines of the slow spans. Each is a window around a span, with lanes for the threads that
 * matter to it, and their spans and states. One pass over the capture makes all of them.
 */
#include <stdlib.h>

#include "render/html/html_internal.h"
#include "render/text/lanes.h"
#include "util/memory.h"

#define LANES_MAX 5
#define ROWS_MAX 6   /* rows of nested spans in a lane */
#define ITEMS_MAX 80 /* items in a row */
#define LOSSES_MAX 50

struct lane {
	uint32_t thread;
	uint64_t deeper; /* number of spans below the last row */
	struct lane_rows open;
	struct strip rows[ROWS_MAX]; /* ref: a span */
	/* `ref` is a text. A single item has only one `ns` that is not 0. */
	struct strip states;
};

struct view {
	uint64_t from_ts, to_ts;
	uint32_t lane_count;
	struct lane lanes[LANES_MAX];
};

struct html_views {
	struct html_page *page;
	struct view *views;
	size_t count;
};

/* ---- building ---- */

static struct lane *view_lane(struct view *view, uint32_t thread)
{
	for (uint32_t i = 0; i < view->lane_count; i++)
		if (view->lanes[i].thread == thread)
			return &view->lanes[i];
	return NULL;
}

static void add_lane(struct view *view, const struct model *model, uint32_t thread)
{
	struct lane *lane;

	/* Nothing is recorded about threads that are not traced. */
	if (thread >= model->threads.len ||
	    (!model->threads.data[thread].traced && !model_is_track(model, thread)) ||
	    view_lane(view, thread) || view->lane_count == LANES_MAX)
		return;
	lane = &view->lanes[view->lane_count++];
	lane->thread = thread;
	lane->states.max = ITEMS_MAX;
	for (unsigned i = 0; i < ROWS_MAX; i++)
		lane->rows[i].max = ITEMS_MAX;
}

/* Adds the threads in the chains from the span's waits to their causes, the longest parts first. */
static void add_chain_lanes(struct view *view, const struct html_page *page, uint32_t span)
{
	const struct why *why;
	const struct why_instance *instance = html_causes_of(page->causes, span, &why);

	for (uint32_t i = 0; instance && i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];

		for (uint32_t j = 0; j < part->step_count; j++)
			add_lane(view, page->model, why->steps.data[part->step + j].thread);
		add_lane(view, page->model, part->thread);
	}
}

static void view_begin(struct view *view, const struct html_page *page,
		       const struct report_slow *slow)
{
	const struct model *model = page->model;
	const struct model_span *span = &model->spans.data[slow->span];
	uint64_t margin = (span->end_ts - span->start_ts) / 20 + 1;

	view->from_ts = span->start_ts - model->start_ts > margin ? span->start_ts - margin
								  : model->start_ts;
	view->to_ts = model->end_ts - span->end_ts > margin ? span->end_ts + margin : model->end_ts;
	add_lane(view, model, span->thread);
	if (span->flags & MODEL_SPAN_MOVED)
		add_lane(view, model, span->end_thread);
	add_lane(view, model, slow->waker);
	add_chain_lanes(view, page, slow->span);
}

static void add_span(struct view *view, const struct model *model, uint32_t index)
{
	const struct model_span *span = &model->spans.data[index];
	struct strip_item item = {
		.from_ts = span->start_ts, .to_ts = span->end_ts, .count = 1, .ref = index};
	uint64_t from = span->start_ts, to = span->end_ts;
	struct lane *lane;
	uint32_t row;

	if (!lane_clip(view->from_ts, view->to_ts, &from, &to))
		return;
	lane = view_lane(view, span->thread);
	if (!lane)
		return;
	row = lane_rows_place(&lane->open, span->start_ts, span->end_ts);
	if (row < ROWS_MAX)
		strip_add(&lane->rows[row], item);
	else
		lane->deeper++;
}

static int add_interval(const struct model_interval *interval, void *arg)
{
	struct html_views *views = arg;
	const struct model *model = views->page->model;
	char text[HTML_STATE_TEXT];

	for (size_t i = 0; i < views->count; i++) {
		struct strip_item item = {
			.from_ts = interval->from_ts, .to_ts = interval->to_ts, .count = 1};
		struct view *view = &views->views[i];
		struct lane *lane;

		if (!lane_clip(view->from_ts, view->to_ts, &item.from_ts, &item.to_ts))
			continue;
		lane = view_lane(view, interval->thread);
		if (!lane)
			continue;
		item.ns[interval->state] = item.to_ts - item.from_ts;
		item.ref = html_text(views->page, html_state_text(model, interval, text));
		strip_add(&lane->states, item);
	}
	return 0;
}

struct html_views *html_views_new(struct html_page *page)
{
	const struct report *report = page->report;
	const struct model *model = page->model;
	struct html_views *views = memory_zeroed(1, sizeof(*views));

	views->page = page;
	views->views = memory_zeroed(report->slowest.len + 1, sizeof(*views->views));
	for (size_t i = 0; i < report->slowest.len; i++)
		view_begin(&views->views[views->count++], page, &report->slowest.data[i]);
	for (size_t i = 0; views->count && i < model->spans.len; i++)
		for (size_t j = 0; j < views->count; j++)
			add_span(&views->views[j], model, (uint32_t)i);
	if (views->count)
		model_each_interval(model, add_interval, views);
	return views;
}

void html_views_free(struct html_views *views)
{
	if (!views)
		return;
	for (size_t i = 0; i < views->count; i++)
		for (uint32_t j = 0; j < views->views[i].lane_count; j++) {
			struct lane *lane = &views->views[i].lanes[j];

			lane_rows_free(&lane->open);
			strip_free(&lane->states);
			for (unsigned k = 0; k < ROWS_MAX; k++)
				strip_free(&lane->rows[k]);
		}
	free(views->views);
	free(views);
}

/* ---- writing ---- */

/* Writes a time relative to the window's start; a span may start before it. */
static void time_json(struct json *json, const struct view *view, uint64_t ts)
{
	json_i64(json, (int64_t)(ts - view->from_ts));
}

/* Writes a span as [row, from, to, name, id, flags], or several as [row, from, to, count]. */
static void span_item_json(struct html_page *page, const struct view *view, unsigned row,
			   const struct strip_item *item)
{
	const struct model *model = page->model;
	struct json *json = page->json;

	json_array_begin(json);
	json_u64(json, row);
	time_json(json, view, item->from_ts);
	time_json(json, view, item->to_ts);
	if (item->count == 1) {
		const struct model_span *span = &model->spans.data[item->ref];

		json_u64(json, html_text(page, model_site(model, span->site)->name));
		json_hex64(json, span->id);
		json_u64(json, span->flags & MODEL_SPAN_CUT);
	} else {
		json_u64(json, item->count);
	}
	json_array_end(json);
}

/* Writes an interval as [from, to, state, text], or several as [from, to, 0, running, runnable,
 * blocked]. */
static void state_item_json(struct json *json, const struct view *view,
			    const struct strip_item *item)
{
	json_array_begin(json);
	time_json(json, view, item->from_ts);
	time_json(json, view, item->to_ts);
	for (unsigned state = WAFFLE_THREAD_RUNNING; state <= WAFFLE_THREAD_BLOCKED; state++) {
		if (item->count == 1 && item->ns[state]) {
			json_u64(json, state);
			json_u64(json, item->ref);
		} else if (item->count > 1) {
			if (state == WAFFLE_THREAD_RUNNING)
				json_u64(json, 0);
			json_u64(json, item->ns[state]);
		}
	}
	json_array_end(json);
}

static void lane_json(struct html_page *page, const struct view *view, const struct lane *lane)
{
	struct json *json = page->json;
	char text[HTML_THREAD_TEXT];

	json_object_begin(json);
	json_field_string(json, "thread", html_thread(page->model, lane->thread, text));
	json_field_u64(json, "deeper", lane->deeper);
	json_key(json, "spans");
	json_array_begin(json);
	for (unsigned row = 0; row < ROWS_MAX; row++)
		for (size_t i = 0; i < lane->rows[row].items.len; i++)
			span_item_json(page, view, row, &lane->rows[row].items.data[i]);
	json_array_end(json);
	json_key(json, "states");
	json_array_begin(json);
	for (size_t i = 0; i < lane->states.items.len; i++)
		state_item_json(json, view, &lane->states.items.data[i]);
	json_array_end(json);
	json_object_end(json);
}

static void losses_json(struct html_page *page, const struct view *view)
{
	const struct model *model = page->model;
	struct strip losses = {.max = LOSSES_MAX};

	for (size_t i = 0; i < model->losses.len; i++) {
		const struct model_loss *loss = &model->losses.data[i];
		struct strip_item item = {.from_ts = loss->from_ts,
					  .to_ts = loss->to_ts,
					  .ns = {loss->count},
					  .count = 1};

		if (loss->count &&
		    lane_clip(view->from_ts, view->to_ts, &item.from_ts, &item.to_ts))
			strip_add(&losses, item);
	}
	json_key(page->json, "losses");
	json_array_begin(page->json);
	for (size_t i = 0; i < losses.items.len; i++) {
		const struct strip_item *item = &losses.items.data[i];

		json_array_begin(page->json);
		time_json(page->json, view, item->from_ts);
		time_json(page->json, view, item->to_ts);
		json_u64(page->json, item->ns[0]);
		json_array_end(page->json);
	}
	json_array_end(page->json);
	strip_free(&losses);
}

void html_view_write(struct html_page *page, const struct html_views *views, size_t index)
{
	const struct view *view = &views->views[index];
	struct json *json = page->json;

	json_key(json, "view");
	json_object_begin(json);
	json_field_u64(json, "from_ns", view->from_ts - page->model->start_ts);
	json_field_u64(json, "duration_ns", view->to_ts - view->from_ts);
	losses_json(page, view);
	json_key(json, "lanes");
	json_array_begin(json);
	for (uint32_t i = 0; i < view->lane_count; i++)
		lane_json(page, view, &view->lanes[i]);
	json_array_end(json);
	json_object_end(json);
}
