// SPDX-License-Identifier: Apache-2.0
/*
 * What operations wait for besides the order of their stream, and what the host waits for. One pass
 * over the host's calls in order of time follows each stream by its handle, as the probes or
 * libwaffle-gpu saw it. Its work has CUPTI's stream, since the launches connect both.
 *
 *	frontier of a stream  the operations that its next operation has to wait for
 *	record of an event    the event has a copy of the stream's frontier
 *	wait for an event     the event's frontier is added to the stream's
 *	launch                edges from what was added; the new operations are the frontier
 *	synchronisation       awaits the frontier
 */
#include <stdlib.h>
#include <string.h>

#include "model/gpu/gpu_records.h"
#include "model/gpu/gpu_timeline_sweep_internal.h"
#include "util/memory.h"

/* Limits against captures that are made to be large: of what a stream waits for at a time, and of
 * all edges, and of all that is awaited. */
#define FRONTIER_MAX 4096
#define EDGES_EACH 8
#define EDGES_MORE (1u << 20)
/* All lists together may be walked for so many steps, for each operation and each call, and some
 * more. An ordinary capture takes fewer than ten. What needs more is left out and counted. */
#define STEPS_EACH 16u
#define STEPS_MORE (1u << 22)

/* ---- frontiers ---- */

#define list_append(list, from)                                                                    \
	do {                                                                                       \
		vec_need((list), (from)->len);                                                     \
		if ((from)->len)                                                                   \
			memcpy((list)->data + (list)->len, (from)->data,                           \
			       (from)->len * sizeof(uint32_t));                                    \
		(list)->len += (from)->len;                                                        \
	} while (0)

/* False: the steps are used up, so that `count` edges are left out. */
static bool steps_take(struct timeline_sweep *sweep, size_t count)
{
	if (count > sweep->steps_left) {
		sweep->timeline->edges_left_out += count;
		return false;
	}
	sweep->steps_left -= count;
	return true;
}

static void frontier_append(struct timeline_sweep *sweep, const struct timeline_lane *lane)
{
	if (!steps_take(sweep, lane->front.len + lane->pending.len))
		return;
	list_append(&sweep->sources, &lane->front);
	list_append(&sweep->sources, &lane->pending);
}

static int compare_indexes(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

/* Sorts the sources and removes those that are there twice. More than `max` are counted and left
 * out. */
static void sources_finish(struct timeline_sweep *sweep, size_t max)
{
	size_t kept = 0;

	if (sweep->sources.len)
		qsort(sweep->sources.data, sweep->sources.len, sizeof(uint32_t), compare_indexes);
	for (size_t i = 0; i < sweep->sources.len; i++)
		if (!kept || sweep->sources.data[i] != sweep->sources.data[kept - 1])
			sweep->sources.data[kept++] = sweep->sources.data[i];
	if (kept > max) {
		sweep->timeline->edges_left_out += kept - max;
		kept = max;
	}
	sweep->sources.len = kept;
}

static void lane_change(struct timeline_sweep *sweep, uint32_t channel, uint64_t ts)
{
	struct timeline_lane *lane = &sweep->lanes[channel];
	struct sweep_process *process;

	lane->put_ts = ts;
	lane->changes++;
	if (lane->dirty)
		return;
	process = timeline_sweep_process(sweep, sweep->gpu->channels.data[channel].pid);
	lane->dirty = true;
	vec_add(&process->dirty, channel);
}

/* The frontier after a launch: its operations that no other one of it followed. */
static void front_set(struct timeline_sweep *sweep, struct timeline_lane *lane,
		      const struct gpu_timeline_launch *launch, bool first)
{
	const struct gpu_timeline *timeline = sweep->timeline;

	if (first)
		lane->front.len = 0;
	for (uint32_t i = 0; i < gpu_launch_op_count(launch); i++) {
		uint32_t op = timeline->launched.data[launch->op + i];

		if (sweep->inner[op] || timeline->ops.data[op].kind == GPU_OP_WAIT)
			continue;
		if (lane->front.len < FRONTIER_MAX)
			vec_add(&lane->front, op);
		else
			sweep->timeline->edges_left_out++;
	}
}

/* ---- launches ---- */

static size_t edges_max(const struct gpu_timeline *timeline)
{
	return timeline->ops.len * EDGES_EACH + EDGES_MORE;
}

static void edge_add(struct timeline_sweep *sweep, uint32_t from, uint32_t to,
		     enum gpu_edge_kind kind)
{
	struct gpu_timeline *timeline = sweep->timeline;
	const struct gpu_timeline_op *source = &timeline->ops.data[from];
	const struct gpu_timeline_op *target = &timeline->ops.data[to];
	/* Of two operations of one instant, each may seem to follow the other. */
	bool instant = source->start_ts == target->end_ts;

	if (source->stream == target->stream)
		return;
	if (instant || timeline->edges.len >= edges_max(timeline)) {
		timeline->edges_left_out++;
		return;
	}
	vec_add(&timeline->edges, (struct gpu_timeline_edge){from, to, (uint8_t)kind,
							     source->end_ts > target->start_ts});
}

/* How many operations a list with room for `cap` may have, so that all such lists together stay
 * within the limit of the edges: a few bytes of a capture may copy a whole frontier. */
static size_t list_max(const struct timeline_sweep *sweep, size_t cap)
{
	size_t all = edges_max(sweep->timeline);
	size_t max = cap + (sweep->kept < all ? all - sweep->kept : 0);

	return max < FRONTIER_MAX ? max : FRONTIER_MAX;
}

/* Adds edges from all sources to the operations that begin a launch. */
static void edges_add(struct timeline_sweep *sweep, const struct gpu_timeline_launch *launch,
		      enum gpu_edge_kind kind)
{
	const struct gpu_timeline *timeline = sweep->timeline;

	sources_finish(sweep, FRONTIER_MAX);
	for (uint32_t i = 0; i < gpu_launch_op_count(launch) && sweep->sources.len; i++) {
		uint32_t op = timeline->launched.data[launch->op + i];
		uint32_t previous = timeline->ops.data[op].previous;

		if (timeline->ops.data[op].kind == GPU_OP_WAIT ||
		    (previous != MODEL_NONE &&
		     timeline->ops.data[previous].launch == timeline->ops.data[op].launch))
			continue;
		if (!steps_take(sweep, sweep->sources.len))
			continue;
		for (size_t k = 0; k < sweep->sources.len; k++)
			edge_add(sweep, sweep->sources.data[k], op, kind);
	}
	sweep->sources.len = 0;
}

static bool is_legacy(const struct channel *channel)
{
	return channel->handle == STREAM_NULL;
}

/* Gathers the frontiers of the streams that the legacy stream waits for. */
static void legacy_gather(struct timeline_sweep *sweep, struct sweep_process *process)
{
	if (!steps_take(sweep, process->touched.len))
		return;
	for (size_t i = 0; i < process->touched.len; i++)
		frontier_append(sweep, &sweep->lanes[process->touched.data[i]]);
}

/* Gathers what a call on a blocking stream waits for on the legacy stream. False: nothing new. */
static bool blocking_gather(struct timeline_sweep *sweep, uint32_t index)
{
	const struct channel *channel = &sweep->gpu->channels.data[index];
	uint32_t legacy = gpu_stream(sweep->gpu, channel->pid, STREAM_NULL, 0);

	if (channel->blocking != STREAM_BLOCKING || legacy == MODEL_NONE ||
	    sweep->lanes[legacy].changes == sweep->lanes[index].legacy)
		return false;
	frontier_append(sweep, &sweep->lanes[legacy]);
	return true;
}

/* Notes that the legacy stream has to wait for a blocking one. */
static void blocking_touch(struct timeline_sweep *sweep, uint32_t index)
{
	const struct channel *channel = &sweep->gpu->channels.data[index];

	if (channel->blocking != STREAM_BLOCKING || sweep->lanes[index].touched)
		return;
	sweep->lanes[index].touched = true;
	vec_add(&timeline_sweep_process(sweep, channel->pid)->touched, index);
}

static void legacy_edges(struct timeline_sweep *sweep, uint32_t index,
			 const struct gpu_timeline_launch *launch)
{
	const struct channel *channel = &sweep->gpu->channels.data[index];
	struct sweep_process *process = timeline_sweep_process(sweep, channel->pid);

	if (is_legacy(channel)) {
		legacy_gather(sweep, process);
		for (size_t i = 0; i < process->touched.len; i++)
			sweep->lanes[process->touched.data[i]].touched = false;
		process->touched.len = 0;
		edges_add(sweep, launch, GPU_EDGE_LEGACY);
	} else if (blocking_gather(sweep, index)) {
		sweep->lanes[index].legacy =
			sweep->lanes[gpu_stream(sweep->gpu, channel->pid, STREAM_NULL, 0)].changes;
		edges_add(sweep, launch, GPU_EDGE_LEGACY);
	}
}

/* Puts the operations of a launch after what their stream waits for. `first`: the launch is the
 * first one of its call. */
static void lane_launch(struct timeline_sweep *sweep, uint32_t channel,
			const struct gpu_timeline_launch *launch, bool first)
{
	struct timeline_lane *lane = &sweep->lanes[channel];

	if (steps_take(sweep, lane->pending.len))
		list_append(&sweep->sources, &lane->pending);
	edges_add(sweep, launch, GPU_EDGE_EVENT);
	legacy_edges(sweep, channel, launch);
	front_set(sweep, lane, launch, first);
}

static void lane_launched(struct timeline_sweep *sweep, uint32_t channel, uint64_t ts)
{
	sweep->lanes[channel].pending.len = 0;
	blocking_touch(sweep, channel);
	lane_change(sweep, channel, ts);
}

static void sweep_work(struct timeline_sweep *sweep, const struct sweep_item *item, uint64_t ts)
{
	bool any = false;

	for (uint32_t i = sweep->first_launch[item->node]; i != MODEL_NONE;
	     i = sweep->next_launch[i]) {
		const struct gpu_timeline_launch *launch = &sweep->timeline->launches.data[i];

		if (!gpu_launch_op_count(launch))
			continue;
		lane_launch(sweep, item->channel, launch, !any);
		any = true;
	}
	if (any)
		lane_launched(sweep, item->channel, ts);
}

/* Goes on through the launches that no probe recorded, up to a time. */
static void sweep_own_launches(struct timeline_sweep *sweep, uint64_t until_ts)
{
	const struct gpu_timeline *timeline = sweep->timeline;

	for (; sweep->own_channel && sweep->own_next < timeline->launches.len; sweep->own_next++) {
		const struct gpu_timeline_launch *launch =
			&timeline->launches.data[sweep->own_next];
		uint32_t channel = sweep->own_channel[sweep->own_next];

		if (launch->ts >= until_ts)
			return;
		if (channel == MODEL_NONE || !gpu_launch_op_count(launch))
			continue;
		lane_launch(sweep, channel, launch, true);
		lane_launched(sweep, channel, launch->ts);
	}
}

/* ---- synchronisations ---- */

/* Adds a synchronisation that waited for the sources. */
static void sync_add(struct timeline_sweep *sweep, struct gpu_timeline_sync sync)
{
	struct gpu_timeline *timeline = sweep->timeline;

	sources_finish(sweep, edges_max(timeline) - timeline->awaited.len);
	if (sweep->sources.len) {
		sync.op = (uint32_t)timeline->awaited.len;
		sync.op_count = (uint32_t)sweep->sources.len;
		vec_add(&timeline->syncs, sync);
		list_append(&timeline->awaited, &sweep->sources);
	}
	sweep->sources.len = 0;
}

static void sync_add_span(struct timeline_sweep *sweep, uint32_t index)
{
	const struct model_span *span = &sweep->model->spans.data[index];

	sync_add(sweep, (struct gpu_timeline_sync){.start_ts = span->start_ts,
						   .end_ts = span->end_ts,
						   .span = index,
						   .thread = span->thread});
}

static void sync_device(struct timeline_sweep *sweep, const struct model_span *span, uint32_t pid)
{
	struct sweep_process *process = timeline_sweep_process(sweep, pid);
	size_t kept = 0;

	if (process->sync_end_ts <= span->start_ts)
		process->covered_ts = process->sync_start_ts;
	if (!steps_take(sweep, process->dirty.len))
		return;
	for (size_t i = 0; i < process->dirty.len; i++) {
		uint32_t channel = process->dirty.data[i];

		if (sweep->lanes[channel].put_ts <= process->covered_ts) {
			sweep->lanes[channel].dirty = false;
			continue;
		}
		frontier_append(sweep, &sweep->lanes[channel]);
		process->dirty.data[kept++] = channel;
	}
	process->dirty.len = kept;
	process->sync_start_ts = span->start_ts;
	process->sync_end_ts = span->end_ts;
}

static void sync_stream(struct timeline_sweep *sweep, const struct model_span *span, uint32_t pid)
{
	uint32_t channel = gpu_stream(
		sweep->gpu, pid, gpu_stream_of(sweep->gpu, span->site, span->frame), span->thread);

	if (channel == MODEL_NONE)
		return;
	frontier_append(sweep, &sweep->lanes[channel]);
	if (is_legacy(&sweep->gpu->channels.data[channel]))
		legacy_gather(sweep, timeline_sweep_process(sweep, pid));
}

static void sweep_sync(struct timeline_sweep *sweep, uint32_t index)
{
	const struct model_span *span = &sweep->model->spans.data[index];
	uint32_t pid = sweep->model->threads.data[span->thread].pid, channel;

	switch (gpu_site(sweep->gpu, span->site)->role) {
	case SITE_ROLE_SYNC_DEVICE:
		sync_device(sweep, span, pid);
		break;
	case SITE_ROLE_SYNC_STREAM:
		sync_stream(sweep, span, pid);
		break;
	default:
		channel = gpu_channel(sweep->gpu, CHANNEL_EVENT, pid,
				      gpu_number(sweep->gpu, span->site, span->frame, GPU_EVENT, 0),
				      0);
		if (channel != MODEL_NONE)
			frontier_append(sweep, &sweep->lanes[channel]);
	}
	sync_add_span(sweep, index);
}

/* Gathers what a call waited for by the handle of its stream or event. False: it is unknown. */
static bool wait_gather(struct timeline_sweep *sweep, const struct timeline_wait *wait)
{
	bool event = wait->kind == GPU_WAIT_EVENT;
	uint32_t thread, channel;
	struct value handle;

	if (!sweep->gpu || wait->kind == GPU_WAIT_CONTEXT ||
	    !model_gpu_value(sweep->model, MODEL_NODE_EVENT, wait->event,
			     event ? "event" : "handle", &handle))
		return false;
	thread = sweep->model->events.data[wait->event].thread;
	channel = event ? gpu_channel(sweep->gpu, CHANNEL_EVENT, wait->pid, handle.u64, 0)
			: gpu_stream(sweep->gpu, wait->pid, handle.u64, thread);
	if (channel == MODEL_NONE || (event && !sweep->lanes[channel].recorded))
		return false;
	frontier_append(sweep, &sweep->lanes[channel]);
	if (!event && is_legacy(&sweep->gpu->channels.data[channel]))
		legacy_gather(sweep, timeline_sweep_process(sweep, wait->pid));
	return true;
}

/* A call that waits, as CUPTI and libwaffle-gpu recorded it. */
static void sweep_host_wait(struct timeline_sweep *sweep, uint32_t index, uint64_t ts)
{
	const struct timeline_wait *wait = &sweep->build->waits.data[index];
	bool known = false;

	if (wait->event != MODEL_NONE) {
		known = timeline_follow_wait(sweep->follow, wait, ts, &sweep->sources);
		known |= wait_gather(sweep, wait);
	}
	if (!known) {
		sweep->timeline->unknown_waits++;
		sweep->timeline->unknown_wait_ns += wait->end_ts - wait->start_ts;
	}
	if (wait->event != MODEL_NONE)
		sync_add(sweep, (struct gpu_timeline_sync){
					.start_ts = wait->start_ts,
					.end_ts = wait->end_ts,
					.span = MODEL_NONE,
					.thread = sweep->model->events.data[wait->event].thread});
}

/* ---- all of them ---- */

static void sweep_wait(struct timeline_sweep *sweep, const struct sweep_item *item, uint64_t ts)
{
	struct model_gpu_op op = gpu_op(sweep->gpu, item->node);
	struct timeline_lane *lane = &sweep->lanes[item->channel], *event;
	struct value value;
	size_t cap, max;
	uint32_t channel;

	if (!model_gpu_value(sweep->model, op.node, op.index, "event", &value))
		return;
	channel = gpu_channel(sweep->gpu, CHANNEL_EVENT, op.pid, value.u64, 0);
	if (channel == MODEL_NONE)
		return;
	event = &sweep->lanes[channel];
	if (!steps_take(sweep, lane->pending.len + event->front.len))
		return;
	cap = lane->pending.cap;
	max = list_max(sweep, cap);
	if (lane->pending.len + event->front.len > max) {
		list_append(&sweep->sources, &lane->pending);
		list_append(&sweep->sources, &event->front);
		sources_finish(sweep, max);
		lane->pending.len = 0;
		list_append(&lane->pending, &sweep->sources);
		sweep->sources.len = 0;
	} else {
		list_append(&lane->pending, &event->front);
	}
	sweep->kept += lane->pending.cap - cap;
	blocking_touch(sweep, item->channel);
	lane_change(sweep, item->channel, ts);
}

static void sweep_record(struct timeline_sweep *sweep, const struct sweep_item *item)
{
	struct model_gpu_op op = gpu_op(sweep->gpu, item->node);
	struct timeline_lane *event = &sweep->lanes[item->channel];
	size_t cap = event->front.cap;

	event->front.len = 0;
	event->recorded = op.channel != MODEL_NONE;
	if (op.channel == MODEL_NONE)
		return;
	frontier_append(sweep, &sweep->lanes[op.channel]);
	if (is_legacy(&sweep->gpu->channels.data[op.channel]))
		legacy_gather(sweep, timeline_sweep_process(sweep, op.pid));
	blocking_gather(sweep, op.channel);
	sources_finish(sweep, list_max(sweep, cap));
	list_append(&event->front, &sweep->sources);
	sweep->kept += event->front.cap - cap;
	sweep->sources.len = 0;
}

/* Whether a node is a copy's call of which begin and end are known. */
static bool is_whole_copy(const struct timeline_sweep *sweep, uint32_t node)
{
	const struct model_span *span;

	if (node >= sweep->model->spans.len)
		return false;
	span = &sweep->model->spans.data[node];
	return !(span->flags & MODEL_SPAN_CUT) &&
	       gpu_site(sweep->gpu, span->site)->role == SITE_ROLE_COPY;
}

/* A copy without a stream returns only when it is done. */
static void sweep_synchronous_copy(struct timeline_sweep *sweep, const struct sweep_item *item)
{
	frontier_append(sweep, &sweep->lanes[item->channel]);
	sync_add_span(sweep, item->node);
}

static bool copy_is(const struct timeline_sweep *sweep, const struct gpu_timeline_op *op,
		    const char *direction)
{
	const char *name =
		op->kind == GPU_OP_COPY ? gpu_timeline_copy_name(sweep->timeline, op) : NULL;

	return name && !strcmp(name, direction);
}

/*
 * Adds what a copy's call waited for if the host's memory is pageable. From the device it returns
 * soon after the copy is done: if it goes on for longer than it took until then, it was for
 * something else. To the device
 * the driver copies into memory of its own, which is running, but may do so only when the stream
 * has come to the copy.
 */
static void pageable_gather(struct timeline_sweep *sweep, uint32_t index,
			    const struct model_span *call)
{
	const struct gpu_timeline_op *op = &sweep->timeline->ops.data[index];
	bool done = op->end_ts >= call->start_ts && op->end_ts <= call->end_ts;

	if (copy_is(sweep, op, "DtoH") && done &&
	    call->end_ts - op->end_ts <= op->end_ts - call->start_ts)
		vec_add(&sweep->sources, index);
	else if (copy_is(sweep, op, "HtoD") && op->start_ts <= call->end_ts &&
		 op->previous != MODEL_NONE)
		vec_add(&sweep->sources, op->previous);
}

/* A copy with a stream: whether it waited shows only by the times. */
static void sweep_stream_copy(struct timeline_sweep *sweep, const struct sweep_item *item)
{
	const struct gpu_timeline *timeline = sweep->timeline;
	const struct model_span *span = &sweep->model->spans.data[item->node];
	uint64_t until_ts = 0;

	for (uint32_t i = sweep->first_launch[item->node]; i != MODEL_NONE;
	     i = sweep->next_launch[i]) {
		const struct gpu_timeline_launch *launch = &timeline->launches.data[i];

		for (uint32_t k = 0; k < gpu_launch_op_count(launch); k++)
			pageable_gather(sweep, timeline->launched.data[launch->op + k], span);
	}
	for (size_t i = 0; i < sweep->sources.len; i++) {
		const struct gpu_timeline_op *op = &timeline->ops.data[sweep->sources.data[i]];

		until_ts = op->end_ts > until_ts ? op->end_ts : until_ts;
	}
	if (until_ts > span->start_ts && until_ts - span->start_ts >= GPU_COPY_WAITS_NS)
		sync_add_span(sweep, item->node);
	sweep->sources.len = 0;
}

static void sweep_copy(struct timeline_sweep *sweep, const struct sweep_item *item)
{
	uint32_t site = sweep->model->spans.data[item->node].site;

	if (gpu_site(sweep->gpu, site)->keys[GPU_STREAM] == GPU_KEY_NONE)
		sweep_synchronous_copy(sweep, item);
	else
		sweep_stream_copy(sweep, item);
}

static void sweep_item(struct timeline_sweep *sweep, const struct order_item *at)
{
	const struct sweep_item *item = &sweep->items.data[at->index];

	if (item->kind == SWEEP_WAIT) {
		sweep_host_wait(sweep, item->node, at->ts);
	} else if (item->kind == SWEEP_SYNC) {
		sweep_sync(sweep, item->node);
	} else if (item->kind == SWEEP_RECORD) {
		sweep_record(sweep, item);
	} else if (gpu_op(sweep->gpu, item->node).role == SITE_ROLE_STREAM_WAIT) {
		sweep_wait(sweep, item, at->ts);
	} else {
		sweep_work(sweep, item, at->ts);
		if (sweep->first_launch[item->node] != MODEL_NONE &&
		    is_whole_copy(sweep, item->node))
			sweep_copy(sweep, item);
	}
}

static int compare_edges(const void *left, const void *right)
{
	const struct gpu_timeline_edge *a = left, *b = right;

	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

/* Sorts the edges, and keeps one between two operations. */
static void edges_finish(struct gpu_timeline *timeline)
{
	size_t kept = 0;

	if (timeline->edges.len)
		qsort(timeline->edges.data, timeline->edges.len, sizeof(*timeline->edges.data),
		      compare_edges);
	for (size_t i = 0; i < timeline->edges.len; i++) {
		const struct gpu_timeline_edge *edge = &timeline->edges.data[i];

		if (!kept || timeline->edges.data[kept - 1].to != edge->to ||
		    timeline->edges.data[kept - 1].from != edge->from)
			timeline->edges.data[kept++] = *edge;
	}
	timeline->edges.len = kept;
}

static void sweep_free(struct timeline_sweep *sweep)
{
	for (size_t i = 0; sweep->gpu && i < sweep->gpu->channels.len; i++) {
		vec_free(&sweep->lanes[i].front);
		vec_free(&sweep->lanes[i].pending);
	}
	for (size_t i = 0; i < sweep->processes.len; i++) {
		vec_free(&sweep->processes.data[i].dirty);
		vec_free(&sweep->processes.data[i].touched);
	}
	free(sweep->lanes);
	map_free(&sweep->process_at);
	vec_free(&sweep->processes);
	vec_free(&sweep->items);
	vec_free(&sweep->order);
	vec_free(&sweep->sources);
	free(sweep->first_launch);
	free(sweep->next_launch);
	free(sweep->inner);
	timeline_follow_free(sweep->follow);
}

void timeline_edges_find(struct timeline_build *build, struct model_gpu *gpu)
{
	struct gpu_timeline *timeline = build->timeline;
	struct timeline_sweep sweep = {
		.build = build, .timeline = timeline, .model = build->model, .gpu = gpu};

	timeline_sweep_fill(&sweep);
	if (gpu)
		sweep.lanes = memory_zeroed(gpu->channels.len, sizeof(*sweep.lanes));
	if (build->waits.len)
		sweep.follow = timeline_follow_new(build);
	sweep.steps_left = (timeline->ops.len + sweep.order.len) * STEPS_EACH + STEPS_MORE;
	for (size_t i = 0; i < sweep.order.len; i++) {
		sweep_own_launches(&sweep, sweep.order.data[i].ts);
		sweep_item(&sweep, &sweep.order.data[i]);
	}
	sweep_own_launches(&sweep, UINT64_MAX);
	edges_finish(timeline);
	free(order_vec(&timeline->syncs, start_ts));
	sweep_free(&sweep);
}
