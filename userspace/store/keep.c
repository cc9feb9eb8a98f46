// SPDX-License-Identifier: Apache-2.0
#include "store/keep_internal.h"

#include <stdlib.h>
#include <string.h>

#include "store/record_schema.h"
#include "waffle/abi.h"

/* Limits of what is kept besides chunks. More threads have no names, and the begins of more spans
 * are not kept: these begin with the file. */
#define TASKS_MAX (1u << 18)
#define TASK_TRIES 64 /* threads that are asked to make room for one */
#define TRACKS_MAX (1u << 16)
#define BEGINS_MAX (1u << 16)
#define BEGIN_BYTES_MAX (32u << 20)
#define CPUS_MAX 8192

struct keep *keep_new(void)
{
	struct keep *keep = calloc(1, sizeof(*keep));

	if (keep)
		keep->now = UINT64_MAX;
	return keep;
}

static void segment_free(struct kept_segment *segment)
{
	for (size_t i = 0; i < segment->chunks.len; i++)
		free(segment->chunks.data[i].packed);
	vec_free(&segment->chunks);
	vec_free(&segment->head);
}

void keep_free(struct keep *keep)
{
	if (!keep)
		return;
	for (size_t i = 0; i < keep->segments.len; i++)
		segment_free(&keep->segments.data[i]);
	for (size_t i = 0; i < keep->tables.len; i++)
		free(keep->tables.data[i].packed);
	for (size_t i = 0; i < keep->begins.len; i++)
		free(keep->begins.data[i].hit);
	vec_free(&keep->segments);
	vec_free(&keep->tables);
	vec_free(&keep->tasks);
	vec_free(&keep->tracks);
	vec_free(&keep->frequencies);
	vec_free(&keep->begins);
	vec_free(&keep->spans);
	vec_free(&keep->ended);
	keep_rows_free(&keep->rows[STORE_STACKS]);
	keep_rows_free(&keep->rows[STORE_OBJECTS]);
	map_free(&keep->task_at);
	map_free(&keep->track_at);
	map_free(&keep->begin_at);
	map_free(&keep->open_of);
	map_free(&keep->track_of);
	free(keep);
}

/* Numbers of segments, from 1. */
uint64_t keep_first(const struct keep *keep)
{
	return keep->dropped + 1;
}

static uint64_t keep_current(const struct keep *keep)
{
	return keep->dropped + keep->segments.len;
}

static struct kept_segment *current(struct keep *keep)
{
	return &keep->segments.data[keep->segments.len - 1];
}

/* ---- chunks ---- */

bool keep_chunk(struct keep *keep, const struct chunk_entry *entry, const void *packed,
		size_t bytes)
{
	bool data = entry->type == CHUNK_DATA || entry->type == CHUNK_TASKS;
	struct kept_chunk chunk = {
		.entry = *entry,
		.until_ts = entry->max_ts < keep->now ? entry->max_ts : keep->now,
		.bytes = (uint32_t)bytes,
	};

	if (data && !keep->segments.len && !keep_segment(keep, 0))
		return false;
	chunk.packed = malloc(bytes);
	if (!chunk.packed)
		return false;
	memcpy(chunk.packed, packed, bytes);
	if (entry->type == CHUNK_DATA) {
		chunk.tally = keep->tally;
		keep->tally = (struct keep_tally){0};
	}
	if (!(data ? vec_push(&current(keep)->chunks, chunk) : vec_push(&keep->tables, chunk))) {
		free(chunk.packed);
		return false;
	}
	if (data) {
		current(keep)->bytes += bytes;
		keep->bytes += bytes;
	} else {
		keep->table_bytes += bytes;
	}
	return true;
}

/* ---- segments ---- */

/* The speed of each CPU at the begin of a segment. It is recorded only when it changes. */
static bool frequencies_head(struct keep *keep)
{
	bool done = true;

	for (size_t i = 0; done && i < keep->frequencies.len; i++)
		if (keep->frequencies.data[i].rec.kind)
			done = keep_head(keep, &keep->frequencies.data[i].rec);
	return done;
}

bool keep_segment(struct keep *keep, uint64_t from_ts)
{
	struct kept_segment segment = {.from_ts = from_ts};

	return vec_push(&keep->segments, segment) && frequencies_head(keep);
}

bool keep_head(struct keep *keep, const struct waffle_rec *rec)
{
	size_t size = record_size(rec, RECORD_BYTES_MAX);
	struct kept_segment *segment;

	if (!keep->segments.len || !size)
		return true;
	segment = current(keep);
	if (!vec_reserve(&segment->head, size))
		return false;
	memcpy(segment->head.data + segment->head.len, rec, size);
	segment->head.len += size;
	segment->bytes += size;
	keep->bytes += size;
	return true;
}

/* Adds a begin to the open ones of its process. False: out of memory. */
static bool open_link(struct keep *keep, uint32_t index)
{
	struct kept_begin *begin = &keep->begins.data[index];
	uint32_t older = map_get(&keep->open_of, begin->hit->tgid);

	begin->older = older;
	begin->younger = MAP_NONE;
	if (!map_set(&keep->open_of, begin->hit->tgid, index))
		return false;
	if (older != MAP_NONE)
		keep->begins.data[older].younger = index;
	return true;
}

static void open_unlink(struct keep *keep, uint32_t index)
{
	const struct kept_begin *begin = &keep->begins.data[index];

	if (begin->older != MAP_NONE)
		keep->begins.data[begin->older].younger = begin->younger;
	if (begin->younger != MAP_NONE)
		keep->begins.data[begin->younger].older = begin->older;
	else if (begin->older != MAP_NONE)
		map_set(&keep->open_of, begin->hit->tgid, begin->older);
	else
		map_remove(&keep->open_of, begin->hit->tgid);
}

static void begin_remove(struct keep *keep, uint32_t index)
{
	struct kept_begin begin = keep->begins.data[index];

	if (!begin.ended)
		open_unlink(keep, index);
	keep->begins.data[index] = (struct kept_begin){.younger = keep->free_begin};
	keep->free_begin = index;
	keep->begin_count--;
	if (map_get(&keep->begin_at, begin.id) == index)
		map_remove(&keep->begin_at, begin.id);
	keep->begin_bytes -= sizeof(*begin.hit) + begin.hit->frame_bytes;
	free(begin.hit);
}

static uint64_t track_key(const struct waffle_rec_track *track)
{
	return (uint64_t)track->tgid << 32 | track->track;
}

static void tracks_forget(struct keep *keep)
{
	size_t kept = 0;

	for (size_t i = 0; i < keep->tracks.len; i++) {
		const struct kept_track *track = &keep->tracks.data[i];

		if (track->ended && track->ended < keep_first(keep)) {
			map_remove(&keep->track_at, track_key(&track->track));
			continue;
		}
		if (kept != i) {
			keep->tracks.data[kept] = *track;
			map_set(&keep->track_at, track_key(&track->track), (uint32_t)kept);
		}
		kept++;
	}
	keep->tracks.len = kept;
}

static void tasks_forget(struct keep *keep)
{
	size_t kept = 0;

	for (size_t i = 0; i < keep->tasks.len; i++) {
		const struct kept_task *task = &keep->tasks.data[i];

		if (task->ended && task->ended < keep_first(keep)) {
			map_remove(&keep->task_at, task->task.rec.tid);
			continue;
		}
		if (kept != i) {
			keep->tasks.data[kept] = *task;
			map_set(&keep->task_at, task->task.rec.tid, (uint32_t)kept);
		}
		kept++;
	}
	keep->tasks.len = kept;
}

/* Forgets what ended in the segments that were dropped. */
static void ended_forget(struct keep *keep)
{
	for (size_t i = 0; i < keep->begins.len; i++) {
		const struct kept_begin *begin = &keep->begins.data[i];

		if (begin->hit && begin->ended && begin->ended < keep_first(keep))
			begin_remove(keep, (uint32_t)i);
	}
	tasks_forget(keep);
	tracks_forget(keep);
}

/* Drops the first chunk of the only segment. What is left is complete behind its last record, but
 * not for late records of the chunk before. */
static bool chunk_drop(struct keep *keep, struct kept_segment *segment)
{
	struct kept_chunk *first = segment->chunks.data;

	if (!segment->chunks.len)
		return false;
	if (first->entry.type == CHUNK_DATA && first->until_ts >= segment->from_ts)
		segment->from_ts = first->until_ts + 1;
	segment->bytes -= first->bytes + segment->head.len;
	keep->bytes -= first->bytes + segment->head.len;
	segment->head.len = 0; /* is no longer true */
	free(first->packed);
	segment->chunks.len--;
	memmove(first, first + 1, segment->chunks.len * sizeof(*first));
	return true;
}

bool keep_drop(struct keep *keep)
{
	struct kept_segment *first = keep->segments.data;

	if (!keep->segments.len)
		return false;
	if (keep->segments.len == 1)
		return chunk_drop(keep, first);
	keep->bytes -= first->bytes;
	segment_free(first);
	keep->segments.len--;
	memmove(first, first + 1, keep->segments.len * sizeof(*first));
	keep->dropped++;
	ended_forget(keep);
	return true;
}

/* ---- records ---- */

/* What is added before there is a segment belongs to the first one. */
static uint64_t current_or_next(const struct keep *keep)
{
	return keep_current(keep) + !keep->segments.len;
}

bool keep_add_stack(struct keep *keep, const struct store_stack *stack, size_t *more)
{
	return keep_rows_add_stack(&keep->rows[STORE_STACKS], stack, current_or_next(keep), more);
}

bool keep_add_object(struct keep *keep, const struct store_object *object, size_t *more)
{
	return keep_rows_add_object(&keep->rows[STORE_OBJECTS], object, current_or_next(keep),
				    more);
}

/* Notes that the current segment refers to the stacks and objects of a record. */
static void rows_follow(struct keep *keep, const struct waffle_rec *rec)
{
	const struct record_kind *kind = &record_kinds[rec->kind];

	for (unsigned i = 0; i < kind->field_count; i++) {
		const struct record_field *field = &kind->fields[i];
		uint32_t number;

		if (field->form != RECORD_STACK && field->form != RECORD_OBJECT)
			continue;
		memcpy(&number, (const char *)rec + field->offset, sizeof(number));
		keep_rows_use(
			&keep->rows[field->form == RECORD_STACK ? STORE_STACKS : STORE_OBJECTS],
			number, keep_current(keep));
	}
}

/* Nobody tells when threads of other processes end, so they give way when there are too many.
 * Returns the index for a new thread, or MAP_NONE. */
static uint32_t task_place(struct keep *keep)
{
	for (unsigned tries = 0; keep->tasks.len >= TASKS_MAX; tries++) {
		struct kept_task *task;

		keep->task_victim = (keep->task_victim + 1) % TASKS_MAX;
		task = &keep->tasks.data[keep->task_victim];
		if (tries == TASK_TRIES)
			return MAP_NONE;
		if (task->task.flags & WAFFLE_TASK_TRACED_FLAG)
			continue;
		map_remove(&keep->task_at, task->task.rec.tid);
		return (uint32_t)keep->task_victim;
	}
	return vec_push(&keep->tasks, (struct kept_task){0}) ? (uint32_t)keep->tasks.len - 1
							     : MAP_NONE;
}

static void task_follow(struct keep *keep, const struct waffle_rec_task *task)
{
	uint32_t index = map_get(&keep->task_at, task->rec.tid);
	struct waffle_rec_thread_name name = {0};

	if (index == MAP_NONE) {
		index = task_place(keep);
		if (index == MAP_NONE || !map_set(&keep->task_at, task->rec.tid, index))
			return;
	}
	if (keep->tasks.data[index].task.start_ts == task->start_ts)
		name = keep->tasks.data[index].name;
	keep->tasks.data[index] = (struct kept_task){.task = *task, .name = name};
}

static void thread_name_follow(struct keep *keep, const struct waffle_rec_thread_name *name)
{
	uint32_t index = map_get(&keep->task_at, name->rec.tid);

	if (index != MAP_NONE && keep->tasks.data[index].task.start_ts == name->start_ts)
		keep->tasks.data[index].name = *name;
}

static void track_follow(struct keep *keep, const struct waffle_rec_track *track)
{
	uint32_t index = map_get(&keep->track_at, track_key(track));
	struct kept_track kept = {.track = *track};

	map_set(&keep->track_of, track->tgid, 1);
	if (index != MAP_NONE)
		keep->tracks.data[index] = kept;
	else if (keep->tracks.len < TRACKS_MAX && vec_push(&keep->tracks, kept) &&
		 !map_set(&keep->track_at, track_key(track), (uint32_t)keep->tracks.len - 1))
		keep->tracks.len--;
}

/* The end of a thread, and of what its process has left open. */
static void exit_follow(struct keep *keep, const struct waffle_rec_exit *end)
{
	uint32_t index = map_get(&keep->task_at, end->rec.tid);

	if (index != MAP_NONE && end->rec.kind == WAFFLE_REC_EXIT)
		keep->tasks.data[index].ended = keep_current(keep);
	if (end->rec.tid != end->tgid && end->rec.kind == WAFFLE_REC_EXIT)
		return;
	for (index = map_remove(&keep->open_of, end->tgid); index != MAP_NONE;
	     index = keep->begins.data[index].older)
		keep->begins.data[index].ended = keep_current(keep);
	if (map_remove(&keep->track_of, end->tgid) == MAP_NONE)
		return;
	for (size_t i = 0; i < keep->tracks.len; i++)
		if (keep->tracks.data[i].track.tgid == end->tgid && !keep->tracks.data[i].ended)
			keep->tracks.data[i].ended = keep_current(keep);
}

static void frequency_follow(struct keep *keep, const struct waffle_rec_frequency *frequency)
{
	size_t cpu = frequency->rec.cpu, len = keep->frequencies.len;

	if (cpu >= CPUS_MAX || (cpu >= len && !vec_reserve(&keep->frequencies, cpu + 1 - len)))
		return;
	for (; keep->frequencies.len <= cpu; keep->frequencies.len++)
		keep->frequencies.data[keep->frequencies.len] = (struct waffle_rec_frequency){0};
	keep->frequencies.data[cpu] = *frequency;
}

bool keep_site(struct keep *keep, const struct site_info *site)
{
	return vec_push(&keep->spans, site->kind == WAFFLE_SITE_SPAN);
}

static bool begins_have_room(const struct keep *keep, size_t bytes)
{
	return keep->begin_count < BEGINS_MAX && keep->begin_bytes + bytes <= BEGIN_BYTES_MAX;
}

/* Makes room for a begin. Spans that were left by longjmp() never end, so others have to give
 * way. */
static bool begins_make_room(struct keep *keep, size_t bytes)
{
	size_t tries = keep->begins.len;

	if (begins_have_room(keep, bytes))
		return true;
	do
		keep->victim = keep->victim + 1 < keep->begins.len ? keep->victim + 1 : 0;
	while (tries-- && !keep->begins.data[keep->victim].hit);
	if (keep->begins.data[keep->victim].hit)
		begin_remove(keep, (uint32_t)keep->victim);
	return begins_have_room(keep, bytes);
}

/* The span of a track is delivered when it is complete, and would be the thread's without the
 * ON_TRACK record before it. */
static void begin_follow(struct keep *keep, const struct waffle_rec_hit *hit)
{
	const struct waffle_frame *frame = (const void *)(hit + 1);
	size_t bytes = sizeof(*hit) + hit->frame_bytes;
	struct kept_begin begin = {.began = keep_current(keep)};
	uint32_t index;

	if (hit->site >= keep->spans.len || !keep->spans.data[hit->site] ||
	    hit->frame_bytes < sizeof(*frame) || !frame->id || frame->id == keep->on_track ||
	    map_get(&keep->begin_at, frame->id) != MAP_NONE || !begins_make_room(keep, bytes))
		return;
	begin.id = frame->id;
	begin.hit = malloc((bytes + 7) & ~(size_t)7);
	if (!begin.hit)
		return;
	memcpy(begin.hit, hit, (bytes + 7) & ~(size_t)7);
	if (keep->begin_count < keep->begins.len) {
		index = keep->free_begin;
		keep->free_begin = keep->begins.data[index].younger;
	} else if (vec_push(&keep->begins, begin)) {
		index = (uint32_t)keep->begins.len - 1;
	} else {
		free(begin.hit);
		return;
	}
	keep->begins.data[index] = begin;
	keep->begin_count++;
	keep->begin_bytes += bytes;
	if (!open_link(keep, index))
		keep->begins.data[index].ended = keep_current(keep);
	else if (map_set(&keep->begin_at, frame->id, index))
		return;
	begin_remove(keep, index);
}

/* A span that ends in the segment in which it began is dropped with it. */
static void end_follow(struct keep *keep, uint64_t id)
{
	uint32_t index = map_get(&keep->begin_at, id);

	if (index == MAP_NONE)
		return;
	if (keep->begins.data[index].began == keep_current(keep)) {
		begin_remove(keep, index);
		return;
	}
	if (!keep->begins.data[index].ended)
		open_unlink(keep, index);
	keep->begins.data[index].ended = keep_current(keep);
	map_remove(&keep->begin_at, id);
}

void keep_record(struct keep *keep, const struct waffle_rec *rec)
{
	const struct waffle_rec_loss *loss = (const struct waffle_rec_loss *)rec;
	unsigned source = record_source(rec->kind);

	if (source < WAFFLE_SOURCE_COUNT)
		keep->tally.delivered[source]++;
	switch (rec->kind) {
	case WAFFLE_REC_LOSS:
		if (loss->source < WAFFLE_SOURCE_COUNT)
			keep->tally.lost[loss->source] += loss->count;
		break;
	case WAFFLE_REC_TASK:
		task_follow(keep, (const struct waffle_rec_task *)rec);
		break;
	case WAFFLE_REC_THREAD_NAME:
		thread_name_follow(keep, (const struct waffle_rec_thread_name *)rec);
		break;
	case WAFFLE_REC_EXIT:
	case WAFFLE_REC_EXEC:
		exit_follow(keep, (const struct waffle_rec_exit *)rec);
		break;
	case WAFFLE_REC_TRACK:
		track_follow(keep, (const struct waffle_rec_track *)rec);
		break;
	case WAFFLE_REC_ON_TRACK:
		keep->on_track = ((const struct waffle_rec_on_track *)rec)->id;
		break;
	case WAFFLE_REC_FREQUENCY:
		frequency_follow(keep, (const struct waffle_rec_frequency *)rec);
		break;
	case WAFFLE_REC_HIT:
		begin_follow(keep, (const struct waffle_rec_hit *)rec);
		break;
	case WAFFLE_REC_SPAN_END:
		end_follow(keep, ((const struct waffle_rec_span_end *)rec)->span_id);
		break;
	case WAFFLE_REC_RETURN:
		end_follow(keep, ((const struct waffle_rec_return *)rec)->span_id);
		break;
	case WAFFLE_REC_SWITCH: /* the most frequent one, which refers to none */
		break;
	default:
		rows_follow(keep, rec);
		break;
	}
}

/* ---- what precedes the first segment ---- */

static int head_records(const struct kept_segment *segment,
			int (*each)(const struct waffle_rec *rec, void *arg), void *arg)
{
	_Alignas(8) unsigned char record[RECORD_BYTES_MAX];
	int result = 0;

	for (size_t at = 0, size; !result && at < segment->head.len; at += size) {
		size = record_size(segment->head.data + at, segment->head.len - at);
		if (!size)
			break;
		memcpy(record, segment->head.data + at, size);
		result = each((const struct waffle_rec *)record, arg);
	}
	return result;
}

static int task_pass(const struct kept_task *kept,
		     int (*each)(const struct waffle_rec *rec, void *arg), void *arg)
{
	int result = each(&kept->task.rec, arg);

	return !result && kept->name.rec.kind ? each(&kept->name.rec, arg) : result;
}

int keep_each_head(const struct keep *keep, int (*each)(const struct waffle_rec *rec, void *arg),
		   void *arg)
{
	uint64_t from_ts = keep->segments.len ? keep->segments.data[0].from_ts : 0;
	int result = 0;

	for (size_t i = 0; !result && i < keep->tasks.len; i++)
		if (keep->tasks.data[i].task.rec.ts < from_ts)
			result = task_pass(&keep->tasks.data[i], each, arg);
	for (size_t i = 0; !result && i < keep->tracks.len; i++)
		if (keep->tracks.data[i].track.rec.ts < from_ts)
			result = each(&keep->tracks.data[i].track.rec, arg);
	for (size_t i = 0; !result && i < keep->begins.len; i++)
		if (keep->begins.data[i].hit && keep->begins.data[i].began < keep_first(keep))
			result = each(&keep->begins.data[i].hit->rec, arg);
	if (!result && keep->segments.len)
		result = head_records(&keep->segments.data[0], each, arg);
	return result;
}
