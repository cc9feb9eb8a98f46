// SPDX-License-Identifier: Apache-2.0
/* The states of streams, how many launches were queued, and how long launches took to begin. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_report_internal.h"
#include "model/order.h"
#include "util/memory.h"

const char *const gpu_state_names[GPU_STATE_COUNT] = {
	[GPU_STATE_IDLE] = "idle",         [GPU_STATE_QUEUED] = "queued",
	[GPU_STATE_RUNNING] = "running",   [GPU_STATE_WAITING] = "waiting",
	[GPU_STATE_COMPLETE] = "complete",
};

struct states {
	const struct gpu_timeline *timeline;
	const struct gpu_device_report *device;
	struct gpu_stream_report *stream;
	VEC(struct order_item) delays; /* ts: the delay */
	VEC(struct order_item) queued; /* ts: of the launch */
	VEC(uint64_t) begun;           /* begins of the queued operations, in order */
	uint32_t *seen;                /* launch -> stream plus one that has an operation of it */
};

static void state_add(struct states *states, enum gpu_state state, uint64_t from, uint64_t to)
{
	from = from > states->device->from_ts ? from : states->device->from_ts;
	to = to < states->device->to_ts ? to : states->device->to_ts;
	if (from < to)
		states->stream->state_ns[state] += to - from;
}

/* When the last operation of another stream that an operation waits for ended. */
static uint64_t others_done_ts(const struct gpu_timeline *timeline, uint32_t op)
{
	uint64_t done = 0;

	for (size_t i = gpu_timeline_edges_to(timeline, op);
	     i < timeline->edges.len && timeline->edges.data[i].to == op; i++) {
		const struct gpu_timeline_edge *edge = &timeline->edges.data[i];

		if (!edge->violated && timeline->ops.data[edge->from].end_ts > done)
			done = timeline->ops.data[edge->from].end_ts;
	}
	return done;
}

static uint64_t clamp(uint64_t ts, uint64_t low, uint64_t high)
{
	return ts < low ? low : ts > high ? high : ts;
}

/* The time before an operation in which its stream ran nothing. An operation without a launch
 * counts as launched when it began. */
static void gap_states(struct states *states, uint64_t from, uint32_t op)
{
	const struct gpu_timeline *timeline = states->timeline;
	const struct gpu_timeline_op *at = &timeline->ops.data[op];
	uint64_t launched = at->start_ts, waited;

	if (at->launch != MODEL_NONE)
		launched = clamp(timeline->launches.data[at->launch].ts, from, at->start_ts);
	waited = clamp(others_done_ts(timeline, op), launched, at->start_ts);
	state_add(states, GPU_STATE_IDLE, from, launched);
	state_add(states, GPU_STATE_WAITING, launched, waited);
	state_add(states, GPU_STATE_QUEUED, waited, at->start_ts);
}

/* Notes a launch that has its first operation on this stream. */
static void launch_note(struct states *states, uint32_t op, uint32_t stream)
{
	const struct gpu_timeline_op *at = &states->timeline->ops.data[op];
	uint64_t launched;

	if (at->launch == MODEL_NONE || states->seen[at->launch] == stream + 1)
		return;
	states->seen[at->launch] = stream + 1;
	launched = states->timeline->launches.data[at->launch].ts;
	vec_add(&states->queued, (struct order_item){launched, (uint32_t)states->queued.len});
	vec_add(&states->begun, at->start_ts);
	if (at->start_ts >= states->device->from_ts && at->start_ts <= states->device->to_ts)
		vec_add(&states->delays,
			(struct order_item){at->start_ts - launched, (uint32_t)states->delays.len});
}

static uint32_t queue_max(struct states *states)
{
	uint32_t length = 0, max = 0;
	size_t launch = 0, begin = 0;

	order_sort(states->queued.data, states->queued.len);
	while (launch < states->queued.len) {
		if (begin < states->begun.len &&
		    states->begun.data[begin] <= states->queued.data[launch].ts && begin < launch) {
			begin++;
			length--;
			continue;
		}
		length++;
		if (length > max)
			max = length;
		launch++;
	}
	return max;
}

static void stream_states(struct states *states, uint32_t index)
{
	const struct gpu_timeline_stream *stream = &states->timeline->streams.data[index];
	uint64_t covered = states->device->from_ts;

	states->queued.len = 0;
	states->begun.len = 0;
	for (uint32_t i = stream->op; i < stream->op + stream->op_count; i++) {
		const struct gpu_timeline_op *op = &states->timeline->ops.data[i];

		if (op->kind == GPU_OP_WAIT)
			continue;
		states->stream->operations += op->end_ts >= states->device->from_ts &&
					      op->start_ts <= states->device->to_ts;
		launch_note(states, i, index);
		if (op->start_ts > covered) {
			gap_states(states, covered, i);
			covered = op->start_ts;
		}
		if (op->end_ts > covered) {
			state_add(states, GPU_STATE_RUNNING, covered, op->end_ts);
			covered = op->end_ts;
		}
	}
	state_add(states, GPU_STATE_COMPLETE, covered, states->device->to_ts);
	states->stream->queue_max = queue_max(states);
}

/* The p-th percentile of sorted delays, by the nearest rank. */
static uint64_t delay_at(const struct states *states, size_t percent)
{
	size_t count = states->delays.len;

	return count ? states->delays.data[(count * percent + 99) / 100 - 1].ts : 0;
}

static void device_states(struct states *states, struct gpu_report *report, uint32_t device)
{
	const struct gpu_timeline_device *at = &report->timeline->devices.data[device];
	struct gpu_device_report *to = &report->devices[device];

	states->device = to;
	states->delays.len = 0;
	for (uint32_t i = at->stream; i < at->stream + at->stream_count; i++) {
		states->stream = &report->streams[i];
		stream_states(states, i);
		if (states->stream->queue_max > to->queue_max)
			to->queue_max = states->stream->queue_max;
	}
	order_sort(states->delays.data, states->delays.len);
	to->launches = states->delays.len;
	to->delay_p50_ns = delay_at(states, 50);
	to->delay_p99_ns = delay_at(states, 99);
	to->delay_max_ns = delay_at(states, 100);
	for (size_t i = 0; i < states->delays.len; i++)
		to->delay_total_ns += states->delays.data[i].ts;
}

void gpu_states_report(struct gpu_report *report)
{
	const struct gpu_timeline *timeline = report->timeline;
	struct states states = {
		.timeline = timeline,
		.seen = memory_zeroed(timeline->launches.len + 1, sizeof(*states.seen))};

	for (uint32_t i = 0; i < timeline->devices.len; i++)
		device_states(&states, report, i);
	vec_free(&states.delays);
	vec_free(&states.queued);
	vec_free(&states.begun);
	free(states.seen);
}
