// SPDX-License-Identifier: Apache-2.0
/*
 * What calls of the host waited for, if no probe recorded the calls of CUDA. CUPTI says when a call
 * waited, and for which stream or context. libwaffle-gpu recorded an event `wait` on the thread of
 * the call, with the same correlation id. gpu_timeline_edges.c knows for which operations an event
 * stands.
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
	/* A wait for its context had returned by then, and waited for all of these operations.
	 * UINT64_MAX: none did. */
	uint64_t covered_ts;
};

struct timeline_follow {
	const struct gpu_timeline *timeline;
	struct wait_stream *streams; /* by stream of the timeline */
	struct keymap stream_at;     /* process, context and number -> stream */
	struct keymap context_at;    /* process and context -> its last stream */
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

/* ---- streams ---- */

static void streams_find(struct timeline_follow *follow)
{
	const struct gpu_timeline *timeline = follow->timeline;

	follow->streams = memory_get(timeline->streams.len * sizeof(*follow->streams));
	for (uint32_t i = 0; i < timeline->streams.len; i++) {
		const struct gpu_timeline_stream *stream = &timeline->streams.data[i];
		const uint64_t key[] = {timeline->devices.data[stream->device].pid, stream->context,
					stream->number};

		keymap_put(&follow->stream_at, key, sizeof(key), i);
		follow->streams[i] = (struct wait_stream){
			.next = stream->op,
			.last = MODEL_NONE,
			.covered_ts = UINT64_MAX,
			.other = keymap_get(&follow->context_at, key, 2 * sizeof(key[0]))};
		keymap_put(&follow->context_at, key, 2 * sizeof(key[0]), i);
	}
}
_Static_assert(MAP_NONE == MODEL_NONE, "a stream without another one");

/* Goes on to the first operation of a stream that was launched after a time. Operations whose
 * launch is unknown say nothing. */
static void stream_follow(struct timeline_follow *follow, uint32_t index, uint64_t ts)
{
	const struct gpu_timeline *timeline = follow->timeline;
	const struct gpu_timeline_stream *stream = &timeline->streams.data[index];
	struct wait_stream *at = &follow->streams[index];

	for (; at->next < stream->op + stream->op_count; at->next++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[at->next];

		if (op->launch == MODEL_NONE || op->kind == GPU_OP_WAIT)
			continue;
		if (timeline->launches.data[op->launch].ts > ts)
			return;
		if (at->last == MODEL_NONE || timeline->ops.data[at->last].end_ts <= op->end_ts)
			at->last = at->next;
		at->covered_ts = UINT64_MAX;
	}
}

/* ---- waits ---- */

/* Adds the last operation of each stream of the context with work that no such wait has covered. */
static void context_await(struct timeline_follow *follow, const struct timeline_wait *wait,
			  uint64_t ts, timeline_ops *ops)
{
	const uint64_t key[] = {wait->pid, wait->context};
	uint32_t stream = keymap_get(&follow->context_at, key, sizeof(key));
	struct wait_stream *at;

	for (; stream != MODEL_NONE && follow->steps_left; stream = follow->streams[stream].other) {
		follow->steps_left--;
		stream_follow(follow, stream, ts);
		at = &follow->streams[stream];
		if (at->last == MODEL_NONE || at->covered_ts <= wait->start_ts)
			continue;
		vec_add(ops, at->last);
		if (wait->end_ts < at->covered_ts)
			at->covered_ts = wait->end_ts;
	}
}

bool timeline_follow_wait(struct timeline_follow *follow, const struct timeline_wait *wait,
			  uint64_t ts, timeline_ops *ops)
{
	const uint64_t key[] = {wait->pid, wait->context, wait->stream};
	uint32_t stream;

	if (wait->kind == GPU_WAIT_EVENT)
		return false;
	if (wait->kind == GPU_WAIT_CONTEXT) {
		context_await(follow, wait, ts, ops);
		return follow->steps_left;
	}
	stream = keymap_get(&follow->stream_at, key, sizeof(key));
	if (stream == MAP_NONE)
		return false;
	stream_follow(follow, stream, ts);
	if (follow->streams[stream].last != MODEL_NONE)
		vec_add(ops, follow->streams[stream].last);
	return true;
}

struct timeline_follow *timeline_follow_new(const struct timeline_build *build)
{
	struct timeline_follow *follow = memory_zeroed(1, sizeof(*follow));

	follow->timeline = build->timeline;
	follow->steps_left =
		(build->timeline->ops.len + build->waits.len) * STEPS_EACH + STEPS_MORE;
	streams_find(follow);
	return follow;
}

void timeline_follow_free(struct timeline_follow *follow)
{
	if (!follow)
		return;
	free(follow->streams);
	keymap_free(&follow->stream_at);
	keymap_free(&follow->context_at);
	free(follow);
}
