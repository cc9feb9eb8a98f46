// SPDX-License-Identifier: Apache-2.0
/*
 * What calls of the host waited for, if no probe recorded the calls of CUDA. CUPTI says when a call
 * waited, and for which stream or context. libwaffle-gpu recorded an event `wait` on the thread of
 * the call, with the same correlation id. For which operations an event stands is unknown.
 */
#include <stddef.h>
#include <stdlib.h>

#include "model/gpu/gpu_records.h"
#include "model/gpu/gpu_timeline_internal.h"
#include "model/order.h"
#include "util/memory.h"

/* Streams that all waits together may look at, for each operation and each wait, and some more. */
#define STEPS_EACH 16u
#define STEPS_MORE (1u << 22)

/* How far a stream has been followed: its operations that were launched before the current wait. */
struct wait_stream {
	uint32_t next;  /* in timeline.ops */
	uint32_t last;  /* of those before it, what ended last; MODEL_NONE: none */
	uint32_t other; /* another stream of its context, or MODEL_NONE */
	bool changed;   /* since the last wait for its context */
};

struct wait_scan {
	struct gpu_timeline *timeline;
	struct wait_stream *streams; /* by stream of the timeline */
	struct keymap stream_at;     /* process, context and number -> stream */
	struct keymap context_at;    /* process and context -> its last stream */
	struct map probed;           /* processes whose calls the probes recorded */
	size_t steps_left;
};

void timeline_wait_add(struct timeline_build *build, const struct gpu_record_op *op)
{
	const struct gpu_record_stream *stream = &build->records->streams.data[op->stream];
	struct timeline_wait wait = {.start_ts = op->start_ts,
				     .end_ts = op->end_ts,
				     .context = stream->context,
				     .stream = stream->number,
				     .pid = stream->pid,
				     .event = MODEL_NONE,
				     .kind = op->copy};
	uint32_t arming = timeline_arming_at(build, stream->pid, op->start_ts);

	if (wait.kind == GPU_WAIT_OTHER) /* a stream waits for an event */
		return;
	if (arming != MODEL_NONE && op->has_correlation)
		wait.event = timeline_launch_at(&build->wait_at, arming, op->correlation);
	if (wait.event == TIMELINE_REPEATED)
		wait.event = MODEL_NONE;
	vec_add(&build->waits, wait);
}

/* ---- processes and streams ---- */

static void probed_find(struct wait_scan *scan)
{
	const struct gpu_timeline *timeline = scan->timeline;
	uint32_t last = MODEL_NONE; /* most launches are of the thread of the one before */

	for (size_t i = 0; i < timeline->launches.len; i++) {
		const struct gpu_timeline_launch *launch = &timeline->launches.data[i];

		if (launch->host == MODEL_NONE || launch->thread == last)
			continue;
		map_put(&scan->probed, gpu_launch_pid(timeline, launch), 1);
		last = launch->thread;
	}
	for (size_t i = 0; i < timeline->syncs.len; i++)
		map_put(&scan->probed,
			timeline->model->threads.data[timeline->syncs.data[i].thread].pid, 1);
}

static void streams_find(struct wait_scan *scan)
{
	const struct gpu_timeline *timeline = scan->timeline;

	scan->streams = memory_get(timeline->streams.len * sizeof(*scan->streams));
	for (uint32_t i = 0; i < timeline->streams.len; i++) {
		const struct gpu_timeline_stream *stream = &timeline->streams.data[i];
		const uint64_t key[] = {timeline->devices.data[stream->device].pid, stream->context,
					stream->number};

		keymap_put(&scan->stream_at, key, sizeof(key), i);
		scan->streams[i] = (struct wait_stream){
			.next = stream->op,
			.last = MODEL_NONE,
			.other = keymap_get(&scan->context_at, key, 2 * sizeof(key[0]))};
		keymap_put(&scan->context_at, key, 2 * sizeof(key[0]), i);
	}
}
_Static_assert(MAP_NONE == MODEL_NONE, "a stream without another one");

/* Goes on to the first operation of a stream that was launched after a time. Operations whose
 * launch is unknown say nothing. */
static void stream_follow(struct wait_scan *scan, uint32_t index, uint64_t ts)
{
	const struct gpu_timeline *timeline = scan->timeline;
	const struct gpu_timeline_stream *stream = &timeline->streams.data[index];
	struct wait_stream *at = &scan->streams[index];

	for (; at->next < stream->op + stream->op_count; at->next++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[at->next];

		if (op->launch == MODEL_NONE || op->kind == GPU_OP_WAIT)
			continue;
		if (timeline->launches.data[op->launch].ts > ts)
			return;
		if (at->last == MODEL_NONE || timeline->ops.data[at->last].end_ts <= op->end_ts)
			at->last = at->next;
		at->changed = true;
	}
}

/* ---- waits ---- */

static void awaited_add(struct wait_scan *scan, uint32_t op)
{
	memory_require(scan->timeline->awaited.len < MODEL_NONE);
	if (op != MODEL_NONE)
		vec_add(&scan->timeline->awaited, op);
}

/* All streams of the context with work since the last such wait. */
static void context_await(struct wait_scan *scan, const struct timeline_wait *wait)
{
	const uint64_t key[] = {wait->pid, wait->context};
	uint32_t stream = keymap_get(&scan->context_at, key, sizeof(key));

	for (; stream != MODEL_NONE && scan->steps_left; stream = scan->streams[stream].other) {
		scan->steps_left--;
		stream_follow(scan, stream, wait->start_ts);
		if (scan->streams[stream].changed)
			awaited_add(scan, scan->streams[stream].last);
		scan->streams[stream].changed = false;
	}
}

/* False: for what it waited is unknown. */
static bool wait_await(struct wait_scan *scan, const struct timeline_wait *wait)
{
	const uint64_t key[] = {wait->pid, wait->context, wait->stream};
	uint32_t stream;

	if (wait->event == MODEL_NONE || wait->kind == GPU_WAIT_EVENT)
		return false;
	if (wait->kind == GPU_WAIT_CONTEXT) {
		context_await(scan, wait);
		return scan->steps_left;
	}
	stream = keymap_get(&scan->stream_at, key, sizeof(key));
	if (stream == MAP_NONE)
		return false;
	stream_follow(scan, stream, wait->start_ts);
	awaited_add(scan, scan->streams[stream].last);
	return true;
}

static void wait_find(struct wait_scan *scan, const struct timeline_wait *wait)
{
	struct gpu_timeline *timeline = scan->timeline;
	struct gpu_timeline_sync sync = {.start_ts = wait->start_ts,
					 .end_ts = wait->end_ts,
					 .span = MODEL_NONE,
					 .op = (uint32_t)timeline->awaited.len};

	if (!wait_await(scan, wait)) {
		timeline->unknown_waits++;
		timeline->unknown_wait_ns += wait->end_ts - wait->start_ts;
	}
	sync.op_count = (uint32_t)timeline->awaited.len - sync.op;
	if (!sync.op_count)
		return;
	sync.thread = timeline->model->events.data[wait->event].thread;
	vec_add(&timeline->syncs, sync);
}

static void waits_find(struct wait_scan *scan, struct timeline_build *build)
{
	scan->steps_left = (scan->timeline->ops.len + build->waits.len) * STEPS_EACH + STEPS_MORE;
	streams_find(scan);
	free(order_vec(&build->waits, start_ts));
	for (size_t i = 0; i < build->waits.len; i++)
		if (map_get(&scan->probed, build->waits.data[i].pid) == MAP_NONE)
			wait_find(scan, &build->waits.data[i]);
	free(order_vec(&scan->timeline->syncs, start_ts));
	free(scan->streams);
	keymap_free(&scan->stream_at);
	keymap_free(&scan->context_at);
}

void timeline_waits_find(struct timeline_build *build)
{
	struct wait_scan scan = {.timeline = build->timeline};

	probed_find(&scan);
	build->timeline->probed = scan.probed.len;
	if (build->waits.len)
		waits_find(&scan, build);
	map_free(&scan.probed);
}
