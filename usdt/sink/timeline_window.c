// SPDX-License-Identifier: Apache-2.0
/* Writing a window of a timeline: slices that nest, and what is aside. */
#include "usdt/sink/timeline_state.h"

#include <stdlib.h>

#include "util/memory.h"

static struct timeline_node node_of(struct timeline *timeline, const struct timeline_entry *entry)
{
	const struct site_info *site = timeline->sites.data[entry->site];
	bool fresh = entry->state == ENTRY_WAITING && !entry->begun_before;
	struct timeline_node node = {
		.node = {.site = site,
			 .values = fresh ? timeline_values(timeline, entry)
					 : value_walk_from(site, 0, NULL, 0),
			 .id = entry->head.id,
			 .parent_id = entry->head.parent,
			 .trace_hi = entry->head.trace_hi,
			 .trace_lo = entry->head.trace_lo,
			 .ts = entry->ts,
			 .pid = timeline->pid,
			 .tid = timeline->lines.data[entry->thread].tid,
			 .severity = site_severity(site->kind),
			 .begun_before = entry->begun_before,
			 .unfinished = entry->unfinished,
			 .continued = entry->continued},
		.site = entry->site,
		.thread = entry->thread,
		.end_ts = entry->end_ts,
		.track = entry->track,
	};

	if (entry->end_thread != entry->thread)
		node.node.end_tid = timeline->lines.data[entry->end_thread].tid;
	timeline->node_flows.len = 0;
	for (uint32_t at = fresh ? entry->flow : NONE; at != NONE;
	     at = timeline->flows.data[at].next)
		vec_add(&timeline->node_flows, timeline->flows.data[at].flow);
	node.flows = timeline->node_flows.data;
	node.flow_count = timeline->node_flows.len;
	return node;
}

static void write_aside(struct timeline *timeline, struct timeline_entry *entry)
{
	struct timeline_node node = node_of(timeline, entry);

	entry->track = timeline->format->aside(timeline->arg, &node);
	entry->state = entry->end_ts == TIMELINE_OPEN ? ENTRY_ASIDE : ENTRY_DONE;
}

static void written(struct timeline_thread *line, uint64_t ts)
{
	if (line->written_ts < ts)
		line->written_ts = ts;
}

static void slice_remember(struct timeline_thread *line, const struct timeline_entry *entry)
{
	struct timeline_slice slice = {entry->ts, entry->slice_end};

	written(line, slice.end_ts);
	if (line->slices.len < SLICES_MAX)
		vec_add(&line->slices, slice);
	else
		line->slices.data[line->next_slice++ % SLICES_MAX] = slice;
}

/* Whether a span that comes late overlaps a slice that was written in an earlier window. */
static bool overlaps_slice(const struct timeline *timeline, const struct timeline_thread *line,
			   const struct timeline_entry *entry)
{
	if (entry->ts >= line->written_ts)
		return false;
	for (size_t i = 0; i < line->open.len; i++)
		if (timeline->entries.data[line->open.data[i]].ts > entry->ts)
			return true;
	for (size_t i = 0; i < line->slices.len; i++) {
		const struct timeline_slice *slice = &line->slices.data[i];

		if ((slice->ts < entry->ts && slice->end_ts > entry->ts &&
		     slice->end_ts < entry->end_ts) ||
		    (slice->ts > entry->ts && slice->ts < entry->end_ts &&
		     slice->end_ts > entry->end_ts))
			return true;
	}
	return false;
}

/* Ends the innermost slice of a thread. */
static void slice_end(struct timeline *timeline, struct timeline_thread *line)
{
	struct timeline_entry *entry = &timeline->entries.data[line->open.data[--line->open.len]];
	struct timeline_node node = node_of(timeline, entry);

	node.end_ts = entry->slice_end;
	timeline->format->end(timeline->arg, &node, entry->whole);
	slice_remember(line, entry);
	entry->state = ENTRY_DONE;
	if (entry->slice_end == entry->end_ts)
		return;
	entry->ts = entry->slice_end;
	entry->continued = true;
	write_aside(timeline, entry);
}

static void close_until(struct timeline *timeline, struct timeline_thread *line, uint64_t ts)
{
	while (line->open.len &&
	       timeline->entries.data[line->open.data[line->open.len - 1]].slice_end <= ts)
		slice_end(timeline, line);
}

/* Whether a span of a track may overlap one of an earlier window: unlike those of a thread, they
 * come in any order. */
static bool track_is_late(const struct timeline_thread *line, const struct timeline_entry *entry)
{
	return line->is_track && entry->ts < line->written_end_ts;
}

static void span_write(struct timeline *timeline, struct timeline_thread *line, uint32_t number)
{
	struct timeline_entry *entry = &timeline->entries.data[number];
	struct timeline_node node;

	close_until(timeline, line, entry->ts);
	if (entry->begun_before || entry->end_thread != entry->thread ||
	    overlaps_slice(timeline, line, entry) || track_is_late(line, entry) ||
	    (line->open.len &&
	     timeline->entries.data[line->open.data[line->open.len - 1]].slice_end <
		     entry->end_ts)) {
		write_aside(timeline, entry);
		return;
	}
	node = node_of(timeline, entry);
	timeline->format->begin(timeline->arg, &node);
	entry->slice_end = entry->end_ts;
	entry->whole = entry->end_ts != TIMELINE_OPEN;
	entry->state = ENTRY_ON_THREAD;
	vec_add(&line->open, number);
}

static void event_write(struct timeline *timeline, struct timeline_thread *line, uint32_t number)
{
	struct timeline_entry *entry = &timeline->entries.data[number];
	struct timeline_node node = node_of(timeline, entry);

	/* An event exactly at the end of a span is still inside it. */
	if (entry->ts)
		close_until(timeline, line, entry->ts - 1);
	if (node.node.site->kind == WAFFLE_SITE_COUNTER)
		timeline->format->counter(timeline->arg, &node);
	else
		timeline->format->instant(timeline->arg, &node);
	entry->state = ENTRY_DONE;
}

/* Slices of earlier windows whose ends are known by now. A slice ends at the latest with those
 * around it. */
static void slices_limit(struct timeline *timeline, struct timeline_thread *line)
{
	uint64_t limit = TIMELINE_OPEN;

	for (size_t i = 0; i < line->open.len; i++) {
		struct timeline_entry *entry = &timeline->entries.data[line->open.data[i]];

		if (entry->end_ts < limit)
			limit = entry->end_ts;
		entry->slice_end = limit;
	}
}

static int order_compare(const void *left, const void *right)
{
	const struct timeline_order *a = left, *b = right;

	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	return a->item < b->item ? -1 : a->item > b->item;
}

/* Records come in the order of time, but for spans that a filter has kept back until their end. */
static void items_sort(struct timeline *timeline, struct timeline_thread *line)
{
	bool sorted = true;

	timeline->order.len = 0;
	for (size_t i = 0; i < line->items.len; i++) {
		uint32_t item = line->items.data[i];
		struct timeline_order one = {timeline->entries.data[item].ts, item};

		sorted &= !i || timeline->order.data[i - 1].ts <= one.ts;
		vec_add(&timeline->order, one);
	}
	if (sorted)
		return;
	qsort(timeline->order.data, timeline->order.len, sizeof(*timeline->order.data),
	      order_compare);
	for (size_t i = 0; i < line->items.len; i++)
		line->items.data[i] = timeline->order.data[i].item;
}

static void line_describe(struct timeline *timeline, uint32_t number)
{
	struct timeline_thread *line = &timeline->lines.data[number];
	struct timeline_track track = {line->tid, line->track, line->group};
	uint64_t ts = line->items.len ? timeline->entries.data[line->items.data[0]].ts
				      : timeline->start_ts;

	if (line->described)
		return;
	if (line->is_track)
		timeline->format->track(timeline->arg, number, &track);
	else
		timeline->format->thread(timeline->arg, number, line->tid, line->comm, ts);
	line->described = true;
}

/* Leaves out what a track has before the recording. */
static void track_cut(struct timeline *timeline, struct timeline_thread *line)
{
	size_t kept = 0;

	for (size_t i = 0; line->is_track && i < line->items.len; i++) {
		struct timeline_entry *entry = &timeline->entries.data[line->items.data[i]];
		bool span = timeline_is_span(timeline, entry);

		if ((span ? entry->end_ts : entry->ts) < timeline->start_ts) {
			entry->state = ENTRY_DONE;
			continue;
		}
		if (entry->ts < timeline->start_ts)
			entry->ts = timeline->start_ts;
		line->items.data[kept++] = line->items.data[i];
	}
	if (line->is_track)
		line->items.len = kept;
}

static void line_write(struct timeline *timeline, uint32_t number)
{
	struct timeline_thread *line = &timeline->lines.data[number];
	uint64_t last = line->written_end_ts;

	line->listed = false;
	track_cut(timeline, line);
	slices_limit(timeline, line);
	items_sort(timeline, line);
	line_describe(timeline, number);
	for (size_t i = 0; i < line->items.len; i++) {
		const struct timeline_entry *entry = &timeline->entries.data[line->items.data[i]];

		if (entry->end_ts != TIMELINE_OPEN && entry->end_ts > last)
			last = entry->end_ts;
	}
	for (size_t i = 0; i < line->items.len; i++) {
		if (timeline_is_span(timeline, &timeline->entries.data[line->items.data[i]]))
			span_write(timeline, line, line->items.data[i]);
		else
			event_write(timeline, line, line->items.data[i]);
	}
	close_until(timeline, line, TIMELINE_OPEN - 1);
	if (line->items.len)
		written(line, timeline->entries.data[line->items.data[line->items.len - 1]].ts);
	line->written_end_ts = last;
	line->items.len = 0;
}

/* Moves the spans that are still open to the front, and forgets all others. */
static void window_next(struct timeline *timeline)
{
	uint32_t kept = 0;
	uint32_t *moved = memory_get((timeline->entries.len + 1) * sizeof(*moved));

	for (size_t i = 0; i < timeline->entries.len; i++) {
		if (timeline->entries.data[i].state == ENTRY_DONE)
			continue;
		moved[i] = kept;
		timeline->entries.data[i].flow = NONE;
		timeline->entries.data[kept++] = timeline->entries.data[i];
	}
	timeline->entries.len = kept;
	for (size_t l = 0; kept && l < timeline->lines.len; l++)
		for (size_t i = 0; i < timeline->lines.data[l].open.len; i++)
			timeline->lines.data[l].open.data[i] =
				moved[timeline->lines.data[l].open.data[i]];
	free(moved);
	map_free(&timeline->open_ids);
	timeline->open_ids = (struct map){0};
	for (uint32_t i = 0; i < kept; i++)
		map_put(&timeline->open_ids, timeline->entries.data[i].head.id, i);
	timeline->busy.len = timeline->late.len = timeline->linked.len = timeline->flows.len =
		timeline->losses.len = 0;
	timeline->bytes.len = 0;
	timeline->window++;
}

/* ---- threads that are forgotten ---- */

static bool line_is_idle(const struct timeline *timeline, const struct timeline_thread *line)
{
	return !line->is_track && !line->kept && !line->open.len && !line->listed &&
	       (line->written_ts + LINE_IDLE_NS < timeline->last_ts ||
		timeline->lines.len > 4 * LINES_MAX);
}

static void lines_forget(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->entries.len; i++) {
		const struct timeline_entry *entry = &timeline->entries.data[i];

		timeline->lines.data[entry->thread].kept = true;
		timeline->lines.data[entry->end_thread].kept = true;
	}
	for (uint32_t i = 0; i < timeline->lines.len; i++) {
		struct timeline_thread *line = &timeline->lines.data[i];

		if (line->tid && line_is_idle(timeline, line)) {
			map_remove(&timeline->tids, line->tid);
			vec_free(&line->items);
			vec_free(&line->open);
			vec_free(&line->slices);
			*line = (struct timeline_thread){0};
			vec_add(&timeline->unused, i);
		}
		line->kept = false;
	}
}

void timeline_write(struct timeline *timeline, uint64_t end_ts)
{
	if (end_ts != TIMELINE_OPEN)
		timeline_spans_end(timeline, end_ts);
	else if (timeline->open_ids.len >= OPEN_MAX)
		timeline_give_up(timeline);
	timeline_links_take(timeline);
	for (size_t i = 0; i < timeline->late.len; i++) {
		struct timeline_entry *entry = &timeline->entries.data[timeline->late.data[i]];
		struct timeline_node node = node_of(timeline, entry);

		timeline->format->aside_end(timeline->arg, &node);
		entry->state = ENTRY_DONE;
	}
	for (size_t i = 0; i < timeline->busy.len; i++)
		line_write(timeline, timeline->busy.data[i]);
	for (size_t i = 0; i < timeline->losses.len; i++)
		timeline->format->loss(timeline->arg, &timeline->losses.data[i]);
	window_next(timeline);
	if (timeline->lines.len - timeline->unused.len > LINES_MAX)
		lines_forget(timeline);
}
