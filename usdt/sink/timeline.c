// SPDX-License-Identifier: Apache-2.0
#include "usdt/sink/timeline_state.h"

#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

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
	vec_free(&timeline->unused);
	map_free(&timeline->left_ids);
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
	if (timeline->unused.len) {
		number = timeline->unused.data[--timeline->unused.len];
	} else {
		number = (uint32_t)timeline->lines.len;
		vec_add(&timeline->lines, (struct timeline_thread){0});
	}
	timeline->lines.data[number].tid = tid;
	map_put(&timeline->tids, tid, number);
	return number;
}

void timeline_list(struct timeline *timeline, uint32_t number)
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
	timeline_list(timeline, number);
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
	timeline_list(timeline, number);
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
	struct timeline_cause cause = {
		.id = entry->head.id,
		.ts = entry->ts,
		.thread = entry->thread,
		.tid = timeline->lines.data[entry->thread].tid,
		.entry = number,
		.window = timeline->window,
	};
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

struct value_walk timeline_values(const struct timeline *timeline,
				  const struct timeline_entry *entry)
{
	return value_walk_from(timeline->sites.data[entry->site], 0,
			       entry->frame_bytes ? timeline->bytes.data + entry->frame : NULL,
			       entry->frame_bytes);
}

static void links_take(struct timeline *timeline, uint32_t number)
{
	struct value_walk walk = timeline_values(timeline, &timeline->entries.data[number]);
	struct value value;

	while (value_walk_next(&walk, &value)) {
		const struct timeline_entry *effect = &timeline->entries.data[number];
		const struct timeline_cause *cause;
		struct timeline_flow flow;
		uint32_t found;

		if (value.type != WAFFLE_KEY_CAUSE_SPAN && value.type != WAFFLE_KEY_CAUSE_EVENT)
			continue;
		found = value.u64 ? map_get(&timeline->cause_ids, value.u64) : MAP_NONE;
		if (found == MAP_NONE || value.u64 == effect->head.id)
			continue;
		cause = &timeline->causes.data[found];
		/* Its thread may be forgotten. */
		if (cause->ts > effect->ts || timeline->lines.data[cause->thread].tid != cause->tid)
			continue;
		flow = (struct timeline_flow){
			.id = ++timeline->next_flow,
			.alone = cause->window != timeline->window,
			.cause_id = cause->id,
			.cause_ts = cause->ts,
			.cause_thread = cause->thread,
			.cause_tid = cause->tid,
		};
		if (!flow.alone)
			flow_add(timeline, cause->entry, flow);
		flow.caused = true;
		flow.ends = cause->ts < effect->ts;
		flow_add(timeline, number, flow);
	}
}

void timeline_links_take(struct timeline *timeline)
{
	for (size_t i = 0; i < timeline->linked.len; i++)
		links_take(timeline, timeline->linked.data[i]);
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
	if (room)
		memcpy(timeline->bytes.data + entry.frame,
		       (const unsigned char *)(hit + 1) + sizeof(entry.head), entry.frame_bytes);
	timeline->bytes.len += room;
	vec_add(&timeline->entries, entry);
	vec_add(&timeline->lines.data[entry.thread].items, number);
	timeline_list(timeline, entry.thread);
	if (site->kind == WAFFLE_SITE_SPAN)
		map_put(&timeline->open_ids, entry.head.id, number);
	if (timeline->has_links && entry.head.id)
		cause_keep(timeline, &entry, number);
	if (site_has_links(site))
		vec_add(&timeline->linked, number);
	return true;
}

/* ---- ends ---- */

bool timeline_is_span(const struct timeline *timeline, const struct timeline_entry *entry)
{
	return timeline->sites.data[entry->site]->kind == WAFFLE_SITE_SPAN;
}

/* Ends a span that the program has not ended. */
static void span_leave(struct timeline *timeline, uint32_t number, uint64_t end_ts)
{
	struct timeline_entry *entry = &timeline->entries.data[number];

	entry->end_ts = end_ts < entry->ts ? entry->ts : end_ts;
	entry->unfinished = true;
	if (entry->state == ENTRY_ON_THREAD)
		timeline_list(timeline, entry->thread);
	else if (entry->state == ENTRY_ASIDE)
		vec_add(&timeline->late, number);
}

void timeline_spans_end(struct timeline *timeline, uint64_t end_ts)
{
	for (uint32_t i = 0; i < timeline->entries.len; i++)
		if (timeline_is_span(timeline, &timeline->entries.data[i]) &&
		    timeline->entries.data[i].end_ts == TIMELINE_OPEN)
			span_leave(timeline, i, end_ts);
}

void timeline_give_up(struct timeline *timeline)
{
	struct waffle_rec_loss loss = {
		.rec = {.ts = timeline->last_ts, .kind = WAFFLE_REC_LOSS},
		.source = WAFFLE_SOURCE_SPANS,
		.from_ts = timeline->last_ts,
	};

	if (timeline->left_ids.len > OPEN_MAX) {
		map_free(&timeline->left_ids);
		timeline->left_ids = (struct map){0};
	}
	for (uint32_t i = 0; i < timeline->entries.len && timeline->open_ids.len > OPEN_MAX / 2;
	     i++) {
		const struct timeline_entry *entry = &timeline->entries.data[i];

		/* The oldest ones come first. */
		if (map_get(&timeline->open_ids, entry->head.id) != i)
			continue;
		map_remove(&timeline->open_ids, entry->head.id);
		map_put(&timeline->left_ids, entry->head.id, 1);
		span_leave(timeline, i, timeline->last_ts);
		loss.count++;
	}
	timeline->given_up += loss.count;
	vec_add(&timeline->losses, loss);
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
	timeline_list(timeline, entry.thread);
}

static bool end_take(struct timeline *timeline, const struct waffle_rec_span_end *end)
{
	uint32_t number = map_remove(&timeline->open_ids, end->span_id);
	struct timeline_entry *entry;

	if (number == MAP_NONE && map_remove(&timeline->left_ids, end->span_id) != MAP_NONE)
		return true;
	if (number == MAP_NONE) {
		end_without_begin(timeline, end);
		return true;
	}
	entry = &timeline->entries.data[number];
	entry->end_ts = end->rec.ts < entry->ts ? entry->ts : end->rec.ts;
	if (!timeline->lines.data[entry->thread].is_track)
		entry->end_thread = line_of(timeline, end->rec.tid);
	if (entry->state == ENTRY_ON_THREAD)
		timeline_list(timeline, entry->thread);
	else if (entry->state == ENTRY_ASIDE)
		vec_add(&timeline->late, number);
	return true;
}

bool timeline_record(struct timeline *timeline, const struct waffle_rec *rec)
{
	if (rec->ts > timeline->last_ts)
		timeline->last_ts = rec->ts;
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
	       timeline->open_ids.len >= OPEN_MAX || timeline->busy.len >= ENTRIES_MAX ||
	       timeline->bytes.len >= BYTES_MAX;
}

uint64_t timeline_given_up(const struct timeline *timeline)
{
	return timeline->given_up;
}
