// SPDX-License-Identifier: Apache-2.0
/* Perfetto's native format, as packets that are written as they come. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "export/perfetto/encoder.h"
#include "export/perfetto/track_pools.h"
#include "usdt/sink/timeline_sink.h"
#include "util/memory.h"

struct perfetto_thread {
	uint32_t tid; /* the number may have been another thread's */
	uint64_t uuid;
	struct sequence sequence; /* id 0: not begun */
	uint64_t parent;          /* of a track: that of its group or process; 0: a thread */
	uint32_t name;            /* of a track: interned */
};

struct perfetto_stream {
	struct pf_encoder encoder;
	uint32_t pid;
	uint64_t process; /* its track */
	VEC(struct perfetto_thread) threads;
	struct track_pools pools;
	struct map counters;      /* interned name → track */
	struct map groups;        /* interned name → track */
	uint64_t last_ts;         /* the latest time of a track */
	struct sequence anywhere; /* for spans aside, counters and arrows */
	struct sequence lost;     /* id 0: nothing was lost so far */
	uint64_t lost_count;
	char *command;
};

static struct sequence *thread_sequence(struct perfetto_stream *p, uint32_t thread)
{
	struct perfetto_thread *one = &p->threads.data[thread];

	if (!one->sequence.id)
		one->sequence = sequence_begin(&p->encoder, one->uuid, false); /* some come late */
	return &one->sequence;
}

static void perfetto_site(void *arg, const struct site_info *site)
{
	struct perfetto_stream *p = arg;

	names_add_site(&p->encoder, site);
}

static void process_describe(struct perfetto_stream *p, const char *name)
{
	struct track_names names = {
		.uuid = p->process,
		.ts = p->encoder.start_ts,
		.pid = p->pid,
		.cmdline = p->command,
		.name = name,
	};

	track_describe_process(&p->encoder, &names);
}

static void perfetto_thread(void *arg, uint32_t thread, uint32_t tid, const char *name, uint64_t ts)
{
	struct perfetto_stream *p = arg;
	struct track_names names = {.ts = ts, .pid = p->pid, .tid = tid, .name = name};

	while (p->threads.len <= thread)
		vec_add(&p->threads, (struct perfetto_thread){.uuid = 0});
	if (p->threads.data[thread].tid != tid)
		p->threads.data[thread] =
			(struct perfetto_thread){.tid = tid, .uuid = ++p->encoder.next_uuid};
	names.uuid = p->threads.data[thread].uuid;
	track_describe_thread(&p->encoder, &names, p->process);
	if (tid == p->pid)
		process_describe(p, name);
}

/* The track that holds those of a group. */
static uint64_t group_get(struct perfetto_stream *p, const char *group)
{
	uint32_t name = *group ? names_own(&p->encoder, group) : 0;
	uint32_t uuid = name ? map_get(&p->groups, name) : (uint32_t)p->process;

	if (uuid != MAP_NONE)
		return uuid;
	uuid = (uint32_t)++p->encoder.next_uuid;
	map_put(&p->groups, name, uuid);
	track_describe(&p->encoder, uuid, p->process, group, false, p->encoder.start_ts);
	return uuid;
}

static void perfetto_track(void *arg, uint32_t thread, const struct timeline_track *track)
{
	struct perfetto_stream *p = arg;
	struct perfetto_thread *one;

	while (p->threads.len <= thread)
		vec_add(&p->threads, (struct perfetto_thread){.uuid = 0});
	one = &p->threads.data[thread];
	if (one->tid != track->tid)
		*one = (struct perfetto_thread){.tid = track->tid, .uuid = ++p->encoder.next_uuid};
	one->parent = group_get(p, track->group);
	one->name = names_own(&p->encoder, track->name);
	track_describe(&p->encoder, one->uuid, one->parent, track->name, false,
		       p->encoder.start_ts);
}

/* A track's times may be after the end of the recording. */
static void time_note(struct perfetto_stream *p, uint64_t ts)
{
	if (ts != TIMELINE_OPEN && ts > p->last_ts)
		p->last_ts = ts;
}

/* An arrow from a slice that is in the file already begins at a mark in it. */
static void cause_mark(struct perfetto_stream *p, const struct timeline_flow *flow)
{
	struct site_names names = {
		.name = names_own(&p->encoder, "cause"),
		.category = names_own(&p->encoder, "waffle"),
	};

	event_begin(&p->encoder, &p->anywhere, PF__EVENT_TYPE__INSTANT,
		    p->threads.data[flow->cause_thread].uuid, flow->cause_ts);
	event_site(&p->encoder, &p->anywhere, &names);
	event_pointer(&p->encoder, &p->anywhere, names_own(&p->encoder, "id"), flow->cause_id);
	event_add_flow(&p->encoder, flow->id, false);
	event_put(&p->encoder);
}

/* Adds the arrows to the event that is being built, and finishes it. */
static void node_put(struct perfetto_stream *p, const struct timeline_node *node)
{
	for (size_t i = 0; i < node->flow_count; i++)
		event_add_flow(&p->encoder, node->flows[i].id, node->flows[i].ends);
	event_put(&p->encoder);
	for (size_t i = 0; i < node->flow_count; i++)
		if (node->flows[i].alone)
			cause_mark(p, &node->flows[i]);
}

static void perfetto_begin(void *arg, const struct timeline_node *span)
{
	struct perfetto_stream *p = arg;

	slice_begin(&p->encoder, thread_sequence(p, span->thread), 0,
		    names_of_site(&p->encoder, span->site), &span->node, false);
	node_put(p, span);
}

/* Writes the end of a slice whose begin was written before that was known. */
static void later_end_put(struct perfetto_stream *p, struct sequence *sequence,
			  const struct timeline_node *span, uint64_t uuid)
{
	(span->node.unfinished ? slice_leave_put : slice_end_put)(&p->encoder, sequence,
								  span->end_ts, uuid);
}

static void perfetto_end(void *arg, const struct timeline_node *span, bool whole)
{
	struct perfetto_stream *p = arg;

	time_note(p, span->end_ts);
	if (whole)
		slice_end_put(&p->encoder, thread_sequence(p, span->thread), span->end_ts, 0);
	else
		later_end_put(p, thread_sequence(p, span->thread), span, 0);
}

static uint64_t perfetto_aside(void *arg, const struct timeline_node *span)
{
	struct perfetto_stream *p = arg;
	const struct site_names *names = names_of_site(&p->encoder, span->site);
	const struct perfetto_thread *thread = &p->threads.data[span->thread];
	uint64_t uuid = track_pools_take(&p->pools, &p->encoder, thread->parent ?: p->process,
					 thread->parent ? thread->name : names->name, span->node.ts,
					 span->end_ts);

	time_note(p, span->end_ts);
	slice_begin(&p->encoder, &p->anywhere, uuid, names, &span->node, false);
	node_put(p, span);
	if (span->end_ts != TIMELINE_OPEN)
		slice_end_put(&p->encoder, &p->anywhere, span->end_ts, uuid);
	return uuid;
}

static void perfetto_aside_end(void *arg, const struct timeline_node *span)
{
	struct perfetto_stream *p = arg;
	const struct perfetto_thread *thread = &p->threads.data[span->thread];

	time_note(p, span->end_ts);
	later_end_put(p, &p->anywhere, span, span->track);
	track_pools_release(&p->pools, thread->parent ?: p->process,
			    thread->parent ? thread->name
					   : names_of_site(&p->encoder, span->site)->name,
			    span->track, span->end_ts);
}

static void perfetto_instant(void *arg, const struct timeline_node *event)
{
	struct perfetto_stream *p = arg;

	time_note(p, event->node.ts);
	instant_begin(&p->encoder, thread_sequence(p, event->thread), 0,
		      names_of_site(&p->encoder, event->site), &event->node);
	node_put(p, event);
}

static void perfetto_counter(void *arg, const struct timeline_node *counter)
{
	struct perfetto_stream *p = arg;
	uint32_t name = names_of_site(&p->encoder, counter->site)->name;
	uint32_t uuid = map_get(&p->counters, name);

	time_note(p, counter->node.ts);
	if (uuid == MAP_NONE) {
		uuid = (uint32_t)++p->encoder.next_uuid;
		map_put(&p->counters, name, uuid);
		track_describe(&p->encoder, uuid, p->process,
			       strtab_get(p->encoder.names.text, name), true, p->encoder.start_ts);
	}
	counter_put(&p->encoder, &p->anywhere, uuid, &counter->node);
}

static void perfetto_loss(void *arg, const struct waffle_rec_loss *loss)
{
	struct perfetto_stream *p = arg;
	struct lost_window window = {loss->from_ts, loss->rec.ts, loss->rec.cpu};

	if (!p->lost.id)
		p->lost = about_losses_begin(&p->encoder);
	about_loss(&p->encoder, &p->lost, loss->source, loss->count, &window);
	p->lost_count += loss->count;
}

static const struct timeline_format perfetto_format = {
	.site = perfetto_site,
	.thread = perfetto_thread,
	.track = perfetto_track,
	.begin = perfetto_begin,
	.end = perfetto_end,
	.aside = perfetto_aside,
	.aside_end = perfetto_aside_end,
	.instant = perfetto_instant,
	.counter = perfetto_counter,
	.loss = perfetto_loss,
};

static void *perfetto_stream_open(const struct sink_origin *origin)
{
	struct perfetto_stream *p = memory_zeroed(1, sizeof(*p));

	pf_encoder_begin(&p->encoder, NULL, &origin->meta);
	p->encoder.interleaved = true;
	p->pid = origin->process.pid;
	p->command = memory_text(origin->meta.command);
	about_begin(&p->encoder, &origin->meta, NULL);
	about_bound(&p->encoder, false);
	p->process = ++p->encoder.next_uuid;
	process_describe(p, NULL);
	p->anywhere = sequence_begin(&p->encoder, 0, false);
	return p;
}

static void perfetto_stream_end(void *arg, uint64_t end_ts, const struct store_counts *counts)
{
	struct perfetto_stream *p = arg;
	const struct store_counts *spans = &counts[WAFFLE_SOURCE_SPANS];
	uint64_t lost[WAFFLE_SOURCE_COUNT] = {[WAFFLE_SOURCE_SPANS] = spans->lost};

	p->encoder.end_ts = end_ts > p->last_ts ? end_ts : p->last_ts;
	about_bounds(&p->encoder, spans, NULL);
	/* Records that could not be written have no time. */
	if (spans->lost > p->lost_count) {
		if (!p->lost.id)
			p->lost = about_losses_begin(&p->encoder);
		about_loss(&p->encoder, &p->lost, WAFFLE_SOURCE_SPANS, spans->lost - p->lost_count,
			   NULL);
	}
	about_bound(&p->encoder, true);
	about_stats(&p->encoder, lost);
}

static const void *perfetto_stream_take(void *arg, size_t *bytes)
{
	struct perfetto_stream *p = arg;

	*bytes = p->encoder.writer.len;
	p->encoder.writer.len = 0;
	return p->encoder.writer.buf;
}

static void perfetto_stream_close(void *arg)
{
	struct perfetto_stream *p = arg;

	pf_encoder_end(&p->encoder);
	track_pools_free(&p->pools);
	vec_free(&p->threads);
	map_free(&p->counters);
	map_free(&p->groups);
	free(p->command);
	free(p);
}

const struct timeline_stream timeline_perfetto = {
	.format = &perfetto_format,
	.open = perfetto_stream_open,
	.end = perfetto_stream_end,
	.take = perfetto_stream_take,
	.close = perfetto_stream_close,
};
