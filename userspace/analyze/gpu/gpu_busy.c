// SPDX-License-Identifier: Apache-2.0
/* How busy a device was, by one sweep over the begins and ends of its operations, and why it was
 * idle in between. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_report_internal.h"
#include "model/order_heap.h"
#include "util/memory.h"

const char *const gpu_idle_names[GPU_IDLE_COUNT] = {
	[GPU_IDLE_STARVED] = "launch_starved",
	[GPU_IDLE_BLOCKING] = "blocking",
	[GPU_IDLE_STALLED] = "dependency_stalled",
	[GPU_IDLE_UNKNOWN] = "unknown",
};

/* Stretches beyond those wanted, at which the shortest ones are dropped. */
#define SLACK 4096

/* How many operations of each class run. */
struct running_now {
	uint32_t work, kernels, communication;
};

/*
 * A sweep over the begins and ends of operations, cut to the window. Each stream is in order
 * already. So a heap with the next operation of each stream gives the begins, and a heap of the
 * operations that run gives the ends: no list of all operations is needed.
 */
struct busy {
	const struct gpu_timeline *timeline;
	struct gpu_device_report *device;
	order_heap starts, ends;
	bool *communicates; /* by name */
	struct running_now now;
	uint64_t at_ts;         /* how far the sweep is */
	uint64_t covered_ts;    /* until then the device has something to do */
	uint32_t thread;        /* that launched the last operation; MODEL_NONE: unknown */
	VEC(uint64_t) level_ns; /* by level */
	uint32_t stretches;
};

/* ---- begins and ends ---- */

/* Adds the next operation of a stream, from `op` on, that is work in the window. */
static void starts_add(struct busy *busy, uint32_t op)
{
	const struct gpu_timeline *timeline = busy->timeline;
	const struct gpu_timeline_stream *stream =
		&timeline->streams.data[timeline->ops.data[op].stream];
	uint64_t from = busy->device->from_ts, to = busy->device->to_ts;

	for (; op < stream->op + stream->op_count; op++) {
		const struct gpu_timeline_op *at = &timeline->ops.data[op];

		if (at->kind == GPU_OP_WAIT || at->end_ts < from || at->start_ts > to)
			continue;
		busy->device->operations++;
		if (!gpu_op_is_work(at->kind) || at->end_ts <= from || at->start_ts >= to ||
		    at->start_ts == at->end_ts)
			continue;
		order_heap_add(&busy->starts,
			       (struct order_item){at->start_ts > from ? at->start_ts : from, op});
		return;
	}
}

/* The next begin. The next operation of the stream takes its place. */
static struct order_item starts_take(struct busy *busy)
{
	struct order_item first = order_heap_take(&busy->starts);
	const struct gpu_timeline *timeline = busy->timeline;
	const struct gpu_timeline_stream *stream =
		&timeline->streams.data[timeline->ops.data[first.index].stream];

	if (first.index + 1 < stream->op + stream->op_count)
		starts_add(busy, first.index + 1);
	return first;
}

/* ---- concurrency ---- */

static void running_change(struct busy *busy, uint32_t op, uint32_t by)
{
	const struct gpu_timeline_op *at = &busy->timeline->ops.data[op];

	busy->now.work += by;
	if (at->kind != GPU_OP_KERNEL)
		return;
	if (busy->communicates[at->name])
		busy->now.communication += by;
	else
		busy->now.kernels += by;
}

static void time_pass(struct busy *busy, uint64_t to_ts)
{
	struct gpu_device_report *device = busy->device;
	const struct running_now *now = &busy->now;
	uint64_t ns = to_ts - busy->at_ts;

	while (busy->level_ns.len <= now->work)
		vec_add(&busy->level_ns, 0);
	busy->level_ns.data[now->work] += ns;
	device->busy_ns += now->work ? ns : 0;
	device->kernel_ns += now->kernels || now->communication ? ns : 0;
	device->comm_ns += now->communication ? ns : 0;
	device->exposed_ns += now->communication && !now->kernels ? ns : 0;
	if (now->work > device->max_concurrency)
		device->max_concurrency = now->work;
	busy->at_ts = to_ts;
}

/* ---- idle time ---- */

static int longer(const void *left, const void *right)
{
	const struct gpu_stretch *a = left, *b = right;
	uint64_t a_ns = a->to_ts - a->from_ts, b_ns = b->to_ts - b->from_ts;

	if (a_ns != b_ns)
		return a_ns > b_ns ? -1 : 1;
	return a->from_ts < b->from_ts ? -1 : a->from_ts > b->from_ts;
}

static void stretches_cut(struct busy *busy, size_t slack)
{
	struct gpu_device_report *device = busy->device;

	if (device->starved.len <= busy->stretches + slack)
		return;
	qsort(device->starved.data, device->starved.len, sizeof(*device->starved.data), longer);
	device->starved.len = busy->stretches;
}

static void starved_add(struct busy *busy, struct gpu_stretch stretch)
{
	if (stretch.from_ts >= stretch.to_ts)
		return;
	busy->device->idle_ns[GPU_IDLE_STARVED] += stretch.to_ts - stretch.from_ts;
	busy->device->starved_count++;
	vec_add(&busy->device->starved, stretch);
	stretches_cut(busy, SLACK);
}

static uint64_t clamp(uint64_t ts, uint64_t low, uint64_t high)
{
	return ts < low ? low : ts > high ? high : ts;
}

uint64_t gpu_report_ready_ts(const struct gpu_timeline *timeline, uint32_t op)
{
	uint32_t previous = timeline->ops.data[op].previous;
	uint64_t ready = previous == MODEL_NONE ? 0 : timeline->ops.data[previous].end_ts;

	for (size_t i = gpu_timeline_edges_to(timeline, op);
	     i < timeline->edges.len && timeline->edges.data[i].to == op; i++) {
		const struct gpu_timeline_edge *edge = &timeline->edges.data[i];
		uint64_t end = timeline->ops.data[edge->from].end_ts;

		if (!edge->violated && end > ready)
			ready = end;
	}
	return ready;
}

/* Splits the time before an operation in which the device was idle. */
static void gap_split(struct busy *busy, uint64_t from, uint64_t to, uint32_t op)
{
	const struct gpu_timeline *timeline = busy->timeline;
	uint32_t launch = timeline->ops.data[op].launch;
	uint64_t launched, ready;

	if (launch == MODEL_NONE) {
		busy->device->idle_ns[GPU_IDLE_UNKNOWN] += to - from;
		return;
	}
	launched = clamp(timeline->launches.data[launch].ts, from, to);
	ready = clamp(gpu_report_ready_ts(timeline, op), launched, to);
	starved_add(busy, (struct gpu_stretch){from, launched,
					       timeline->launches.data[launch].thread, launch});
	busy->device->idle_ns[GPU_IDLE_BLOCKING] += ready - launched;
	busy->device->idle_ns[GPU_IDLE_STALLED] += to - ready;
}

/* Adds the idle time in front of an operation that begins. */
static void gap_find(struct busy *busy, const struct order_item *begin)
{
	const struct gpu_timeline *timeline = busy->timeline;
	uint32_t launch = timeline->ops.data[begin->index].launch;

	if (begin->ts > busy->covered_ts)
		gap_split(busy, busy->covered_ts, begin->ts, begin->index);
	busy->covered_ts = clamp(timeline->ops.data[begin->index].end_ts, busy->covered_ts,
				 busy->device->to_ts);
	busy->thread = launch == MODEL_NONE ? busy->thread : timeline->launches.data[launch].thread;
}

/* ---- all of it ---- */

/* An operation that ends when another one begins does not overlap it. */
static void busy_sweep(struct busy *busy)
{
	while (busy->starts.len || busy->ends.len) {
		bool ends = busy->ends.len &&
			    (!busy->starts.len || busy->ends.data[0].ts <= busy->starts.data[0].ts);
		struct order_item next = ends ? order_heap_take(&busy->ends) : starts_take(busy);

		time_pass(busy, next.ts);
		running_change(busy, next.index, ends ? UINT32_MAX : 1);
		if (ends)
			continue;
		gap_find(busy, &next);
		next.ts = clamp(busy->timeline->ops.data[next.index].end_ts, next.ts,
				busy->device->to_ts);
		order_heap_add(&busy->ends, next);
	}
	time_pass(busy, busy->device->to_ts);
}

static void busy_finish(struct busy *busy)
{
	struct gpu_device_report *device = busy->device;

	for (uint32_t level = 0; level < busy->level_ns.len; level++)
		if (busy->level_ns.data[level])
			vec_add(&device->levels,
				(struct gpu_level){level, busy->level_ns.data[level]});
	starved_add(busy, (struct gpu_stretch){busy->covered_ts, device->to_ts, busy->thread,
					       MODEL_NONE});
	if (device->starved.len)
		qsort(device->starved.data, device->starved.len, sizeof(*device->starved.data),
		      longer);
	stretches_cut(busy, 0);
}

void gpu_busy_report(struct gpu_report *report, uint32_t device, uint32_t stretches)
{
	const struct gpu_timeline *timeline = report->timeline;
	const struct gpu_timeline_device *at = &timeline->devices.data[device];
	struct busy busy = {
		.timeline = timeline,
		.device = &report->devices[device],
		.communicates = memory_zeroed(timeline->names.len, sizeof(*busy.communicates)),
		.at_ts = report->devices[device].from_ts,
		.covered_ts = report->devices[device].from_ts,
		.thread = MODEL_NONE,
		.stretches = stretches,
	};

	for (size_t i = 0; i < timeline->names.len; i++)
		busy.communicates[i] = gpu_timeline_communicates(timeline->names.data[i]);
	for (uint32_t i = at->stream; i < at->stream + at->stream_count; i++)
		starts_add(&busy, timeline->streams.data[i].op);
	busy_sweep(&busy);
	busy_finish(&busy);
	vec_free(&busy.starts);
	vec_free(&busy.ends);
	vec_free(&busy.level_ns);
	free(busy.communicates);
}
