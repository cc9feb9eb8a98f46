// SPDX-License-Identifier: Apache-2.0
/* The states of streams, how many launches were queued, and how long launches took to begin. */
#include <stdlib.h>

#include "analyze/gpu/gpu_report_internal.h"
#include "util/memory.h"
#include "util/search.h"

const char *const gpu_state_names[GPU_STATE_COUNT] = {
	[GPU_STATE_IDLE] = "idle",         [GPU_STATE_QUEUED] = "queued",
	[GPU_STATE_RUNNING] = "running",   [GPU_STATE_WAITING] = "waiting",
	[GPU_STATE_COMPLETE] = "complete",
};

struct states {
	const struct gpu_timeline *timeline;
	const struct gpu_device_report *device;
	struct gpu_stream_report *stream;
	VEC(uint64_t) delays;
	VEC(uint32_t) queued; /* launches with operations on the stream */
	VEC(uint32_t) begun;  /* the first operation of each, in order of their begins */
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

/* Whether an operation is the first one of its launch on its stream. The operations of a launch are
 * in their order in timeline.ops, where those of a stream stand together. */
static bool begins_launch(const struct gpu_timeline *timeline, uint32_t op)
{
	const struct gpu_timeline_op *at = &timeline->ops.data[op];
	const struct gpu_timeline_launch *launch;
	uint32_t end, first;

	if (at->launch == MODEL_NONE)
		return false;
	launch = &timeline->launches.data[at->launch];
	if (gpu_launch_op_count(launch) == 1)
		return true;
	first = launch->op;
	end = launch[1].op;
	first = lower_bound_in(first, end, i, timeline->launched.data[i] < op);
	return first == launch->op ||
	       timeline->ops.data[timeline->launched.data[first - 1]].stream != at->stream;
}

static int compare_indexes(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

/* Launches are numbered in the order of their times, and those of a stream mostly come in it. */
static void queued_sort(struct states *states)
{
	for (size_t i = 1; i < states->queued.len; i++)
		if (states->queued.data[i] < states->queued.data[i - 1]) {
			qsort(states->queued.data, states->queued.len, sizeof(uint32_t),
			      compare_indexes);
			return;
		}
}

static uint32_t queue_max(struct states *states)
{
	const struct gpu_timeline *timeline = states->timeline;
	uint32_t length = 0, max = 0;
	size_t launch = 0, begin = 0;

	queued_sort(states);
	while (launch < states->queued.len) {
		uint64_t launched = timeline->launches.data[states->queued.data[launch]].ts;

		if (begin < states->begun.len && begin < launch &&
		    timeline->ops.data[states->begun.data[begin]].start_ts <= launched) {
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
		if (begins_launch(states->timeline, i)) {
			vec_add(&states->queued, op->launch);
			vec_add(&states->begun, i);
		}
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

/* ---- from launches to begins ---- */

/* Notes how long the launches of a stream took to begin. */
static void delays_add(struct states *states, const struct gpu_timeline_stream *stream)
{
	const struct gpu_timeline *timeline = states->timeline;

	for (uint32_t i = stream->op; i < stream->op + stream->op_count; i++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[i];

		if (op->kind != GPU_OP_WAIT && op->start_ts >= states->device->from_ts &&
		    op->start_ts <= states->device->to_ts && begins_launch(timeline, i))
			vec_add(&states->delays,
				op->start_ts - timeline->launches.data[op->launch].ts);
	}
}

/* The delay that would stand at `rank` if they were in order: digit by digit from the highest one,
 * so that no choice of delays makes it slow. */
static uint64_t delay_select(const struct states *states, size_t rank)
{
	uint64_t prefix = 0;

	for (unsigned shift = 64; shift;) {
		size_t counts[256] = {0};
		unsigned digit = 0;

		shift -= 8;
		for (size_t i = 0; i < states->delays.len; i++)
			if (shift == 56 || states->delays.data[i] >> (shift + 8) == prefix)
				counts[states->delays.data[i] >> shift & 0xff]++;
		while (rank >= counts[digit])
			rank -= counts[digit++];
		prefix = prefix << 8 | digit;
	}
	return prefix;
}

/* The p-th percentile, by the nearest rank. */
static uint64_t delay_at(const struct states *states, size_t percent)
{
	size_t count = states->delays.len;

	return count ? delay_select(states, (count * percent + 99) / 100 - 1) : 0;
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
	vec_free(&states->queued);
	vec_free(&states->begun);
	for (uint32_t i = at->stream; i < at->stream + at->stream_count; i++)
		delays_add(states, &report->timeline->streams.data[i]);
	to->launches = states->delays.len;
	to->delay_p50_ns = delay_at(states, 50);
	to->delay_p99_ns = delay_at(states, 99);
	for (size_t i = 0; i < states->delays.len; i++) {
		to->delay_total_ns += states->delays.data[i];
		if (states->delays.data[i] > to->delay_max_ns)
			to->delay_max_ns = states->delays.data[i];
	}
}

void gpu_states_report(struct gpu_report *report)
{
	const struct gpu_timeline *timeline = report->timeline;
	struct states states = {.timeline = timeline};

	for (uint32_t i = 0; i < timeline->devices.len; i++)
		device_states(&states, report, i);
	vec_free(&states.delays);
}
