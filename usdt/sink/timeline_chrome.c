// SPDX-License-Identifier: Apache-2.0
/*
 * The Chrome JSON array format, one event a line. A file that was cut off lacks its closing
 * bracket, which viewers accept and `waffle-bpf repair` adds. Facts about the recording, which the
 * array format has no place for, are metadata events that viewers ignore.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/chrome_encode.h"
#include "usdt/sink/timeline_sink.h"
#include "util/memory.h"

struct chrome_stream {
	struct json *json;
	uint32_t pid;
	uint64_t start_ts;
};

static struct chrome_point point_of(const struct chrome_stream *c, uint64_t ts, uint32_t tid)
{
	return (struct chrome_point){
		.ns = ts > c->start_ts ? ts - c->start_ts : 0,
		.pid = c->pid,
		.tid = tid,
	};
}

static void chrome_site(void *arg, const struct site_info *site)
{
	(void)arg;
	(void)site;
}

static void chrome_thread(void *arg, uint32_t thread, uint32_t tid, const char *name, uint64_t ts)
{
	struct chrome_stream *c = arg;

	(void)thread;
	(void)ts;
	if (!*name)
		return;
	json_next(c->json);
	chrome_name(c->json, "thread_name", name, point_of(c, c->start_ts, tid));
}

static void chrome_track(void *arg, uint32_t thread, const struct timeline_track *track)
{
	char name[2 * WAFFLE_TRACK_NAME + 4];

	snprintf(name, sizeof(name), "%s%s%s", track->group, *track->group ? ": " : "",
		 track->name);
	chrome_thread(arg, thread, track->tid, name, 0);
}

/* Both ends of an arrow are written with the span or event that was caused. */
static void write_flows(struct chrome_stream *c, const struct timeline_node *node)
{
	for (size_t i = 0; i < node->flow_count; i++) {
		const struct timeline_flow *flow = &node->flows[i];

		if (!flow->caused)
			continue;
		json_next(c->json);
		chrome_flow_begin(c->json, flow->id, point_of(c, flow->cause_ts, flow->cause_tid));
		json_next(c->json);
		chrome_flow_end(c->json, flow->id, point_of(c, node->node.ts, node->node.tid));
	}
}

static void chrome_begin(void *arg, const struct timeline_node *span)
{
	struct chrome_stream *c = arg;
	bool whole = span->end_ts != TIMELINE_OPEN;

	json_next(c->json);
	chrome_open(c->json, whole ? "X" : "B", span->node.site->name,
		    point_of(c, span->node.ts, span->node.tid));
	chrome_category(c->json, span->node.site);
	if (whole)
		chrome_duration(c->json, span->end_ts - span->node.ts);
	chrome_node_args(c->json, &span->node);
	chrome_span_close(c->json, &span->node);
	write_flows(c, span);
}

static void chrome_end(void *arg, const struct timeline_node *span, bool whole)
{
	struct chrome_stream *c = arg;

	if (whole)
		return;
	json_next(c->json);
	chrome_open(c->json, "E", span->node.site->name, point_of(c, span->end_ts, span->node.tid));
	chrome_category(c->json, span->node.site);
	chrome_args(c->json);
	if (span->node.unfinished)
		json_field_bool(c->json, "waffle.unfinished", true);
	chrome_close(c->json);
}

static void chrome_aside_end(void *arg, const struct timeline_node *span)
{
	struct chrome_stream *c = arg;

	json_next(c->json);
	chrome_async_end(c->json, span->node.site, span->node.id,
			 point_of(c, span->end_ts, span->node.tid));
}

static uint64_t chrome_aside(void *arg, const struct timeline_node *span)
{
	struct chrome_stream *c = arg;

	json_next(c->json);
	chrome_async_begin(c->json, &span->node, point_of(c, span->node.ts, span->node.tid));
	chrome_span_close(c->json, &span->node);
	if (span->end_ts != TIMELINE_OPEN)
		chrome_aside_end(arg, span);
	write_flows(c, span);
	return 0;
}

static void chrome_event(void *arg, const struct timeline_node *event)
{
	struct chrome_stream *c = arg;

	json_next(c->json);
	chrome_instant(c->json, &event->node, point_of(c, event->node.ts, event->node.tid));
	chrome_event_close(c->json, &event->node);
	write_flows(c, event);
}

static void chrome_lost(void *arg, const struct waffle_rec_loss *loss)
{
	struct chrome_stream *c = arg;

	json_next(c->json);
	chrome_loss(c->json, loss->count, loss->source, loss->rec.cpu,
		    point_of(c, loss->rec.ts, 0));
}

static const struct timeline_format chrome_format = {
	.site = chrome_site,
	.thread = chrome_thread,
	.track = chrome_track,
	.begin = chrome_begin,
	.end = chrome_end,
	.aside = chrome_aside,
	.aside_end = chrome_aside_end,
	.instant = chrome_event,
	.counter = chrome_event,
	.loss = chrome_lost,
};

/* The first event of the array. */
static void write_origin(struct chrome_stream *c, const struct sink_origin *origin)
{
	const struct store_meta *meta = &origin->meta;

	chrome_open(c->json, "M", "waffle_recording", point_of(c, c->start_ts, 0));
	chrome_args(c->json);
	json_field_string(c->json, "version", meta->version);
	json_field_string(c->json, "command", meta->command);
	json_field_string(c->json, "hostname", meta->hostname);
	json_field_u64(c->json, "start_real_ns", meta->real_ns);
	if (*meta->filter)
		json_field_string(c->json, "recorded_filter", meta->filter);
	chrome_close(c->json);
	json_next(c->json);
	chrome_name(c->json, "process_name", meta->command, point_of(c, c->start_ts, c->pid));
}

static void *chrome_stream_open(const struct sink_origin *origin)
{
	struct chrome_stream *c = memory_zeroed(1, sizeof(*c));

	c->pid = origin->process.pid;
	c->start_ts = origin->meta.start_ts;
	c->json = json_new(NULL, false);
	memory_require(c->json);
	json_outside(c->json, "[\n");
	write_origin(c, origin);
	return c;
}

static void chrome_stream_end(void *arg, uint64_t end_ts, const struct store_counts *counts)
{
	struct chrome_stream *c = arg;
	const struct store_counts *spans = &counts[WAFFLE_SOURCE_SPANS];

	json_next(c->json);
	chrome_open(c->json, "M", "waffle_counts", point_of(c, end_ts, 0));
	chrome_args(c->json);
	json_field_u64(c->json, "produced", spans->produced);
	json_field_u64(c->json, "delivered", spans->delivered);
	json_field_u64(c->json, "lost", spans->lost);
	chrome_close(c->json);
	json_outside(c->json, "\n]\n");
}

static const void *chrome_stream_take(void *arg, size_t *bytes)
{
	struct chrome_stream *c = arg;

	memory_require(!json_flush(c->json));
	return json_take(c->json, bytes);
}

static void chrome_stream_close(void *arg)
{
	struct chrome_stream *c = arg;

	json_close(c->json);
	free(c);
}

const struct timeline_stream timeline_chrome = {
	.format = &chrome_format,
	.open = chrome_stream_open,
	.end = chrome_stream_end,
	.take = chrome_stream_take,
	.close = chrome_stream_close,
};
