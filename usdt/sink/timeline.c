// SPDX-License-Identifier: Apache-2.0
#include "usdt/sink/timeline.h"

#include <stdlib.h>
#include <string.h>

#include "util/map.h"
#include "util/memory.h"
#include "util/vec.h"

#define NONE UINT32_MAX
/* A window is written early if it has so many records or bytes of values. */
#define ENTRIES_MAX (32u << 10)
#define BYTES_MAX ((size_t)16 << 20)
/* The latest slices of a thread that have ended. A span that a filter has kept back until its end
 * comes after those in it, and is compared with them. */
#define SLICES_MAX 256u
/* Spans and events that can be the cause of an arrow: the latest ones. */
#define EXPECTED_MAX (64u << 10) /* hits on tracks that are expected */
#define CAUSES_MAX (256u << 10)

enum timeline_state {
	ENTRY_WAITING, /* not written yet */
	ENTRY_ON_THREAD,
	ENTRY_ASIDE,
	ENTRY_DONE,
};

/* A span, event or value of a counter. */
struct timeline_entry {
	uint64_t ts, end_ts;
	uint64_t slice_end; /* where its slice on the thread ends, at the latest at end_ts */
	struct waffle_frame head;
	uint64_t track;
	size_t frame; /* in timeline.bytes; only in the window of its begin */
	uint32_t frame_bytes;
	uint32_t site, thread, end_thread;
	uint32_t flow; /* its first one */
	uint8_t state;
	bool whole; /* its end was known when its slice began */
	bool begun_before, continued, unfinished;
};

struct timeline_slice {
	uint64_t ts, end_ts;
};

/* A thread or a track. */
struct timeline_thread {
	uint32_t tid;
	bool is_track;
	char track[WAFFLE_TRACK_NAME + 1], group[WAFFLE_TRACK_NAME + 1];
	uint64_t written_end_ts; /* of a track: the latest end in earlier windows */
	char comm[WAFFLE_COMM_BYTES + 1];
	bool described, listed;
	VEC(uint32_t) items; /* entries that begin in the window */
	VEC(uint32_t) open;  /* entries with a slice that has not ended, the innermost last */
	uint64_t written_ts; /* of the last begin or end that was written */
	VEC(struct timeline_slice) slices; /* at most SLICES_MAX … */
	size_t next_slice;                 /* … of which this one is overwritten next */
};

/* A flow of an entry. */
struct timeline_link {
	struct timeline_flow flow;
	uint32_t next; /* of the same entry */
};

struct timeline_cause {
	uint64_t id, ts;
	uint32_t thread;
	uint32_t entry; /* in its window */
	uint64_t window;
};

struct timeline_order {
	uint64_t ts;
	uint32_t item;
};

struct timeline {
	const struct timeline_format *format;
	void *arg;
	uint32_t pid;
	uint64_t start_ts;
	VEC(const struct site_info *) sites;
	VEC(struct timeline_entry) entries;
	VEC(unsigned char) bytes;
	VEC(struct timeline_thread) lines;
	VEC(uint32_t) busy;   /* lines with something in the window */
	VEC(uint32_t) late;   /* entries aside that ended in the window */
	VEC(uint32_t) linked; /* entries with links in the window */
	VEC(struct timeline_link) flows;
	VEC(struct timeline_flow) node_flows; /* of the entry that is being written */
	VEC(struct timeline_order) order;     /* of the thread that is being written */
	VEC(struct waffle_rec_loss) losses;
	struct map tids;     /* → line */
	struct map on_track; /* ids of hits that are expected on a track → line */
	struct map open_ids; /* of spans that have not ended → entry */
	bool has_links;      /* a site has links, so causes are kept */
	VEC(struct timeline_cause) causes;
	size_t next_cause; /* which one is overwritten next */
	struct map cause_ids;
	uint64_t window, next_flow;
};

/* ---- taking records ---- */

struct timeline *timeline_new(const struct timeline_format *format, void *arg, uint32_t pid,
			      uint64_t start_ts)
{
	struct timeline *timeline = memory_zeroed(1, sizeof(*timeline));

	timeline->format = format;
	timeline->arg = arg;
	timeline->pid = pid;
	timeline->start_ts = start_ts;
	return timeline;
}

void timeline_free(struct timeline *timeline)
{
	if (!timeline)
		return;
	for (size_t i = 0; i < timeline->lines.len; i++) {
		vec_free(&timeline->lines.data[i].items);
		vec_free(&timeline->lines.data[i].open);
		vec_free(&timeline->lines.data[i].slices);
	}
	vec_free(&timeline->sites);
	vec_free(&timeline->entries);
	vec_free(&timeline->bytes);
	vec_free(&timeline->lines);
	vec_free(&timeline->busy);
	vec_free(&timeline->late);
	vec_free(&timeline->linked);
	vec_free(&timeline->flows);
	vec_free(&timeline->node_flows);
	vec_free(&timeline->order);
	vec_free(&timeline->losses);
	vec_free(&timeline->causes);
	map_free(&timeline->tids);
	map_free(&timeline->on_track);
	map_free(&timeline->open_ids);
	map_free(&timeline->cause_ids);
	free(timeline);
}

static bool site_has_links(const struct site_info *site)
{
	for (unsigned i = 0; i < site->key_count; i++)
		if (site->keys[i].type == WAFFLE_KEY_CAUSE_SPAN ||
		    site->keys[i].type == WAFFLE_KEY_CAUSE_EVENT)
			return true;
	return false;
}

void timeline_add_site(struct timeline *timeline, const struct site_info *site)
{
	timeline->has_links |= site_has_links(site);
	vec_add(&timeline->sites, site);
	timeline->format->site(timeline->arg, site);
}

static uint32_t line_of(struct timeline *timeline, uint32_t tid)
{
	uint32_t number = map_get(&timeline->tids, tid);

	if (number != MAP_NONE)
		return number;
	number = (uint32_t)timeline->lines.len;
	vec_add(&timeline->lines, (struct timeline_thread){.tid = tid});
	map_put(&timeline->tids, tid, number);
	return number;
}

static void line_list(struct timeline *timeline, uint32_t number)
{
	struct timeline_thread *line = &timeline->lines.data[number];

	if (!line->listed)
		vec_add(&timeline->busy, number);
	line->listed = true;
}

static void name_take(struct timeline *timeline, const struct waffle_rec_task *task)
{
	uint32_t number = line_of(timeline, task->rec.tid);
	struct timeline_thread *line = &timeline->lines.data[number];

	if (!strncmp(line->comm, task->comm, WAFFLE_COMM_BYTES))
		return;
	memcpy(line->comm, task->comm, WAFFLE_COMM_BYTES);
	line->described = false;
	line_list(timeline, number);
}

static uint32_t track_line(struct timeline *timeline, uint32_t track)
{
	uint32_t number = line_of(timeline, TIMELINE_TRACK_TID + track);

	timeline->lines.data[number].is_track = true;
	return number;
}

static void track_take(struct timeline *timeline, const struct waffle_rec_track *rec)
{
	struct timeline_thread *line;
	uint32_t number = track_line(timeline, rec->track);

	line = &timeline->lines.data[number];
	memcpy(line->track, rec->name, WAFFLE_TRACK_NAME);
	memcpy(line->group, rec->group, WAFFLE_TRACK_NAME);
	line->described = false;
	line_list(timeline, number);
}

static void track_expect(struct timeline *timeline, const struct waffle_rec_on_track *rec)
{
	/* Hits that a filter has rejected never come. */
	if (timeline->on_track.len >= EXPECTED_MAX) {
		map_free(&timeline->on_track);
		timeline->on_track = (struct map){0};
	}
	map_put(&timeline->on_track, rec->id, track_line(timeline, rec->track));
}

/* The line of a hit. An id that is only for the way to here is removed. */
static uint32_t hit_line(struct timeline *timeline, const struct waffle_rec_hit *hit,
			 const struct site_info *site, struct waffle_frame *head)
{
	uint32_t number =
		timeline->on_track.len ? map_remove(&timeline->on_track, head->id) : MAP_NONE;

	if (number == MAP_NONE)
		return line_of(timeline, hit->rec.tid);
	if (site->kind == WAFFLE_SITE_COUNTER)
		head->id = 0;
	return number;
}

static void cause_keep(struct timeline *timeline, const struct timeline_entry *entry,
		       uint32_t number)
{
	struct timeline_cause cause = {entry->head.id, entry->ts, entry->thread, number,
				       timeline->window};
	struct timeline_cause *slot;

	if (timeline->causes.len < CAUSES_MAX) {
		vec_add(&timeline->causes, cause);
		slot = &timeline->causes.data[timeline->causes.len - 1];
	} else {
		slot = &timeline->causes.data[timeline->next_cause++ % CAUSES_MAX];
		if (map_get(&timeline->cause_ids, slot->id) ==
		    (uint32_t)(slot - timeline->causes.data))
			map_remove(&timeline->cause_ids, slot->id);
		*slot = cause;
	}
	map_put(&timeline->cause_ids, cause.id, (uint32_t)(slot - timeline->causes.data));
}

static void flow_add(struct timeline *timeline, uint32_t number, struct timeline_flow flow)
{
	struct timeline_entry *entry = &timeline->entries.data[number];

	vec_add(&timeline->flows, (struct timeline_link){flow, entry->flow});
	entry->flow = (uint32_t)timeline->flows.len - 1;
}

static struct value_walk values_of(const struct timeline *timeline,
				   const struct timeline_entry *entry)
{
	return value_walk_from(timeline->sites.data[entry->site], 0,
			       timeline->bytes.data + entry->frame, entry->frame_bytes);
}

/* Adds an arrow for each link to a cause that is known and did not begin later. */
static void links_take(struct timeline *timeline, uint32_t number)
{
	struct value_walk walk = values_of(timeline, &timeline->entries.data[number]);
	struct value value;

	while (value_walk_next(&walk, &value)) {
		const struct timeline_entry *effect = &timeline->entries.data[number];
		const struct timeline_cause *cause;
		struct timeline_flow flow;
		uint32_t found;

		if (value.type != WAFFLE_KEY_CAUSE_SPAN && value.type != WAFFLE_KEY_CAUSE_EVENT)
			continue;
		found = value.u64 ? map_get(&timeline->cause_ids, value.u64) : MAP_NONE;
		if (found == MAP_NONE || value.u64 == effect->head.id ||
		    timeline->causes.data[found].ts > effect->ts)
			continue;
		cause = &timeline->causes.data[found];
		flow = (struct timeline_flow){
			.id = ++timeline->next_flow,
			.alone = cause->window != timeline->window,
			.cause_id = cause->id,
			.cause_ts = cause->ts,
			.cause_thread = cause->thread,
			.cause_tid = timeline->lines.data[cause->thread].tid,
		};
		if (!flow.alone)
			flow_add(timeline, cause->entry, flow);
		flow.caused = true;
		flow.ends = cause->ts < effect->ts;
		flow_add(timeline, number, flow);
	}
}

static bool hit_is_valid(const struct timeline *timeline, const struct waffle_rec_hit *hit)
{
	unsigned kind;

	if (hit->site >= timeline->sites.len || hit->frame_bytes < sizeof(struct waffle_frame))
		return false;
	kind = timeline->sites.data[hit->site]->kind;
	return kind && kind < WAFFLE_SITE_KIND_COUNT && kind != WAFFLE_SITE_SPAN_END;
}

static bool hit_take(struct timeline *timeline, const struct waffle_rec_hit *hit)
{
	struct timeline_entry entry = {
		.ts = hit->rec.ts,
		.end_ts = TIMELINE_OPEN,
		.frame = timeline->bytes.len,
		.site = hit->site,
		.flow = NONE,
	};
	uint32_t number = (uint32_t)timeline->entries.len;
	const struct site_info *site;
	size_t room;

	if (!hit_is_valid(timeline, hit))
		return false;
	site = timeline->sites.data[hit->site];
	memcpy(&entry.head, hit + 1, sizeof(entry.head));
	entry.frame_bytes = hit->frame_bytes - (uint32_t)sizeof(entry.head);
	entry.thread = entry.end_thread = hit_line(timeline, hit, site, &entry.head);
	room = (entry.frame_bytes + 7u) & ~7u;
	vec_need(&timeline->bytes, room);
	memcpy(timeline->bytes.data + entry.frame,
	       (const unsigned char *)(hit + 1) + sizeof(entry.head), entry.frame_bytes);
	timeline->bytes.len += room;
	vec_add(&timeline->entries, entry);
	vec_add(&timeline->lines.data[entry.thread].items, number);
	line_list(timeline, entry.thread);
	if (site->kind == WAFFLE_SITE_SPAN)
		map_put(&timeline->open_ids, entry.head.id, number);
	if (timeline->has_links && entry.head.id)
		cause_keep(timeline, &entry, number);
	if (site_has_links(site))
		vec_add(&timeline->linked, number);
	return true;
}

/* An end without a begin: that one was lost. */
static void end_without_begin(struct timeline *timeline, const struct waffle_rec_span_end *end)
{
	struct timeline_entry entry = {
		.ts = timeline->start_ts < end->rec.ts ? timeline->start_ts : end->rec.ts,
		.end_ts = end->rec.ts,
		.head.id = end->span_id,
		.site = end->site,
		.thread = line_of(timeline, end->rec.tid),
		.flow = NONE,
		.begun_before = true,
	};

	entry.end_thread = entry.thread;
	if (end->site >= timeline->sites.len)
		return;
	vec_add(&timeline->entries, entry);
	vec_add(&timeline->lines.data[entry.thread].items, (uint32_t)timeline->entries.len - 1);
	line_list(timeline, entry.thread);
}

static bool end_take(struct timeline *timeline, const struct waffle_rec_span_end *end)
{
	uint32_t number = map_remove(&timeline->open_ids, end->span_id);
	struct timeline_entry *entry;

	if (number == MAP_NONE) {
		end_without_begin(timeline, end);
		return true;
	}
	entry = &timeline->entries.data[number];
	entry->end_ts = end->rec.ts < entry->ts ? entry->ts : end->rec.ts;
	if (!timeline->lines.data[entry->thread].is_track)
		entry->end_thread = line_of(timeline, end->rec.tid);
	if (entry->state == ENTRY_ON_THREAD)
		line_list(timeline, entry->thread);
	else if (entry->state == ENTRY_ASIDE)
		vec_add(&timeline->late, number);
	return true;
}

bool timeline_record(struct timeline *timeline, const struct waffle_rec *rec)
{
	switch (rec->kind) {
	case WAFFLE_REC_HIT:
		return hit_take(timeline, (const struct waffle_rec_hit *)rec);
	case WAFFLE_REC_SPAN_END:
		return end_take(timeline, (const struct waffle_rec_span_end *)rec);
	case WAFFLE_REC_TASK:
		name_take(timeline, (const struct waffle_rec_task *)rec);
		return true;
	case WAFFLE_REC_TRACK:
		track_take(timeline, (const struct waffle_rec_track *)rec);
		return true;
	case WAFFLE_REC_ON_TRACK:
		track_expect(timeline, (const struct waffle_rec_on_track *)rec);
		return true;
	case WAFFLE_REC_LOSS:
		vec_add(&timeline->losses, *(const struct waffle_rec_loss *)rec);
		return true;
	default:
		return true;
	}
}

bool timeline_is_full(const struct timeline *timeline)
{
	return timeline->entries.len >= ENTRIES_MAX + timeline->open_ids.len ||
	       timeline->bytes.len >= BYTES_MAX;
}

/* ---- writing a window ---- */

static bool is_span(const struct timeline *timeline, const struct timeline_entry *entry)
{
	return timeline->sites.data[entry->site]->kind == WAFFLE_SITE_SPAN;
}

static struct timeline_node node_of(struct timeline *timeline, const struct timeline_entry *entry)
{
	const struct site_info *site = timeline->sites.data[entry->site];
	bool fresh = entry->state == ENTRY_WAITING && !entry->begun_before;
	struct timeline_node node = {
		.node = {.site = site,
			 .values = fresh ? values_of(timeline, entry)
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
		bool span = is_span(timeline, entry);

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
		if (is_span(timeline, &timeline->entries.data[line->items.data[i]]))
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

/* Ends all spans, since the recording does. */
static void spans_end(struct timeline *timeline, uint64_t end_ts)
{
	for (uint32_t i = 0; i < timeline->entries.len; i++) {
		struct timeline_entry *entry = &timeline->entries.data[i];

		if (!is_span(timeline, entry) || entry->end_ts != TIMELINE_OPEN)
			continue;
		entry->end_ts = end_ts < entry->ts ? entry->ts : end_ts;
		entry->unfinished = true;
		if (entry->state == ENTRY_ON_THREAD)
			line_list(timeline, entry->thread);
		else if (entry->state == ENTRY_ASIDE)
			vec_add(&timeline->late, i);
	}
}

void timeline_write(struct timeline *timeline, uint64_t end_ts)
{
	if (end_ts != TIMELINE_OPEN)
		spans_end(timeline, end_ts);
	for (size_t i = 0; i < timeline->linked.len; i++)
		links_take(timeline, timeline->linked.data[i]);
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
}
