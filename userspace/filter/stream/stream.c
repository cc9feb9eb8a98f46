// SPDX-License-Identifier: Apache-2.0
#include "filter/stream/stream.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/rate.h"
#include "filter/eval.h"
#include "filter/split.h"
#include "filter/stream/children_internal.h"
#include "filter/stream/names_internal.h"

/* Spans that are older than this may be forgotten when their process needs the room. */
#define LEFT_NS 5000000000ull

struct stream_site {
	const struct site_info *info; /* NULL: its hits are not wanted */
	struct residual residual;     /* FILTER_STREAM_ASKS */
	uint8_t use;                  /* enum filter_stream_use */
	uint8_t size;                 /* enum waffle_deferred_size */
	bool is_span;
	bool asks_comm;
};

struct filter_stream {
	struct filter_stream_options options;
	/* No decisions at hits, and nothing to know of spans: only sites decide. */
	bool is_static;
	bool follows;    /* depths and parents are needed */
	bool arms_spans; /* all spans are armed: see struct plan */
	bool asks_comm;
	VEC(struct stream_site) sites;
	struct stream_processes processes;
	struct stream_spans spans;
	struct stream_buffers buffers;
	struct stream_names names;
	uint64_t now; /* see filter_stream_hit() */
	struct filter_rate_state rate;
	struct filter_stream_counts counts;
};

/* A hit that is being decided. */
struct stream_hit {
	struct waffle_rec_hit *rec;
	const struct stream_site *site;
	struct waffle_frame head;
	struct stream_span *parent; /* NULL: none, or it is not known */
	uint32_t depth;             /* WAFFLE_DEPTH_UNKNOWN */
};

static uint64_t thread_key(uint32_t tgid, uint32_t tid)
{
	return (uint64_t)tgid << 32 | tid;
}

static void deliver(struct filter_stream *stream, struct waffle_rec *rec)
{
	stream->counts.delivered++;
	stream->options.deliver(rec, stream->options.arg);
}

static void lose(struct filter_stream *stream, uint64_t count)
{
	stream->counts.lost += count;
}

static bool rate_take(struct filter_stream *stream)
{
	const struct filter_rate *rate = &stream->options.filter->rate;

	if (!rate->unit_ns)
		return true;
	return stream->options.rate_windows
		       ? waffle_rate_take((__u64 *)stream->options.rate_windows, rate->unit_ns,
					  rate->count, stream->now)
		       : filter_rate_take(rate, &stream->rate, stream->now);
}

/* ---- opening and closing ---- */

int filter_stream_open(struct filter_stream **result, const struct filter_stream_options *options,
		       struct error *err)
{
	const struct filter_expr *filter = options->filter;
	struct filter_stream *stream = calloc(1, sizeof(*stream));

	*result = NULL;
	if (!stream)
		return error_set(err, ENOMEM, "filter: out of memory");
	stream->options = *options;
	stream->is_static = !filter;
	if (filter) {
		bool tracks = filter_uses(filter, FILTER_DEPTH) ||
			      filter_uses(filter, FILTER_PARENT_NAME);

		stream->is_static = filter_asks_sites_only(filter) && !options->keep_children;
		stream->follows = tracks || options->keep_children;
		stream->arms_spans = tracks || filter_samples(filter);
		stream->asks_comm = filter_uses(filter, FILTER_COMM);
	}
	*result = stream;
	return 0;
}

void filter_stream_free(struct filter_stream *stream)
{
	if (!stream)
		return;
	for (size_t i = 0; i < stream->sites.len; i++)
		residual_free(&stream->sites.data[i].residual);
	vec_free(&stream->sites);
	stream_buffers_free(&stream->buffers);
	stream_spans_free(&stream->spans);
	stream_processes_free(&stream->processes);
	stream_names_free(&stream->names);
	free(stream);
}

/* ---- sites ---- */

static enum filter_stream_use use_of(const struct filter_stream *stream,
				     const struct residual *residual, const struct site_info *site)
{
	switch (residual->nodes.data[residual->nodes.len - 1].type) {
	case FILTER_TRUE:
		return FILTER_STREAM_ALWAYS;
	case FILTER_FALSE:
		return stream->options.keep_children ||
				       (stream->arms_spans && site->kind == WAFFLE_SITE_SPAN)
			       ? FILTER_STREAM_CONTEXT
			       : FILTER_STREAM_DORMANT;
	default:
		return FILTER_STREAM_ASKS;
	}
}

enum filter_stream_use filter_stream_use(const struct filter_stream *stream,
					 const struct site_info *site)
{
	enum filter_stream_use use = FILTER_STREAM_ASKS;
	struct residual residual;

	if (!stream->options.filter)
		return FILTER_STREAM_ALWAYS;
	/* Without memory the site is armed, and filter_stream_add_site() fails. */
	if (residual_make(&residual, stream->options.filter, site)) {
		use = use_of(stream, &residual, site);
		residual_free(&residual);
	}
	return use;
}

static bool is_decided(const struct filter_stream *stream, const struct site_info *site)
{
	return !site->call || stream->options.decides_calls;
}

bool filter_stream_add_site(struct filter_stream *stream, const struct site_info *info)
{
	const struct filter_expr *filter = stream->options.filter;
	struct stream_site site = {.info = info, .use = FILTER_STREAM_ALWAYS};

	if (!info) {
		site.use = FILTER_STREAM_DORMANT;
	} else {
		site.is_span = info->kind == WAFFLE_SITE_SPAN;
		site.size = (uint8_t)site_deferred_size(info);
	}
	if (info && filter && is_decided(stream, info)) {
		if (!residual_make(&site.residual, filter, info))
			return false;
		site.use = (uint8_t)use_of(stream, &site.residual, info);
		site.asks_comm = residual_uses(filter, &site.residual, FILTER_COMM);
	}
	if (vec_push(&stream->sites, site))
		return true;
	residual_free(&site.residual);
	return false;
}

/* ---- threads ---- */

void filter_stream_name(struct filter_stream *stream, uint32_t tgid, uint32_t tid,
			const char comm[WAFFLE_COMM_BYTES])
{
	if (stream->asks_comm)
		stream_name_set(&stream->names, thread_key(tgid, tid), comm);
}

/* If another thread must still end spans that its buffer holds, it stays while the process lives.
 */
void filter_stream_thread_exit(struct filter_stream *stream, uint32_t tgid, uint32_t tid)
{
	struct stream_process *process = stream_process_get(&stream->processes, tgid);
	struct stream_buffer *buffer = stream_buffer_get(&stream->buffers, thread_key(tgid, tid));

	stream_name_remove(&stream->names, thread_key(tgid, tid));
	if (process && buffer && !buffer->deferred)
		stream_buffer_remove(&stream->buffers, process, buffer);
}

void filter_stream_process_exit(struct filter_stream *stream, uint32_t tgid)
{
	struct stream_process *process = stream_process_get(&stream->processes, tgid);

	while (process && process->oldest != STREAM_NONE)
		stream_span_remove(&stream->spans, process,
				   &stream->spans.list.data[process->oldest]);
	while (process && process->buffers)
		stream_buffer_remove(&stream->buffers, process, process->buffers);
}

/* ---- open spans ---- */

static struct stream_buffer *buffer_of(struct filter_stream *stream, const struct stream_span *span)
{
	return stream_buffer_get(&stream->buffers, thread_key(span->tgid, span->tid));
}

static void slot_free(struct filter_stream *stream, const struct stream_span *span)
{
	struct stream_buffer *buffer =
		span->slot < WAFFLE_CHILD_SLOTS ? buffer_of(stream, span) : NULL;

	if (buffer)
		buffer->deferred &= ~(1ull << span->slot);
}

static void span_remove(struct filter_stream *stream, struct stream_span *span)
{
	stream_span_remove(&stream->spans, stream_process_get(&stream->processes, span->tgid),
			   span);
}

static const uint32_t deferred_max[WAFFLE_DEFERRED_SIZE_COUNT] = {
	[WAFFLE_DEFERRED_SMALL] = WAFFLE_DEFERRED_SMALL_MAX,
	[WAFFLE_DEFERRED_MEDIUM] = WAFFLE_DEFERRED_MEDIUM_MAX,
	[WAFFLE_DEFERRED_LARGE] = WAFFLE_DEFERRED_LARGE_MAX,
};

static bool is_in_the_way(const struct stream_process *process, const struct stream_span *span)
{
	return process->open > WAFFLE_OPEN_MAX / 2 ||
	       (span->state == WAFFLE_OPEN_DEFERRED &&
		process->deferred[span->size] > deferred_max[span->size] / 2);
}

/*
 * Forgets old spans of a process to make room: probably they were left by longjmp(), or their ends
 * were lost. The kernel's sweep knows more of them (kernel/sweep.c), by the stack pointers that
 * records in a ring do not have.
 */
static void process_sweep(struct filter_stream *stream, struct stream_process *process)
{
	uint32_t next = process->oldest;

	stream_process_earn(process);
	if (process->credit < process->open)
		return;
	while (next != STREAM_NONE) {
		struct stream_span *span = &stream->spans.list.data[next];

		process->credit--;
		if (stream->now < span->began + LEFT_NS)
			return;
		next = span->younger;
		if (!is_in_the_way(process, span))
			continue;
		if (span->state != WAFFLE_OPEN_REJECTED)
			lose(stream, 1); /* its end, or all of it */
		slot_free(stream, span);
		stream_span_remove(&stream->spans, process, span);
	}
}

static struct stream_span span_make(const struct filter_stream *stream,
				    const struct stream_hit *hit)
{
	return (struct stream_span){
		.id = hit->head.id,
		.ts = hit->rec->rec.ts,
		.began = stream->now,
		.tgid = hit->rec->tgid,
		.tid = hit->rec->rec.tid,
		.site = hit->rec->site,
		.parent_site = hit->parent ? hit->parent->site : STREAM_NONE,
		.depth = hit->depth,
		.slot = WAFFLE_SLOT_NONE,
	};
}

/* Invalidates pointers to spans and processes. */
static bool span_open(struct filter_stream *stream, struct stream_span *span,
		      enum waffle_open_state state)
{
	struct stream_process *process = stream_process_make(&stream->processes, span->tgid);

	span->state = (uint8_t)state;
	if (!process)
		return false;
	if (process->open >= WAFFLE_OPEN_MAX)
		process_sweep(stream, process);
	return process->open < WAFFLE_OPEN_MAX && stream_span_add(&stream->spans, process, span);
}

/* Delivers the begin of a span that passes. */
static void span_keep(struct filter_stream *stream, const struct stream_hit *hit,
		      struct stream_span *span)
{
	if (span_open(stream, span, WAFFLE_OPEN_KEPT))
		deliver(stream, &hit->rec->rec);
	else
		lose(stream, 1);
}

static void hit_keep(struct filter_stream *stream, const struct stream_hit *hit,
		     struct stream_span *span)
{
	if (hit->site->is_span)
		span_keep(stream, hit, span);
	else
		deliver(stream, &hit->rec->rec);
}

/* ---- children ---- */

static bool is_own(const struct stream_span *span, const struct waffle_rec *rec, uint32_t tgid)
{
	return span->tid == rec->tid && span->tgid == tgid;
}

/* The deferred spans around a child of `span`: those around it, and itself if it is deferred. */
static uint64_t span_inside(const struct stream_span *span)
{
	uint64_t own = span->state == WAFFLE_OPEN_DEFERRED && span->slot < WAFFLE_CHILD_SLOTS
			       ? 1ull << span->slot
			       : 0;

	return span->inside | own;
}

/*
 * Finds the verdict of the deferred spans around a record; NULL: there are none. They are in the
 * buffer of the thread that began the parent. A record of another thread can't be buffered there.
 * If they are not decided yet, it counts as lost if they pass.
 */
static struct stream_buffer *children_verdict(struct filter_stream *stream,
					      const struct stream_hit *hit,
					      struct stream_verdict *verdict)
{
	struct stream_span *parent = hit->parent;
	bool own = is_own(parent, &hit->rec->rec, hit->rec->tgid);
	uint64_t inside = span_inside(parent);
	struct stream_buffer *buffer = inside ? buffer_of(stream, parent) : NULL;

	if (!buffer || (!own && parent->state == WAFFLE_OPEN_DEFERRED)) {
		if (parent->state == WAFFLE_OPEN_DEFERRED)
			parent->lost++;
		return NULL;
	}
	*verdict = stream_verdict(buffer, inside, parent->born);
	if (own || verdict->kept)
		return buffer;
	if (verdict->pending)
		stream_slot_lose(buffer, verdict->innermost, 1);
	return NULL;
}

/* Keeps a child of a kept span, or buffers that of a deferred one. Returns whether it was kept; for
 * others *state is what is known of a span. */
static bool child_take(struct filter_stream *stream, const struct stream_hit *hit,
		       struct stream_span *span, enum waffle_open_state *state)
{
	struct stream_verdict verdict;
	struct stream_buffer *buffer;

	if (!stream->options.keep_children || !hit->parent)
		return false;
	if (hit->parent->state == WAFFLE_OPEN_KEPT) {
		hit_keep(stream, hit, span);
		return true;
	}
	buffer = children_verdict(stream, hit, &verdict);
	if (buffer && verdict.kept) {
		hit_keep(stream, hit, span);
		return true;
	}
	if (buffer && verdict.pending) {
		span->inside = verdict.pending;
		span->position = buffer->head;
		span->born = buffer->clock;
		if (stream_child_add_hit(buffer, &verdict, hit->rec,
					 hit->site->is_span ? span->id : 0))
			*state = WAFFLE_OPEN_BUFFERED;
	}
	return false;
}

/* ---- hits ---- */

/* A hit that does not pass: it may be a parent of others, or a child of a kept span. */
static void hit_reject(struct filter_stream *stream, const struct stream_hit *hit)
{
	enum waffle_open_state state = WAFFLE_OPEN_REJECTED;
	struct stream_span span;

	if (!stream->follows || (!hit->site->is_span && !stream->options.keep_children))
		return;
	span = span_make(stream, hit);
	if (child_take(stream, hit, &span, &state))
		return;
	/* If it finds no room, its children will seem to have an unknown parent. */
	if (hit->site->is_span && !span_open(stream, &span, state))
		lose(stream, 1);
}

static void hit_accept(struct filter_stream *stream, const struct stream_hit *hit)
{
	struct stream_span span = span_make(stream, hit);

	if (rate_take(stream))
		hit_keep(stream, hit, &span);
	else
		hit_reject(stream, hit);
}

/* Finds the deferred spans around a span that will be deferred, and takes a slot for those inside
 * it. False: one of them was kept, so that this one passes at once. */
static bool defer_place(struct filter_stream *stream, const struct stream_hit *hit,
			struct stream_span *span)
{
	struct stream_process *process = stream_process_make(&stream->processes, span->tgid);
	struct stream_buffer *buffer =
		process ? stream_buffer_make(&stream->buffers, process,
					     thread_key(span->tgid, span->tid))
			: NULL;
	struct stream_span *parent = hit->parent;

	if (!buffer)
		return true;
	if (parent && span_inside(parent) && is_own(parent, &hit->rec->rec, span->tgid)) {
		struct stream_verdict verdict =
			stream_verdict(buffer, span_inside(parent), parent->born);

		if (verdict.kept)
			return false;
		span->inside = verdict.pending;
	}
	stream_slot_take(buffer, span);
	return true;
}

/* Copies the begin of a span. NULL: too many are deferred. */
static struct stream_begin *begin_take(struct filter_stream *stream, const struct stream_hit *hit)
{
	struct stream_process *process = stream_process_make(&stream->processes, hit->rec->tgid);
	unsigned size = hit->site->size;
	struct stream_begin *begin;
	const char *comm = NULL;

	if (process && process->deferred[size] >= deferred_max[size])
		process_sweep(stream, process);
	if (!process || process->deferred[size] >= deferred_max[size])
		return NULL;
	begin = stream_begin_make(&stream->spans, size, hit->rec);
	if (begin && hit->site->asks_comm)
		comm = stream_name_get(&stream->names,
				       thread_key(hit->rec->tgid, hit->rec->rec.tid));
	if (begin)
		begin->has_comm = comm;
	if (comm)
		memcpy(begin->comm, comm, sizeof(begin->comm));
	return begin;
}

static void hit_defer(struct filter_stream *stream, const struct stream_hit *hit)
{
	bool kept = stream->options.keep_children && hit->parent &&
		    hit->parent->state == WAFFLE_OPEN_KEPT;
	struct stream_span span = span_make(stream, hit);

	span.size = hit->site->size;
	if (kept || (stream->options.keep_children && !defer_place(stream, hit, &span))) {
		span_keep(stream, hit, &span);
		return;
	}
	span.begin = begin_take(stream, hit);
	if (span.begin && span_open(stream, &span, WAFFLE_OPEN_DEFERRED))
		return;
	stream_begin_free(&stream->spans, span.size, span.begin);
	slot_free(stream, &span);
	lose(stream, 1);
}

/* What an expression asks of a hit that is in the stream, or was. */
static struct filter_subject subject_make(struct filter_stream *stream,
					  const struct waffle_rec_hit *rec, uint32_t parent_site,
					  uint32_t depth)
{
	return (struct filter_subject){
		.site = stream->sites.data[rec->site].info,
		.frame = rec + 1,
		.frame_bytes = rec->frame_bytes,
		.pid = rec->tgid,
		.tid = rec->rec.tid,
		.cpu = rec->rec.cpu,
		.depth = depth == WAFFLE_DEPTH_UNKNOWN ? -1 : (int64_t)depth,
		.parent_name = parent_site == STREAM_NONE
				       ? NULL
				       : stream->sites.data[parent_site].info->name,
	};
}

static enum filter_truth site_evaluate(const struct filter_stream *stream,
				       const struct stream_site *site,
				       const struct filter_subject *subject)
{
	return filter_eval_nodes(stream->options.filter, site->residual.nodes.data,
				 (uint32_t)site->residual.nodes.len - 1, subject);
}

static enum filter_truth hit_evaluate(struct filter_stream *stream, const struct stream_hit *hit)
{
	struct filter_subject subject;

	if (hit->site->use != FILTER_STREAM_ASKS)
		return hit->site->use == FILTER_STREAM_ALWAYS ? FILTER_YES : FILTER_NO;
	subject = subject_make(stream, hit->rec, hit->parent ? hit->parent->site : STREAM_NONE,
			       hit->depth);
	if (hit->site->asks_comm)
		subject.comm = stream_name_get(&stream->names,
					       thread_key(hit->rec->tgid, hit->rec->rec.tid));
	return site_evaluate(stream, hit->site, &subject);
}

static void hit_relate(struct filter_stream *stream, struct stream_hit *hit)
{
	hit->depth = WAFFLE_DEPTH_UNKNOWN;
	if (hit->rec->frame_bytes < sizeof(hit->head))
		return;
	memcpy(&hit->head, hit->rec + 1, sizeof(hit->head));
	if (!stream->follows)
		return;
	if (!hit->head.parent) {
		hit->depth = 0;
		return;
	}
	hit->parent = stream_span_get(&stream->spans, hit->head.parent);
	if (hit->parent && hit->parent->depth != WAFFLE_DEPTH_UNKNOWN)
		hit->depth = hit->parent->depth + 1;
}

void filter_stream_hit(struct filter_stream *stream, struct waffle_rec_hit *rec, uint64_t now)
{
	struct stream_hit hit = {.rec = rec};

	if (rec->site >= stream->sites.len)
		return;
	hit.site = &stream->sites.data[rec->site];
	if (hit.site->use == FILTER_STREAM_DORMANT)
		return;
	if (stream->is_static || !is_decided(stream, hit.site->info)) {
		deliver(stream, &rec->rec);
		return;
	}
	stream->now = now;
	hit_relate(stream, &hit);
	switch (hit_evaluate(stream, &hit)) {
	case FILTER_YES:
		hit_accept(stream, &hit);
		break;
	case FILTER_UNKNOWN:
		hit_defer(stream, &hit);
		break;
	default:
		hit_reject(stream, &hit);
	}
}

/* ---- ends ---- */

/* The end of a span whose begin is in the buffer of its thread. */
static void buffered_end(struct filter_stream *stream, const struct stream_span *span,
			 const struct waffle_rec_span_end *end)
{
	struct stream_buffer *buffer = buffer_of(stream, span);
	struct stream_verdict verdict;

	if (!buffer)
		return;
	verdict = stream_verdict(buffer, span->inside, span->born);
	if (verdict.kept) /* then its begin was already overwritten */
		lose(stream, 1);
	else if (!verdict.pending)
		return;
	else if (span->tid != end->rec.tid || buffer->head - span->position > WAFFLE_CHILD_COUNT)
		stream_slot_lose(buffer, verdict.innermost, 1);
	else
		stream_child_add_end(buffer, &verdict, end, span->position);
}

/* Delivers the buffered records of a deferred span, which passes. */
static void children_release(struct filter_stream *stream, struct stream_span *span, bool other)
{
	struct stream_buffer *buffer =
		span->slot < WAFFLE_CHILD_SLOTS ? buffer_of(stream, span) : NULL;
	struct stream_child *taken[WAFFLE_CHILD_COUNT];
	uint64_t lost = 0;
	uint32_t len = buffer ? stream_children_take(buffer, span->slot, other, taken, &lost) : 0;

	lose(stream, lost + span->lost);
	for (uint32_t i = 0; i < len; i++) {
		struct stream_span *inner =
			taken[i]->span ? stream_span_get(&stream->spans, taken[i]->span) : NULL;

		if (inner && inner->state == WAFFLE_OPEN_BUFFERED)
			inner->state = WAFFLE_OPEN_KEPT;
		deliver(stream, (struct waffle_rec *)taken[i]->record);
	}
}

/* Delivers a deferred span that passes: its begin, its buffered records, and its end. */
static void release(struct filter_stream *stream, struct stream_span *span,
		    struct waffle_rec_span_end *end)
{
	deliver(stream, &span->begin->hit.rec);
	if (stream->options.keep_children)
		children_release(stream, span, span->tid != end->rec.tid);
	deliver(stream, &end->rec);
}

/* keep_children: a deferred span that does not pass may be inside one that does, or that is not
 * decided yet. True: one around it passed, so it must be released. */
static bool children_discard(struct filter_stream *stream, struct stream_span *span,
			     const struct waffle_rec_span_end *end)
{
	struct stream_buffer *buffer = buffer_of(stream, span);
	struct stream_verdict verdict;
	uint32_t position, lost = span->lost;

	if (!buffer)
		return false;
	verdict = stream_verdict(buffer, span->inside, span->born);
	if (verdict.kept)
		return true;
	if (span->slot < WAFFLE_CHILD_SLOTS) {
		buffer->deferred &= ~(1ull << span->slot);
		lost += buffer->slots[span->slot].lost;
	}
	if (!verdict.pending)
		return false;
	position = buffer->head;
	if (span->tid != end->rec.tid)
		lost += 2;
	else if (stream_child_add_hit(buffer, &verdict, &span->begin->hit, span->id))
		stream_child_add_end(buffer, &verdict, end, position);
	else
		lost++;
	stream_slot_lose(buffer, verdict.innermost, lost);
	return false;
}

/* The end of a deferred span, which decides. */
static void deferred_end(struct filter_stream *stream, struct stream_span *span,
			 struct waffle_rec_span_end *end)
{
	const struct stream_begin *begin = span->begin;
	struct filter_subject subject =
		subject_make(stream, &begin->hit, span->parent_site, span->depth);

	subject.comm = begin->has_comm ? begin->comm : NULL;
	subject.ended = true;
	subject.dur_ns = end->rec.ts > span->ts ? end->rec.ts - span->ts : 0;
	if (site_evaluate(stream, &stream->sites.data[span->site], &subject) == FILTER_YES &&
	    rate_take(stream))
		release(stream, span, end);
	else if (stream->options.keep_children && children_discard(stream, span, end))
		release(stream, span, end);
}

static void static_end(struct filter_stream *stream, struct waffle_rec_span_end *end)
{
	/* Another tracer may have armed a site that this filter rejects. */
	if (end->site >= stream->sites.len ||
	    stream->sites.data[end->site].use != FILTER_STREAM_DORMANT)
		deliver(stream, &end->rec);
}

void filter_stream_end(struct filter_stream *stream, struct waffle_rec_span_end *end, uint64_t now)
{
	struct stream_span *span;

	if (stream->is_static) {
		static_end(stream, end);
		return;
	}
	span = stream_span_get(&stream->spans, end->span_id);
	/* A child process has copies of the spans that were open at the fork. */
	if (!span || span->tgid != end->tgid)
		return;
	stream->now = now;
	if (span->state == WAFFLE_OPEN_DEFERRED)
		deferred_end(stream, span, end);
	else if (span->state == WAFFLE_OPEN_KEPT)
		deliver(stream, &end->rec);
	else if (span->state == WAFFLE_OPEN_BUFFERED)
		buffered_end(stream, span, end);
	span_remove(stream, span);
}

struct filter_stream_counts filter_stream_counts(const struct filter_stream *stream)
{
	struct filter_stream_counts counts = stream->counts;

	counts.open = stream->spans.by_id.len;
	return counts;
}
