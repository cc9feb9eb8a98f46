// SPDX-License-Identifier: Apache-2.0
#include "export/process/joiner_internal.h"

#include <stdlib.h>
#include <string.h>

#include "export/process/joiner_sites_internal.h"
#include "export/process/joiner_threads_internal.h"
#include "export/process/joiner_tracks_internal.h"
#include "store/record.h"
#include "util/map.h"
#include "util/vec.h"

/* Spans that have ended: their children may come later. */
#define RECENT_COUNT 16384u

struct recent {
	uint64_t id, trace_hi, trace_lo;
	uint32_t site;
	int32_t depth;
};

struct joining_span {
	struct joining_span *above, *below; /* the spans of its thread, innermost first */
	struct joining_span *older, *newer; /* all open spans */
	struct joiner_thread *thread;       /* NULL: it is not in the list of a thread */
	uint64_t start_ts;
	uint32_t site, tid, tgid, cpu;
	char comm[WAFFLE_COMM_BYTES];
	const struct joiner_track *track; /* NULL: it is of its thread */
	const char *parent_name;
	int64_t depth;
	struct joiner_times before; /* of its thread, at its begin */
	uint32_t frame_bytes;
	/* A struct waffle_frame and values. */
	uint64_t frame[];
};

struct joiner {
	joiner_deliver deliver;
	void *arg;
	int64_t unix_offset_ns;
	size_t open_bytes, open_max;
	VEC(struct joining_span *) slots;
	VEC(uint32_t) free_slots;
	struct map open; /* span id → slot */
	struct joining_span *oldest, *newest;
	struct joiner_sites *sites;
	struct joiner_threads *threads;
	struct joiner_tracks *tracks;
	struct recent *recent;
	bool has_sched;             /* the scheduler is recorded */
	struct joining_span *brief; /* room for a record that is delivered at once */
	struct joiner_counts counts;
};

struct joiner *joiner_new(size_t open_bytes, joiner_deliver deliver, void *arg)
{
	struct joiner *joiner = calloc(1, sizeof(*joiner));

	if (!joiner)
		return NULL;
	joiner->deliver = deliver;
	joiner->arg = arg;
	joiner->open_max = open_bytes;
	joiner->sites = joiner_sites_new();
	joiner->threads = joiner_threads_new();
	joiner->tracks = joiner_tracks_new();
	joiner->recent = calloc(RECENT_COUNT, sizeof(*joiner->recent));
	joiner->brief = malloc(sizeof(*joiner->brief) + WAFFLE_FRAME_MAX);
	if (joiner->sites && joiner->threads && joiner->tracks && joiner->recent && joiner->brief)
		return joiner;
	joiner_free(joiner);
	return NULL;
}

void joiner_free(struct joiner *joiner)
{
	if (!joiner)
		return;
	for (size_t i = 0; i < joiner->slots.len; i++)
		free(joiner->slots.data[i]);
	vec_free(&joiner->slots);
	vec_free(&joiner->free_slots);
	map_free(&joiner->open);
	joiner_sites_free(joiner->sites);
	joiner_threads_free(joiner->threads);
	joiner_tracks_free(joiner->tracks);
	free(joiner->recent);
	free(joiner->brief);
	free(joiner);
}

void joiner_set_unix_offset(struct joiner *joiner, int64_t offset_ns)
{
	joiner->unix_offset_ns = offset_ns;
}

struct joiner_counts joiner_counts(const struct joiner *joiner)
{
	return joiner->counts;
}

/* ---- the table of open spans ---- */

static struct waffle_frame *frame_of(const struct joining_span *span)
{
	return (struct waffle_frame *)span->frame;
}

static struct joining_span *span_find(const struct joiner *joiner, uint64_t id)
{
	uint32_t slot = map_get(&joiner->open, id);

	return slot == MAP_NONE ? NULL : joiner->slots.data[slot];
}

static struct recent *recent_of(const struct joiner *joiner, uint64_t id)
{
	return &joiner->recent[(id * 0x9e3779b97f4a7c15ull) >> 50];
}
_Static_assert(RECENT_COUNT == 1u << (64 - 50), "the hash fills the table");

void joiner_decode(const struct joiner *joiner, struct full_record *full,
		   struct full_record_values *room)
{
	full_record_decode(full, room);
	for (size_t i = 0; i < full->record.link_count; i++) {
		struct waffle_record_link *link = &room->links[i];
		const struct joining_span *span = span_find(joiner, link->id);
		const struct recent *recent = recent_of(joiner, link->id);

		if (span) {
			link->trace_hi = frame_of(span)->trace_hi;
			link->trace_lo = frame_of(span)->trace_lo;
		} else if (recent->id == link->id) {
			link->trace_hi = recent->trace_hi;
			link->trace_lo = recent->trace_lo;
		}
	}
}

static bool span_insert(struct joiner *joiner, struct joining_span *span, uint64_t id)
{
	bool reused = joiner->free_slots.len;
	uint32_t slot = reused ? joiner->free_slots.data[joiner->free_slots.len - 1]
			       : (uint32_t)joiner->slots.len;

	/* When spans are removed, all slots must find room in the list of free ones. */
	if (!vec_reserve(&joiner->slots, 1) ||
	    !vec_reserve(&joiner->free_slots, joiner->slots.len + 1 - joiner->free_slots.len) ||
	    !map_set(&joiner->open, id, slot))
		return false;
	joiner->free_slots.len -= reused;
	joiner->slots.len += !reused;
	joiner->slots.data[slot] = span;
	span->older = joiner->newest;
	if (joiner->newest)
		joiner->newest->newer = span;
	else
		joiner->oldest = span;
	joiner->newest = span;
	joiner->open_bytes += sizeof(*span) + span->frame_bytes;
	return true;
}

/* Takes a span out of all lists. The caller frees it. */
static void span_remove(struct joiner *joiner, struct joining_span *span)
{
	uint64_t id = frame_of(span)->id;
	uint32_t slot = map_remove(&joiner->open, id);
	struct recent *recent = recent_of(joiner, id);

	joiner->slots.data[slot] = NULL;
	joiner->free_slots.data[joiner->free_slots.len++] = slot;
	*(span->older ? &span->older->newer : &joiner->oldest) = span->newer;
	*(span->newer ? &span->newer->older : &joiner->newest) = span->older;
	joiner->open_bytes -= sizeof(*span) + span->frame_bytes;
	if (span->thread) {
		if (span->above)
			span->above->below = span->below;
		else
			span->thread->top = span->below;
		if (span->below)
			span->below->above = span->above;
	}
	*recent = (struct recent){id, frame_of(span)->trace_hi, frame_of(span)->trace_lo,
				  span->site, span->depth < 0 ? -1 : (int32_t)span->depth};
}

/* ---- delivering ---- */

static enum waffle_record_kind kind_of(const struct site_info *site)
{
	switch (site->kind) {
	case WAFFLE_SITE_SPAN:
		return WAFFLE_RECORD_SPAN;
	case WAFFLE_SITE_COUNTER:
		return WAFFLE_RECORD_COUNTER;
	default:
		return site_kind_is_log(site->kind) ? WAFFLE_RECORD_LOG : WAFFLE_RECORD_EVENT;
	}
}

/* A span that ends on another thread, or on a track, has no times. */
static void times_fill(const struct joiner *joiner, const struct joining_span *span,
		       struct full_record *full)
{
	const struct joiner_thread *thread = joiner_threads_find(joiner->threads, span->tid);
	struct joiner_times times;

	if (!joiner->has_sched || !thread || span->track ||
	    full->record.kind != WAFFLE_RECORD_SPAN ||
	    full->record.flags & (WAFFLE_RECORD_MOVED | WAFFLE_RECORD_UNFINISHED) ||
	    !joiner_sched_known(&thread->sched, span->start_ts))
		return;
	times = joiner_sched_times(&thread->sched, full->record.end_ns);
	full->has_sched = true;
	full->running_ns = times.running_ns - span->before.running_ns;
	full->runnable_ns = times.runnable_ns - span->before.runnable_ns;
}

static void span_deliver(struct joiner *joiner, const struct joining_span *span, uint64_t end_ts,
			 uint32_t end_tid, uint32_t flags)
{
	const struct waffle_frame *frame = frame_of(span);
	const struct site_info *site = joiner_sites_get(joiner->sites, span->site);
	struct full_record full = {
		.record = {.size = sizeof(full.record),
			   .kind = kind_of(site),
			   .flags = flags | (span->tid != end_tid ? WAFFLE_RECORD_MOVED : 0),
			   .name = site->name,
			   .category = site->category,
			   .severity = site_severity(site->kind) ?: "",
			   .file = site->file,
			   .func = site->func,
			   .line = site->line,
			   .cpu = span->cpu,
			   .id = frame->id,
			   .parent = frame->parent,
			   .trace_hi = frame->trace_hi,
			   .trace_lo = frame->trace_lo,
			   .start_ns = span->start_ts,
			   .end_ns = end_ts > span->start_ts ? end_ts : span->start_ts,
			   .unix_offset_ns = joiner->unix_offset_ns,
			   .pid = span->tgid,
			   .tid = span->tid,
			   .end_tid = end_tid,
			   .comm = span->comm,
			   .track = span->track ? span->track->name : "",
			   .track_group = span->track ? span->track->group : ""},
		.site = site,
		.frame = span->frame,
		.frame_bytes = span->frame_bytes,
		.parent_name = span->parent_name,
		.depth = span->depth,
		.simulated = site->simulated,
	};

	times_fill(joiner, span, &full);
	joiner->counts.delivered++;
	joiner->counts.unfinished += !!(flags & WAFFLE_RECORD_UNFINISHED);
	joiner->deliver(&full, joiner->arg);
}

static void oldest_give_up(struct joiner *joiner, uint64_t ts)
{
	struct joining_span *span = joiner->oldest;

	span_remove(joiner, span);
	span_deliver(joiner, span, ts, span->tid, WAFFLE_RECORD_UNFINISHED);
	free(span);
}

void joiner_finish(struct joiner *joiner, uint64_t ts)
{
	while (joiner->oldest)
		oldest_give_up(joiner, ts);
}

/* ---- records ---- */

/* Completes the frame: a call has its parent by thread and time, and its trace from the parent or,
 * without one, a trace of its own. Sets what is known of the parent. */
static void parent_find(const struct joiner *joiner, struct joining_span *span,
			const struct site_info *site, const struct joiner_thread *thread)
{
	struct waffle_frame *frame = frame_of(span);
	bool by_thread = site->call && !site->keyed && !frame->parent && thread;
	const struct joining_span *parent =
		by_thread ? thread->top : span_find(joiner, frame->parent);
	const struct recent *recent = recent_of(joiner, frame->parent);

	if (parent) {
		frame->parent = frame_of(parent)->id;
		span->parent_name = joiner_sites_get(joiner->sites, parent->site)->name;
		span->depth = parent->depth < 0 ? -1 : parent->depth + 1;
		if (!(frame->trace_hi | frame->trace_lo)) {
			frame->trace_hi = frame_of(parent)->trace_hi;
			frame->trace_lo = frame_of(parent)->trace_lo;
		}
	} else if (!frame->parent) {
		span->depth = 0;
	} else if (recent->id == frame->parent) {
		span->parent_name = joiner_sites_get(joiner->sites, recent->site)->name;
		span->depth = recent->depth < 0 ? -1 : recent->depth + 1;
	} else {
		span->depth = -1;
	}
	if (!(frame->trace_hi | frame->trace_lo) && site->kind == WAFFLE_SITE_SPAN)
		frame->trace_lo = frame->id;
}

static void span_fill(struct joining_span *span, const struct waffle_rec_hit *hit,
		      const struct joiner_thread *thread)
{
	*span = (struct joining_span){
		.start_ts = hit->rec.ts,
		.site = hit->site,
		.tid = hit->rec.tid,
		.tgid = hit->tgid,
		.cpu = hit->rec.cpu,
		.frame_bytes = hit->frame_bytes,
	};
	memcpy(span->frame, hit + 1, hit->frame_bytes);
	if (thread)
		memcpy(span->comm, thread->comm, sizeof(span->comm));
}

static void span_begin(struct joiner *joiner, struct joining_span *span,
		       const struct site_info *site, struct joiner_thread *thread)
{
	uint64_t id = frame_of(span)->id;
	struct joining_span *same = span_find(joiner, id);

	if (same) {
		/* Ids are unique, so the program has made this one up, or its end was lost. */
		span_remove(joiner, same);
		span_deliver(joiner, same, span->start_ts, same->tid, WAFFLE_RECORD_UNFINISHED);
		free(same);
	}
	if (!span_insert(joiner, span, id)) {
		joiner->counts.out_of_memory++;
		free(span);
		return;
	}
	if (thread && !site->keyed && !span->track) {
		span->thread = thread;
		span->below = thread->top;
		if (span->below)
			span->below->above = span;
		thread->top = span;
	}
	while (joiner->open_bytes > joiner->open_max && joiner->oldest != span)
		oldest_give_up(joiner, span->start_ts);
}

static void hit_take(struct joiner *joiner, const struct waffle_rec_hit *hit,
		     const struct site_info *info)
{
	const struct site_info *site = joiner_sites_add(joiner->sites, hit->site, info);
	struct joiner_thread *thread;
	struct joining_span *span = joiner->brief;

	if (!site || hit->frame_bytes < sizeof(struct waffle_frame) ||
	    hit->frame_bytes > WAFFLE_FRAME_MAX)
		return;
	if (site->kind == WAFFLE_SITE_SPAN)
		span = malloc(sizeof(*span) + hit->frame_bytes);
	if (!span) {
		joiner->counts.out_of_memory++;
		return;
	}
	thread = joiner_threads_get(joiner->threads, hit->rec.tid, hit->rec.ts);
	span_fill(span, hit, thread);
	if (joiner->has_sched && thread) {
		joiner_sched_hit(&thread->sched, hit->rec.ts);
		span->before = joiner_sched_times(&thread->sched, hit->rec.ts);
	}
	span->track = joiner_tracks_take(joiner->tracks, frame_of(span)->id);
	parent_find(joiner, span, site, thread);
	if (site->kind == WAFFLE_SITE_SPAN)
		span_begin(joiner, span, site, thread);
	else
		span_deliver(joiner, span, hit->rec.ts, hit->rec.tid, 0);
}

static void end_take(struct joiner *joiner, uint64_t id, const struct waffle_rec *rec,
		     uint32_t flags)
{
	struct joining_span *span = span_find(joiner, id);

	if (!span) {
		joiner->counts.ends_alone++;
		return;
	}
	span_remove(joiner, span);
	span_deliver(joiner, span, rec->ts, rec->tid, flags);
	free(span);
}

/* The values of the return follow those of the begin, in the site's order of keys. */
static void return_take(struct joiner *joiner, const struct waffle_rec_return *end)
{
	struct joining_span *span = span_find(joiner, end->span_id), *longer;
	size_t bytes;

	if (!span || !end->frame_bytes || end->frame_bytes > WAFFLE_FRAME_MAX) {
		end_take(joiner, end->span_id, &end->rec,
			 end->flags & WAFFLE_RETURN_LEFT ? WAFFLE_RECORD_LEFT : 0);
		return;
	}
	span_remove(joiner, span);
	bytes = sizeof(*span) + span->frame_bytes + end->frame_bytes;
	longer = realloc(span, bytes);
	if (longer) {
		span = longer;
		memcpy((char *)span->frame + span->frame_bytes, end + 1, end->frame_bytes);
		span->frame_bytes += end->frame_bytes;
	}
	span_deliver(joiner, span, end->rec.ts, end->rec.tid,
		     end->flags & WAFFLE_RETURN_LEFT ? WAFFLE_RECORD_LEFT : 0);
	free(span);
}

/* Its spans may still end on other threads. A new thread with this tid is not inside of them. */
static void thread_end(struct joiner *joiner, const struct waffle_rec *rec)
{
	struct joiner_thread *thread = joiner_threads_get(joiner->threads, rec->tid, rec->ts);

	while (thread && thread->top) {
		struct joining_span *span = thread->top;

		thread->top = span->below;
		span->thread = NULL;
		span->above = span->below = NULL;
	}
	joiner_threads_forget(joiner->threads, rec->tid);
}

/* The program that had the open spans of a process is gone. */
static void program_end(struct joiner *joiner, const struct waffle_rec_exit *exec)
{
	struct joining_span *span = joiner->oldest, *newer;

	for (; span; span = newer) {
		newer = span->newer;
		if (span->tgid != exec->tgid)
			continue;
		span_remove(joiner, span);
		span_deliver(joiner, span, exec->rec.ts, span->tid, WAFFLE_RECORD_UNFINISHED);
		free(span);
	}
}

/* Threads that have reached no site are not looked at. */
static void switch_take(struct joiner *joiner, const struct waffle_rec_switch *rec)
{
	struct joiner_thread *prev = NULL, *next = NULL;

	joiner->has_sched = true;
	if (rec->rec.tid && rec->flags & WAFFLE_SWITCH_PREV_TRACED)
		prev = joiner_threads_find(joiner->threads, rec->rec.tid);
	if (rec->next_tid && rec->flags & WAFFLE_SWITCH_NEXT_TRACED)
		next = joiner_threads_find(joiner->threads, rec->next_tid);
	if (prev)
		joiner_sched_out(&prev->sched, rec);
	if (next)
		joiner_sched_in(&next->sched, rec);
}

static void loss_take(struct joiner *joiner, const struct waffle_rec_loss *loss)
{
	if (loss->source == WAFFLE_SOURCE_SPANS)
		joiner->counts.lost += loss->count;
	else if (loss->source == WAFFLE_SOURCE_SCHED)
		joiner_threads_lost(joiner->threads);
}

void joiner_record(struct joiner *joiner, const struct waffle_rec *rec,
		   const struct site_info *site)
{
	switch (rec->kind) {
	case WAFFLE_REC_HIT:
		hit_take(joiner, (const struct waffle_rec_hit *)rec, site);
		break;
	case WAFFLE_REC_SPAN_END:
		end_take(joiner, ((const struct waffle_rec_span_end *)rec)->span_id, rec, 0);
		break;
	case WAFFLE_REC_RETURN:
		return_take(joiner, (const struct waffle_rec_return *)rec);
		break;
	case WAFFLE_REC_TRACK:
		joiner_tracks_define(joiner->tracks, (const struct waffle_rec_track *)rec);
		break;
	case WAFFLE_REC_ON_TRACK:
		joiner_tracks_announce(joiner->tracks, (const struct waffle_rec_on_track *)rec);
		break;
	case WAFFLE_REC_TASK:
		joiner_threads_name(joiner->threads, rec->tid, rec->ts,
				    ((const struct waffle_rec_task *)rec)->comm);
		break;
	case WAFFLE_REC_EXIT:
		thread_end(joiner, rec);
		break;
	case WAFFLE_REC_EXEC:
		program_end(joiner, (const struct waffle_rec_exit *)rec);
		break;
	case WAFFLE_REC_LOSS:
		loss_take(joiner, (const struct waffle_rec_loss *)rec);
		break;
	case WAFFLE_REC_SWITCH:
		switch_take(joiner, (const struct waffle_rec_switch *)rec);
		break;
	default:
		break;
	}
}
