// SPDX-License-Identifier: Apache-2.0
/* How busy a device was, by one sweep over the begins and ends of its operations, and why it was
 * idle in between. */
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/gpu_report_internal.h"
#include "model/order.h"
#include "util/memory.h"

const char *const gpu_idle_names[GPU_IDLE_COUNT] = {
	[GPU_IDLE_STARVED] = "launch_starved",
	[GPU_IDLE_BLOCKING] = "blocking",
	[GPU_IDLE_STALLED] = "dependency_stalled",
	[GPU_IDLE_UNKNOWN] = "unknown",
};

/* Stretches beyond those wanted, at which the shortest ones are dropped. */
#define SLACK 4096

struct busy {
	const struct gpu_timeline *timeline;
	struct gpu_device_report *device;
	struct order_item *starts, *ends; /* of work that overlaps the window */
	size_t count;
	uint64_t *level_ns; /* by level */
	uint32_t stretches;
};

/* ---- concurrency ---- */

/* How many operations of each class run. */
struct running_now {
	uint32_t work, kernels, communication;
};

static void running_change(const struct busy *busy, struct running_now *now, uint32_t op,
			   uint32_t by)
{
	const struct gpu_timeline_op *at = &busy->timeline->ops.data[op];

	now->work += by;
	if (at->kind != GPU_OP_KERNEL)
		return;
	if (gpu_timeline_communicates(gpu_timeline_name(busy->timeline, at)))
		now->communication += by;
	else
		now->kernels += by;
}

static void time_pass(struct busy *busy, const struct running_now *now, uint64_t ns)
{
	struct gpu_device_report *device = busy->device;

	busy->level_ns[now->work] += ns;
	device->busy_ns += now->work ? ns : 0;
	device->kernel_ns += now->kernels || now->communication ? ns : 0;
	device->comm_ns += now->communication ? ns : 0;
	device->exposed_ns += now->communication && !now->kernels ? ns : 0;
}

/* An operation that ends when another one begins does not overlap it. */
static void levels_sweep(struct busy *busy)
{
	struct running_now now = {0};
	uint64_t at = busy->device->from_ts;
	size_t start = 0, end = 0;

	while (end < busy->count) {
		bool ends = start == busy->count || busy->ends[end].ts <= busy->starts[start].ts;
		const struct order_item *next = ends ? &busy->ends[end++] : &busy->starts[start++];

		time_pass(busy, &now, next->ts - at);
		at = next->ts;
		running_change(busy, &now, next->index, ends ? UINT32_MAX : 1);
		if (now.work > busy->device->max_concurrency)
			busy->device->max_concurrency = now.work;
	}
	time_pass(busy, &now, busy->device->to_ts - at);
	for (uint32_t level = 0; level <= busy->device->max_concurrency; level++)
		if (busy->level_ns[level])
			vec_add(&busy->device->levels,
				(struct gpu_level){level, busy->level_ns[level]});
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

static void gaps_find(struct busy *busy)
{
	const struct gpu_timeline *timeline = busy->timeline;
	uint64_t covered = busy->device->from_ts;
	uint32_t thread = MODEL_NONE;

	for (size_t i = 0; i < busy->count; i++) {
		uint32_t op = busy->starts[i].index, launch = timeline->ops.data[op].launch;
		uint64_t end = clamp(timeline->ops.data[op].end_ts, covered, busy->device->to_ts);

		if (busy->starts[i].ts > covered)
			gap_split(busy, covered, busy->starts[i].ts, op);
		covered = end;
		thread = launch == MODEL_NONE ? thread : timeline->launches.data[launch].thread;
	}
	starved_add(busy, (struct gpu_stretch){covered, busy->device->to_ts, thread, MODEL_NONE});
	if (busy->device->starved.len)
		qsort(busy->device->starved.data, busy->device->starved.len,
		      sizeof(*busy->device->starved.data), longer);
	stretches_cut(busy, 0);
}

/* ---- all of it ---- */

static void busy_collect(struct busy *busy, const struct gpu_timeline_device *device)
{
	uint64_t from = busy->device->from_ts, to = busy->device->to_ts;

	for (uint32_t i = device->op; i < device->op + device->op_count; i++) {
		const struct gpu_timeline_op *op = &busy->timeline->ops.data[i];
		uint64_t start = op->start_ts > from ? op->start_ts : from;
		uint64_t end = op->end_ts < to ? op->end_ts : to;

		if (op->kind == GPU_OP_WAIT || op->end_ts < from || op->start_ts > to)
			continue;
		busy->device->operations++;
		if (!gpu_op_is_work(op->kind) || start >= end)
			continue;
		busy->starts[busy->count] = (struct order_item){start, i};
		busy->ends[busy->count++] = (struct order_item){end, i};
	}
	order_sort(busy->starts, busy->count);
	order_sort(busy->ends, busy->count);
}

void gpu_busy_report(struct gpu_report *report, uint32_t device, uint32_t stretches)
{
	const struct gpu_timeline_device *at = &report->timeline->devices.data[device];
	struct busy busy = {
		.timeline = report->timeline,
		.device = &report->devices[device],
		.starts = memory_get(at->op_count * sizeof(*busy.starts)),
		.ends = memory_get(at->op_count * sizeof(*busy.ends)),
		.stretches = stretches,
	};

	busy_collect(&busy, at);
	busy.level_ns = memory_zeroed(busy.count + 1, sizeof(*busy.level_ns));
	levels_sweep(&busy);
	gaps_find(&busy);
	free(busy.starts);
	free(busy.ends);
	free(busy.level_ns);
}
