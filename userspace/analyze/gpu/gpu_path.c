// SPDX-License-Identifier: Apache-2.0
/*
 * The critical path of a process, found backwards from the end of its last operation. An operation
 * could begin when the last of these had happened: the end of what it depended on, and its launch.
 * Before a launch its thread ran, since it had returned from a call that waited for operations, or
 * since another thread that uses the GPU had woken it. The path goes on with the operation that
 * ended last, or with the other thread.
 */
#include <stdlib.h>

#include "analyze/gpu/gpu_report_internal.h"
#include "util/memory.h"
#include "util/search.h"

const char *const gpu_piece_names[GPU_PIECE_KIND_COUNT] = {
	[GPU_PIECE_OPERATION] = "operation", [GPU_PIECE_GAP] = "gap",
	[GPU_PIECE_LAUNCH] = "launch",       [GPU_PIECE_HOST] = "host",
	[GPU_PIECE_RETURN] = "return",
};

/* Parents that all searches together may look at, for each span. Spans of a capture that was made
 * up may be nested as deeply as it is long. */
#define SPAN_STEPS 64

/* A synchronisation that had to wait: `op` ended during it. */
struct waited {
	uint64_t end_ts;
	uint32_t thread, op, sync;
};

/* A thread that another thread woke. */
struct woken {
	uint64_t ts;
	uint32_t thread, waker;
};

struct path_walk {
	const struct gpu_report *report;
	const struct gpu_timeline *timeline;
	struct gpu_path *path;
	struct waited *waited; /* by thread, then end_ts */
	size_t waited_count;
	VEC(struct woken) woken; /* by thread, then ts */
	/* Spans by thread, then begin; first_span is where a thread's begin. */
	uint32_t *spans, *first_span;
	uint64_t from_ts;  /* the walk ends there */
	size_t span_steps; /* parents that may still be looked at */
	bool pieces;       /* are kept */
	struct gpu_path_rows *rows;
};

/* ---- synchronisations ---- */

static int compare_waited(const void *left, const void *right)
{
	const struct waited *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->end_ts != b->end_ts)
		return a->end_ts < b->end_ts ? -1 : 1;
	return a->sync < b->sync ? -1 : a->sync > b->sync;
}

static void waited_collect(struct path_walk *walk)
{
	const struct gpu_timeline *timeline = walk->timeline;

	walk->waited = memory_get(timeline->syncs.len * sizeof(*walk->waited));
	for (uint32_t i = 0; i < timeline->syncs.len; i++) {
		const struct gpu_timeline_sync *sync = &timeline->syncs.data[i];
		uint32_t op = gpu_timeline_awaited(timeline, sync);

		if (op != MODEL_NONE)
			walk->waited[walk->waited_count++] =
				(struct waited){sync->end_ts, sync->thread, op, i};
	}
	if (walk->waited_count)
		qsort(walk->waited, walk->waited_count, sizeof(*walk->waited), compare_waited);
}

/* The last synchronisation of a thread that had returned by a time; NULL: none. */
static const struct waited *waited_before(const struct path_walk *walk, uint32_t thread,
					  uint64_t ts)
{
	size_t after =
		lower_bound(walk->waited_count, i,
			    walk->waited[i].thread < thread || (walk->waited[i].thread == thread &&
								walk->waited[i].end_ts <= ts));

	return after && walk->waited[after - 1].thread == thread ? &walk->waited[after - 1] : NULL;
}

/* ---- the walk ---- */

/* Adds a piece before those that are there. False: the walk has reached its end. */
static bool piece_add(struct path_walk *walk, struct gpu_piece piece)
{
	bool more = piece.from_ts > walk->from_ts;

	if (!more)
		piece.from_ts = walk->from_ts;
	walk->path->from_ts = piece.from_ts < piece.to_ts ? piece.from_ts : piece.to_ts;
	if (piece.from_ts < piece.to_ts)
		gpu_path_rows_add(walk->rows, &piece);
	if (piece.from_ts < piece.to_ts && walk->pieces)
		vec_add(&walk->path->pieces, piece);
	return more;
}

/* The last time that another thread woke a thread before ts; NULL: none. */
static const struct woken *woken_before(const struct path_walk *walk, uint32_t thread, uint64_t ts)
{
	size_t after = lower_bound(
		walk->woken.len, i,
		walk->woken.data[i].thread < thread ||
			(walk->woken.data[i].thread == thread && walk->woken.data[i].ts < ts));

	return after && walk->woken.data[after - 1].thread == thread ? &walk->woken.data[after - 1]
								     : NULL;
}

/* The program's innermost span that is open on a thread before ts. */
static uint32_t span_before(struct path_walk *walk, uint32_t thread, uint64_t ts)
{
	const struct model *model = walk->timeline->model;
	uint32_t first = walk->first_span[thread], end = walk->first_span[thread + 1];
	uint32_t after =
		lower_bound_in(first, end, i, model->spans.data[walk->spans[i]].start_ts < ts);
	uint32_t span = after > first ? walk->spans[after - 1] : MODEL_NONE;

	for (; span != MODEL_NONE && walk->span_steps; walk->span_steps--) {
		uint32_t program = gpu_timeline_program_span(walk->timeline, span);

		if (program == MODEL_NONE || model->spans.data[program].end_ts >= ts)
			return program;
		span = model->spans.data[program].parent;
	}
	return MODEL_NONE;
}

/* Goes back along threads from a time at which `thread` launched. Returns the operation that one of
 * them waited for before; MODEL_NONE: the path ends here. */
static uint32_t walk_host(struct path_walk *walk, uint32_t thread, uint64_t ts, uint32_t span)
{
	for (;;) {
		const struct waited *waited = waited_before(walk, thread, ts);
		const struct woken *woken = woken_before(walk, thread, ts);
		uint64_t from_ts = waited ? waited->end_ts : walk->from_ts;
		struct gpu_piece piece = {.from_ts = from_ts,
					  .to_ts = ts,
					  .op = MODEL_NONE,
					  .span = span,
					  .thread = thread,
					  .kind = GPU_PIECE_HOST};

		if (woken && woken->ts > from_ts) {
			piece.from_ts = ts = woken->ts;
			if (!piece_add(walk, piece))
				return MODEL_NONE;
			thread = woken->waker;
			span = span_before(walk, thread, ts);
			continue;
		}
		if (!piece_add(walk, piece) || !waited)
			return MODEL_NONE;
		piece.to_ts = waited->end_ts;
		piece.from_ts = walk->timeline->ops.data[waited->op].end_ts;
		piece.kind = GPU_PIECE_RETURN;
		return piece_add(walk, piece) ? waited->op : MODEL_NONE;
	}
}

/* Goes back from the end of an operation to what it could not begin before. Returns the next
 * operation; MODEL_NONE: the path ends. */
static uint32_t walk_op(struct path_walk *walk, uint32_t op)
{
	const struct gpu_timeline *timeline = walk->timeline;
	const struct gpu_timeline_op *at = &timeline->ops.data[op];
	const struct gpu_timeline_launch *launch =
		at->launch == MODEL_NONE ? NULL : &timeline->launches.data[at->launch];
	uint32_t needed = gpu_timeline_needed(timeline, op);
	struct gpu_piece piece = {.from_ts = at->start_ts,
				  .to_ts = at->end_ts,
				  .op = op,
				  .span = gpu_report_span(timeline, at),
				  .thread = MODEL_NONE,
				  .kind = GPU_PIECE_OPERATION};

	if (!piece_add(walk, piece) || (!launch && needed == MODEL_NONE))
		return MODEL_NONE;
	piece.to_ts = at->start_ts;
	if (needed != MODEL_NONE && (!launch || timeline->ops.data[needed].end_ts >= launch->ts)) {
		piece.from_ts = timeline->ops.data[needed].end_ts;
		piece.kind = GPU_PIECE_GAP;
		return piece_add(walk, piece) ? needed : MODEL_NONE;
	}
	piece.from_ts = launch->ts;
	piece.kind = GPU_PIECE_LAUNCH;
	return piece_add(walk, piece) ? walk_host(walk, launch->thread, launch->ts, launch->span)
				      : MODEL_NONE;
}

static void pieces_reverse(struct gpu_path *path)
{
	for (size_t i = 0; i < path->pieces.len / 2; i++) {
		struct gpu_piece *other = &path->pieces.data[path->pieces.len - 1 - i];
		struct gpu_piece piece = path->pieces.data[i];

		path->pieces.data[i] = *other;
		*other = piece;
	}
}

/* The operation of a process that ended last in the windows of its devices, which follow each other
 * from `first` on; of several the first. */
static uint32_t last_op(const struct gpu_report *report, size_t first, uint64_t *from_ts)
{
	const struct gpu_timeline *timeline = report->timeline;
	uint32_t last = MODEL_NONE;

	for (size_t i = first; i < timeline->devices.len &&
			       timeline->devices.data[i].pid == timeline->devices.data[first].pid;
	     i++) {
		const struct gpu_timeline_device *device = &timeline->devices.data[i];

		*from_ts = report->devices[i].from_ts;
		for (uint32_t k = device->op; k < device->op + device->op_count; k++) {
			const struct gpu_timeline_op *op = &timeline->ops.data[k];

			if (gpu_op_is_work(op->kind) && op->end_ts <= report->devices[i].to_ts &&
			    op->end_ts > report->devices[i].from_ts &&
			    (last == MODEL_NONE || op->end_ts > timeline->ops.data[last].end_ts))
				last = k;
		}
	}
	return last;
}

/* Of the process that has the device `first`, and others behind it. */
static void path_find(struct path_walk *walk, size_t first)
{
	struct gpu_report *report = (struct gpu_report *)walk->report;
	uint32_t op = last_op(report, first, &walk->from_ts);
	/* Each step goes back in time, except between operations without length. */
	size_t steps = walk->timeline->ops.len * 2 + 2;

	if (op == MODEL_NONE)
		return;
	vec_add(&report->paths, (struct gpu_path){.pid = walk->timeline->devices.data[first].pid});
	walk->path = &report->paths.data[report->paths.len - 1];
	walk->path->to_ts = walk->timeline->ops.data[op].end_ts;
	walk->rows = gpu_path_rows_new(walk->timeline);
	while (op != MODEL_NONE && steps--)
		op = walk_op(walk, op);
	pieces_reverse(walk->path);
	gpu_path_rows_finish(walk->rows, &walk->path->sums);
}

static int compare_woken(const void *left, const void *right)
{
	const struct woken *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

/*
 * Collects the wake-ups between threads of a process that use its GPUs. Other threads, such as
 * those of libraries, wake these only because of a lock, and what they did before has another
 * reason. What an interrupt wakes has no waker.
 */
static void woken_collect(struct path_walk *walk)
{
	const struct gpu_timeline *timeline = walk->timeline;
	const struct model *model = timeline->model;
	const uint8_t interrupts = WAFFLE_SWITCH_WAKER_SOFTIRQ | WAFFLE_SWITCH_WAKER_HARDIRQ;
	bool *uses = memory_zeroed(model->threads.len + 1, sizeof(*uses));

	for (size_t i = 0; i < timeline->launches.len; i++)
		uses[timeline->launches.data[i].thread] = true;
	for (size_t i = 0; i < timeline->syncs.len; i++)
		uses[timeline->syncs.data[i].thread] = true;
	for (size_t i = 0; i < model->switches.len; i++) {
		const struct model_switch *at = &model->switches.data[i];

		if (at->flags & WAFFLE_SWITCH_WOKEN && !(at->flags & interrupts) &&
		    at->waker != at->next && at->waker < model->threads.len &&
		    at->next < model->threads.len && uses[at->waker] && uses[at->next] &&
		    model->threads.data[at->waker].pid == model->threads.data[at->next].pid)
			vec_add(&walk->woken, (struct woken){at->wake_ts, at->next, at->waker});
	}
	free(uses);
	if (walk->woken.len)
		qsort(walk->woken.data, walk->woken.len, sizeof(*walk->woken.data), compare_woken);
}

static void spans_index(struct path_walk *walk)
{
	const struct model *model = walk->timeline->model;
	size_t threads = model->threads.len;

	walk->first_span = memory_zeroed(threads + 2, sizeof(uint32_t));
	walk->spans = memory_get(model->spans.len * sizeof(uint32_t));
	/* The counts stand two places ahead, so that filling leaves the right begins. */
	for (size_t i = 0; i < model->spans.len; i++)
		walk->first_span[model->spans.data[i].thread + 2]++;
	for (size_t i = 2; i < threads + 2; i++)
		walk->first_span[i] += walk->first_span[i - 1];
	for (uint32_t i = 0; i < model->spans.len; i++)
		walk->spans[walk->first_span[model->spans.data[i].thread + 1]++] = i;
}

void gpu_paths_find(struct gpu_report *report, bool pieces)
{
	const struct gpu_timeline *timeline = report->timeline;
	struct path_walk walk = {.report = report,
				 .timeline = timeline,
				 .pieces = pieces,
				 .span_steps = SPAN_STEPS * (timeline->model->spans.len + 1)};

	waited_collect(&walk);
	woken_collect(&walk);
	spans_index(&walk);
	for (size_t i = 0; i < timeline->devices.len; i++)
		if (!i || timeline->devices.data[i].pid != timeline->devices.data[i - 1].pid)
			path_find(&walk, i);
	free(walk.waited);
	vec_free(&walk.woken);
	free(walk.spans);
	free(walk.first_span);
}
