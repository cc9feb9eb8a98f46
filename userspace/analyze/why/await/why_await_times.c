// SPDX-License-Identifier: Apache-2.0
/*
 * What a call waited for, by the GPU's own times. The call returned when the last of the operations
 * that it awaited had ended. From that one we go back to what it had to wait for, as long as this
 * ended during the call: these operations are why the call took so long.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/await/why_await.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/search.h"
#include "util/units.h"

#define NAMES_MAX 16 /* names that are told apart; the time of others is not summed up */
#define NAMES_SHOWN 3
#define OPS_MAX 65536 /* limit of the operations of one call */
/* A GPU begins the next operation of a stream within some tens of microseconds. If nothing runs
 * for longer than this, something that has no times holds it up. */
#define STALL_NS 200000

/* Operations of a name on a stream that ran during the call. */
struct ran {
	uint32_t op; /* the longest of them */
	uint64_t longest_ns, total_ns;
	uint64_t count;
};

struct times {
	const struct gpu_timeline *timeline;
	uint64_t from_ts, to_ts;
	struct ran ran[NAMES_MAX];
	unsigned count;
	uint64_t ran_ns;       /* sum over all names */
	uint64_t stalled_ns;   /* sum of the times, each of at least STALL_NS, in which none ran */
	uint32_t stalled;      /* the operation after the longest of them, or MODEL_NONE */
	uint64_t longest_ns;   /* length of the longest */
	uint64_t stalled_from; /* begin of the longest */
	bool others;           /* another stream of the device had work in the longest */
};

static const struct gpu_timeline_sync *sync_find(const struct gpu_timeline *timeline,
						 const struct model *model, uint32_t span)
{
	uint64_t start_ts = model->spans.data[span].start_ts;
	size_t at =
		lower_bound(timeline->syncs.len, i, timeline->syncs.data[i].start_ts < start_ts);

	for (; at < timeline->syncs.len && timeline->syncs.data[at].start_ts == start_ts; at++)
		if (timeline->syncs.data[at].span == span)
			return &timeline->syncs.data[at];
	return NULL;
}

static void ran_add(struct times *times, uint32_t op)
{
	const struct gpu_timeline_op *at = &times->timeline->ops.data[op];
	uint64_t from = at->start_ts > times->from_ts ? at->start_ts : times->from_ts;
	uint64_t to = at->end_ts < times->to_ts ? at->end_ts : times->to_ts;
	uint64_t ns = to > from ? to - from : 0;
	unsigned i = 0;

	times->ran_ns += ns;
	while (i < times->count &&
	       (times->timeline->ops.data[times->ran[i].op].name != at->name ||
		times->timeline->ops.data[times->ran[i].op].stream != at->stream))
		i++;
	if (i == NAMES_MAX)
		return;
	if (i == times->count)
		times->ran[times->count++] = (struct ran){.op = op};
	times->ran[i].count++;
	times->ran[i].total_ns += ns;
	if (ns > times->ran[i].longest_ns) {
		times->ran[i].longest_ns = ns;
		times->ran[i].op = op;
	}
}

/* Whether another stream of an operation's device had work between `from` and its begin. */
static bool others_ran(const struct gpu_timeline *timeline, uint32_t op, uint64_t from)
{
	const struct gpu_timeline_op *ops = timeline->ops.data;
	const struct gpu_timeline_device *device =
		&timeline->devices.data[gpu_timeline_device_of(timeline, &ops[op])];

	for (uint32_t i = device->stream; i < device->stream + device->stream_count; i++) {
		const struct gpu_timeline_stream *stream = &timeline->streams.data[i];
		const struct gpu_timeline_op *of = &ops[stream->op];
		size_t count =
			lower_bound(stream->op_count, at, of[at].start_ts < ops[op].start_ts);

		if (i != ops[op].stream && count && of[count - 1].end_ts > from)
			return true;
	}
	return false;
}

/* Notes that nothing ran between the operation before `op`, if there is one, and `op`. What the
 * call itself launched may not have been submitted until then. */
static void stall_add(struct times *times, uint32_t before, uint32_t op)
{
	const struct gpu_timeline_op *ops = times->timeline->ops.data;
	uint64_t from = times->from_ts, ns;

	if (ops[op].launch == MODEL_NONE ||
	    times->timeline->launches.data[ops[op].launch].ts >= from)
		return;
	if (before != MODEL_NONE && ops[before].end_ts > from)
		from = ops[before].end_ts;
	ns = ops[op].start_ts > from ? ops[op].start_ts - from : 0;
	if (ns < STALL_NS)
		return;
	times->stalled_ns += ns;
	if (ns > times->longest_ns) {
		times->longest_ns = ns;
		times->stalled = op;
		times->stalled_from = from;
	}
}

/* Collects what ran, from the last operation back. False: a collective is among it, or it is too
 * much. */
static bool ran_collect(struct times *times, struct why_walk *walk, uint32_t op)
{
	for (unsigned i = 0; op != MODEL_NONE; i++) {
		const struct gpu_timeline_op *at = &times->timeline->ops.data[op];
		uint32_t needed = gpu_timeline_needed(times->timeline, op);

		if (at->end_ts <= times->from_ts)
			return true;
		if (i == OPS_MAX || !why_await_steps(walk, 1) ||
		    gpu_timeline_communicates(gpu_timeline_name(times->timeline, at)))
			return false;
		ran_add(times, op);
		stall_add(times, needed, op);
		op = needed;
	}
	return true;
}

static int longer(const void *left, const void *right)
{
	const struct ran *a = left, *b = right;

	if (a->total_ns != b->total_ns)
		return a->total_ns > b->total_ns ? -1 : 1;
	return a->op < b->op ? -1 : a->op > b->op;
}

/* ---- texts ---- */

/* "stream 7 of GPU 0" */
static void put_stream(FILE *out, const struct gpu_timeline *timeline, uint32_t op)
{
	const struct gpu_timeline_stream *stream =
		&timeline->streams.data[timeline->ops.data[op].stream];

	fprintf(out, "stream %" PRIu64 " of GPU %" PRIu64, stream->number,
		timeline->devices.data[stream->device].number);
}

/* "kernel gemm on stream 7 of GPU 0" */
static void put_op(FILE *out, const struct gpu_timeline *timeline, uint32_t op)
{
	const struct gpu_timeline_op *at = &timeline->ops.data[op];
	const char *name = gpu_timeline_name(timeline, at);
	const struct value value = {
		.type = WAFFLE_KEY_STR, .text = name, .text_len = (uint32_t)strlen(name)};

	if (at->kind == GPU_OP_KERNEL)
		why_await_put_function(out, "kernel", &value);
	else if (at->kind == GPU_OP_COPY && at->copy)
		fprintf(out, "copy %s of %" PRIu64 " bytes", gpu_timeline_copy_name(timeline, at),
			(uint64_t)at->bytes);
	else
		fputs(name, out);
	fputs(" on ", out);
	put_stream(out, timeline, op);
}

/* Whether nothing ran for most of the wait. */
static bool is_stalled(const struct times *times)
{
	return times->stalled_ns > (times->to_ts - times->from_ts) / 2;
}

static uint32_t object_text(struct why_walk *walk, const struct times *times)
{
	char *text = NULL;
	size_t len;
	FILE *out = memory_stream(&text, &len);
	uint32_t number;

	if (is_stalled(times)) {
		put_stream(out, times->timeline, times->stalled);
		fputs(", on which nothing ran", out);
	} else {
		put_op(out, times->timeline, times->ran[0].op);
	}
	memory_require(!fclose(out));
	number = strtab_put(walk->why->texts, text, len);
	free(text);
	return number;
}

/* "for 2.1 ms nothing ran on stream 7 of GPU 0; the GPU may have worked for another process; " */
static void put_stall(FILE *out, const struct times *times)
{
	char duration[UNITS_TEXT];

	fprintf(out, "for %s nothing ran on ", units_format_duration(duration, times->stalled_ns));
	put_stream(out, times->timeline, times->stalled);
	fputs(times->others ? "; " : "; the GPU may have worked for another process; ", out);
}

/* "waits for the GPU: kernel gemm on stream 7 of GPU 0 ran for 9.2 ms (4 times), … ran for 1 ms" */
static uint32_t ran_text(struct why_walk *walk, const struct times *times)
{
	char *text = NULL;
	size_t len;
	FILE *out = memory_stream(&text, &len);
	uint32_t number;

	fputs("waits for the GPU: ", out);
	if (is_stalled(times))
		put_stall(out, times);
	for (unsigned i = 0; i < times->count && i < NAMES_SHOWN; i++) {
		char duration[UNITS_TEXT];

		fputs(i ? ", " : "", out);
		put_op(out, times->timeline, times->ran[i].op);
		fprintf(out, " ran for %s",
			units_format_duration(duration, times->ran[i].total_ns));
		if (times->ran[i].count > 1)
			fprintf(out, " (%" PRIu64 " times)", times->ran[i].count);
	}
	if (times->count > NAMES_SHOWN)
		fputs(", and others", out);
	memory_require(!fclose(out));
	number = strtab_put(walk->why->texts, text, len);
	free(text);
	return number;
}

/* When the call of the probes began that is part of a launch; the launch itself if there is none.
 */
static uint64_t launch_begin(const struct why_walk *walk, const struct gpu_timeline_launch *launch)
{
	if (launch->host == MODEL_NONE)
		return launch->ts;
	return launch->host_kind == MODEL_NODE_SPAN ? walk->model->spans.data[launch->host].start_ts
						    : walk->model->events.data[launch->host].ts;
}

/* Whether all that a call waits for had ended when it began. The operation that was put last on its
 * stream, as the calls say, must be among those with times. */
static bool was_done(const struct why_walk *walk, const struct why_sync *sync,
		     const struct gpu_timeline_sync *found)
{
	const struct gpu_timeline *timeline = walk->awaits.timeline;
	bool has_last = false;

	for (uint32_t i = found->op; i < found->op + found->op_count; i++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[timeline->awaited.data[i]];

		if (op->end_ts > found->start_ts)
			return false;
		has_last |=
			op->launch != MODEL_NONE && sync->launch_ts &&
			launch_begin(walk, &timeline->launches.data[op->launch]) == sync->launch_ts;
	}
	return has_last;
}

bool why_await_has_operations(const struct why_walk *walk, uint32_t pid)
{
	const struct gpu_timeline *timeline = walk->awaits.timeline;

	return timeline && timeline->ops.len && gpu_timeline_session(timeline, pid);
}

bool why_await_timed(const struct why_walk *walk, uint32_t span)
{
	return walk->awaits.timeline && sync_find(walk->awaits.timeline, walk->model, span);
}

/* A host function, or a wait for another stream, may have held the stream up if it is not known. */
static enum why_grade grade_of_stall(const struct gpu_timeline *timeline)
{
	return timeline->probed ? WHY_GRADE_LIKELY : WHY_GRADE_UNKNOWN;
}

/* What the call waited for, and which call launched it. */
static void describe(struct why_walk *walk, struct why_sync *sync, const struct times *times)
{
	const struct gpu_timeline *timeline = times->timeline;
	bool stalled = is_stalled(times);
	uint32_t op = stalled ? times->stalled : times->ran[0].op;
	const struct gpu_timeline_launch *launch;

	sync->waits = sync->spins = true;
	sync->end =
		!stalled && timeline->ops.data[op].kind == GPU_OP_HOST ? WHY_USER_WORK : WHY_GPU;
	sync->grade = stalled ? grade_of_stall(timeline) : WHY_GRADE_CERTAIN;
	sync->object = object_text(walk, times);
	sync->meaning = ran_text(walk, times);
	sync->launch_ts = 0;
	if (timeline->ops.data[op].launch == MODEL_NONE)
		return;
	launch = &timeline->launches.data[timeline->ops.data[op].launch];
	sync->launch_ts = launch_begin(walk, launch);
	sync->launch_thread = launch->thread;
	sync->launch_span = launch->span;
}

/* Whether the call is a copy with a stream, and neither the GPU nor something that held it up took
 * most of its time: the driver did, and the copy was done when that was. */
static bool is_driver(const struct why_walk *walk, uint32_t span, const struct times *times)
{
	const struct model *model = walk->model;
	struct value stream;

	return model_site(model, model->spans.data[span].site)->role == SITE_ROLE_COPY &&
	       model_gpu_value(model, MODEL_NODE_SPAN, span, "stream", &stream) &&
	       !is_stalled(times) && times->ran_ns < (times->to_ts - times->from_ts) / 2;
}

bool why_await_by_times(struct why_walk *walk, struct why_sync *sync, bool ranks, bool host)
{
	const struct gpu_timeline *timeline = walk->awaits.timeline;
	const struct gpu_timeline_sync *found;
	struct times times = {.timeline = timeline, .stalled = MODEL_NONE};
	uint32_t last;

	found = timeline ? sync_find(timeline, walk->model, sync->span) : NULL;
	last = found ? gpu_timeline_awaited(timeline, found) : MODEL_NONE;
	if (found && last == MODEL_NONE && was_done(walk, sync, found))
		sync->done_ts = found->start_ts;
	if (last == MODEL_NONE)
		return false;
	times.from_ts = found->start_ts;
	sync->done_ts = timeline->ops.data[last].end_ts;
	times.to_ts = sync->done_ts;
	if (ranks || !ran_collect(&times, walk, last) || (host && is_stalled(&times)))
		return false;
	if (is_driver(walk, sync->span, &times)) {
		sync->end = WHY_CAUSE_COUNT;
		return true;
	}
	times.others =
		is_stalled(&times) && others_ran(timeline, times.stalled, times.stalled_from);
	qsort(times.ran, times.count, sizeof(*times.ran), longer);
	describe(walk, sync, &times);
	return true;
}
