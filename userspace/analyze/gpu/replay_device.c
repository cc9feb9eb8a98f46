// SPDX-License-Identifier: Apache-2.0
#include "analyze/gpu/replay_device.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/gpu/replay_cuda_internal.h"
#include "util/memory.h"

#define THREADS_MAX 64
#define STREAMS_MAX 128
#define OPERATIONS_MAX 1000000
#define TIME_MAX_NS 60000000000u
#define CU_STREAM_NON_BLOCKING 1
#define CU_EVENT_DISABLE_TIMING 2
#define CUDA_ERROR_LAUNCH_TIMEOUT 702

/* One issue of a schedule. Arrays have an element for each timeline.ops unless stated otherwise. */
struct issue {
	const struct replay_build *build;
	const struct gpu_timeline *timeline;
	const bool *selected; /* of each node; NULL: all */
	struct replay_cuda cuda;
	void **streams;    /* of each timeline.streams; NULL: not used */
	void **events;     /* recorded after the operation; NULL: nobody waits for it */
	uint32_t *before;  /* the operation before it on its stream, or REPLAY_NONE */
	bool *issued;      /* atomic */
	int error;         /* atomic: the first result of CUDA that is no success */
	uint64_t first_ts; /* recorded begin of all */
	uint64_t begin_ns; /* the same, in this run: the first thread sets it */
	uint64_t operations;
	pthread_barrier_t barrier;
};

/* One thread of the host. */
struct issue_thread {
	struct issue *issue;
	pthread_t thread;
	VEC(uint32_t) nodes;
	uint64_t recorded_ts, real_ns; /* the same moment in the recording and in this run */
};

static bool is_selected(const struct issue *issue, uint32_t node)
{
	return node != REPLAY_NONE && (!issue->selected || issue->selected[node]);
}

static bool op_is_selected(const struct issue *issue, uint32_t op)
{
	return is_selected(issue, issue->build->op_node[op]);
}

static void issue_fail(struct issue *issue, int error)
{
	int none = 0;

	if (error)
		__atomic_compare_exchange_n(&issue->error, &none, error, false, __ATOMIC_SEQ_CST,
					    __ATOMIC_SEQ_CST);
}

static bool has_failed(const struct issue *issue)
{
	return __atomic_load_n(&issue->error, __ATOMIC_SEQ_CST) != 0;
}

/* ---- one operation ---- */

/* Another thread issues it. Operations that were left out are never issued. */
static void issued_wait(struct issue *issue, uint32_t op)
{
	while (!__atomic_load_n(&issue->issued[op], __ATOMIC_ACQUIRE) && !has_failed(issue)) {
		/* A capture that makes no sense may have threads that wait for each other. */
		if (replay_now_ns() > issue->begin_ns + 2 * TIME_MAX_NS)
			issue_fail(issue, CUDA_ERROR_LAUNCH_TIMEOUT);
		sched_yield();
	}
}

/* An operation of another stream that this one waits for. */
static bool edge_counts(const struct issue *issue, const struct gpu_timeline_edge *edge)
{
	const uint32_t *op_node = issue->build->op_node;

	return op_is_selected(issue, edge->from) && op_is_selected(issue, edge->to) &&
	       op_node[edge->from] < op_node[edge->to];
}

static int op_waits(struct issue *issue, uint32_t op, void *stream)
{
	const struct gpu_timeline *timeline = issue->timeline;
	int result = 0;

	for (size_t i = gpu_timeline_edges_to(timeline, op);
	     i < timeline->edges.len && timeline->edges.data[i].to == op && !result; i++) {
		const struct gpu_timeline_edge *edge = &timeline->edges.data[i];

		if (!edge_counts(issue, edge))
			continue;
		issued_wait(issue, edge->from);
		if (has_failed(issue))
			return 0;
		result = issue->cuda.stream_wait_event(stream, issue->events[edge->from], 0);
	}
	return result;
}

/* A kernel after another one takes as long as recorded, with the time between them. */
static uint64_t spin_ns(const struct issue *issue, uint32_t op)
{
	const struct gpu_timeline_op *at = &issue->timeline->ops.data[op];
	uint64_t ns = at->end_ts - at->start_ts + issue->build->order_lag_ns[at->kind];

	return ns > issue->cuda.overhead_ns ? ns - issue->cuda.overhead_ns : 0;
}

static void op_issue(struct issue *issue, uint32_t op)
{
	void *stream = issue->streams[issue->timeline->ops.data[op].stream];
	int result;

	if (issue->before[op] != REPLAY_NONE)
		issued_wait(issue, issue->before[op]);
	result = op_waits(issue, op, stream);
	if (!result && !has_failed(issue))
		result = replay_cuda_spin(&issue->cuda, stream, spin_ns(issue, op));
	if (!result && issue->events[op])
		result = issue->cuda.event_record(issue->events[op], stream);
	issue_fail(issue, result);
	__atomic_store_n(&issue->issued[op], true, __ATOMIC_RELEASE);
	__atomic_add_fetch(&issue->operations, 1, __ATOMIC_RELAXED);
}

/* ---- one thread ---- */

/* Waits until the time of a node has come. */
static void node_wait(const struct issue_thread *thread, uint64_t ts)
{
	uint64_t until =
		thread->real_ns + (ts > thread->recorded_ts ? ts - thread->recorded_ts : 0);

	while (replay_now_ns() < until && !has_failed(thread->issue))
		sched_yield();
}

static void launch_issue(struct issue *issue, uint32_t index)
{
	const struct gpu_timeline_launch *launch = &issue->timeline->launches.data[index];

	for (uint32_t i = 0; i < gpu_launch_op_count(launch) && !has_failed(issue); i++) {
		uint32_t op = issue->timeline->launched.data[launch->op + i];

		if (op_is_selected(issue, op))
			op_issue(issue, op);
	}
}

/* After a wait, the following calls keep their distance from its end. */
static void sync_issue(struct issue_thread *thread, uint32_t index)
{
	struct issue *issue = thread->issue;
	const struct gpu_timeline_sync *sync = &issue->timeline->syncs.data[index];

	for (uint32_t i = 0; i < sync->op_count && !has_failed(issue); i++) {
		uint32_t op = issue->timeline->awaited.data[sync->op + i];

		if (!op_is_selected(issue, op) || !issue->events[op])
			continue;
		issued_wait(issue, op);
		if (!has_failed(issue))
			issue_fail(issue, issue->cuda.event_synchronize(issue->events[op]));
	}
	thread->recorded_ts = sync->end_ts;
	thread->real_ns = replay_now_ns();
}

static void *thread_run(void *arg)
{
	struct issue_thread *thread = arg;
	struct issue *issue = thread->issue;
	uint64_t none = 0;

	issue_fail(issue, replay_cuda_enter(&issue->cuda));
	pthread_barrier_wait(&issue->barrier);
	__atomic_compare_exchange_n(&issue->begin_ns, &none, replay_now_ns(), false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	thread->recorded_ts = issue->first_ts;
	thread->real_ns = issue->begin_ns;
	for (size_t i = 0; i < thread->nodes.len && !has_failed(issue); i++) {
		struct replay_origin origin = issue->build->origins.data[thread->nodes.data[i]];

		if (origin.kind == REPLAY_ORIGIN_SYNC) {
			sync_issue(thread, origin.index);
		} else if (origin.kind == REPLAY_ORIGIN_LAUNCH) {
			node_wait(thread, issue->timeline->launches.data[origin.index].ts);
			launch_issue(issue, origin.index);
		} else {
			node_wait(thread, issue->timeline->ops.data[origin.index].start_ts);
			op_issue(issue, origin.index);
		}
	}
	return NULL;
}

/* ---- preparation ---- */

/* Whether each launch of the timeline is replayed. The caller frees it. */
static bool *launches_select(const struct issue *issue)
{
	bool *selected = memory_zeroed(issue->timeline->launches.len, sizeof(*selected));

	for (uint32_t i = 0; i < issue->build->origins.len; i++) {
		struct replay_origin origin = issue->build->origins.data[i];

		if (origin.kind == REPLAY_ORIGIN_LAUNCH && is_selected(issue, i))
			selected[origin.index] = true;
	}
	return selected;
}

/* Distributes the nodes to threads. The last one has the operations whose launch is not replayed:
 * they are issued when they began. */
static void threads_fill(const struct issue *issue, struct issue_thread *threads)
{
	const struct replay_graph *graph = &issue->build->graph;
	bool *launches = launches_select(issue);

	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		struct replay_origin origin = issue->build->origins.data[i];
		uint32_t queue = graph->nodes.data[i].queue, launch;

		if (!is_selected(issue, i) || origin.kind == REPLAY_ORIGIN_ARRIVAL ||
		    origin.kind == REPLAY_ORIGIN_MEETING)
			continue;
		if (origin.kind == REPLAY_ORIGIN_OP) {
			launch = issue->timeline->ops.data[origin.index].launch;
			if (launch != MODEL_NONE && launches[launch])
				continue;
			queue = graph->queue_count;
		}
		vec_add(&threads[queue].nodes, i);
	}
	free(launches);
}

/* Finds the order of each stream, and the devices that take part. */
static int ops_prepare(struct issue *issue, struct error *err)
{
	const struct gpu_timeline *timeline = issue->timeline;
	uint32_t device = MODEL_NONE, streams = 0;

	for (uint32_t i = 0; i < timeline->streams.len; i++) {
		const struct gpu_timeline_stream *stream = &timeline->streams.data[i];
		uint32_t last = REPLAY_NONE;

		for (uint32_t op = stream->op; op < stream->op + stream->op_count; op++) {
			if (!op_is_selected(issue, op))
				continue;
			issue->before[op] = last;
			last = op;
		}
		if (last == REPLAY_NONE)
			continue;
		if (device != MODEL_NONE && device != stream->device)
			return error_set(err, EINVAL,
					 "--on-gpu: the capture has the work of several GPUs or "
					 "processes; record one process that uses one GPU");
		device = stream->device;
		if (++streams > STREAMS_MAX)
			return error_set(err, E2BIG,
					 "--on-gpu: more than %u streams; choose a part",
					 STREAMS_MAX);
		issue->streams[i] = issue; /* until it is created */
	}
	return 0;
}

/* Marks the operations that somebody waits for: they need an event. */
static void events_mark(struct issue *issue)
{
	const struct gpu_timeline *timeline = issue->timeline;

	for (size_t i = 0; i < timeline->edges.len; i++)
		if (edge_counts(issue, &timeline->edges.data[i]))
			issue->events[timeline->edges.data[i].from] = issue;
	for (size_t i = 0; i < timeline->awaited.len; i++)
		if (op_is_selected(issue, timeline->awaited.data[i]))
			issue->events[timeline->awaited.data[i]] = issue;
}

/* Creates what was marked. After a failure, the rest is no handle. */
static int handles_create(struct issue *issue, struct error *err)
{
	const struct gpu_timeline *timeline = issue->timeline;
	int result = 0;

	for (size_t i = 0; i < timeline->streams.len; i++)
		if (issue->streams[i] &&
		    (result || (result = issue->cuda.stream_create(&issue->streams[i],
								   CU_STREAM_NON_BLOCKING))))
			issue->streams[i] = NULL;
	for (size_t i = 0; i < timeline->ops.len; i++)
		if (issue->events[i] &&
		    (result || (result = issue->cuda.event_create(&issue->events[i],
								  CU_EVENT_DISABLE_TIMING))))
			issue->events[i] = NULL;
	return result ? error_set(err, ENOMEM, "--on-gpu: streams and events failed: %s",
				  replay_cuda_error(&issue->cuda, result))
		      : 0;
}

static void handles_destroy(struct issue *issue)
{
	for (size_t i = 0; i < issue->timeline->streams.len; i++)
		if (issue->streams[i])
			issue->cuda.stream_destroy(issue->streams[i]);
	for (size_t i = 0; i < issue->timeline->ops.len; i++)
		if (issue->events[i])
			issue->cuda.event_destroy(issue->events[i]);
}

/* ---- the whole ---- */

/* Starts the threads and waits for them and for the GPU. Returns the time. */
static uint64_t threads_go(struct issue *issue, struct issue_thread *threads, uint32_t count)
{
	uint64_t end_ns;

	pthread_barrier_init(&issue->barrier, NULL, count);
	for (uint32_t i = 0; i < count; i++) {
		threads[i].issue = issue;
		memory_require(!pthread_create(&threads[i].thread, NULL, thread_run, &threads[i]));
	}
	for (uint32_t i = 0; i < count; i++)
		pthread_join(threads[i].thread, NULL);
	issue_fail(issue, issue->cuda.context_synchronize());
	end_ns = replay_now_ns();
	pthread_barrier_destroy(&issue->barrier);
	return end_ns - issue->begin_ns;
}

/* Moves the threads that have something to do to the front. Returns their number. */
static uint32_t threads_compact(struct issue_thread *threads, uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct issue_thread thread = threads[i];

		if (!thread.nodes.len)
			continue;
		threads[i].nodes.data = NULL;
		threads[i].nodes.len = threads[i].nodes.cap = 0;
		threads[kept++] = thread;
	}
	return kept;
}

static int threads_run(struct issue *issue, struct replay_device_result *result, struct error *err)
{
	uint32_t count = issue->build->graph.queue_count + 1;
	struct issue_thread *threads = memory_zeroed(count, sizeof(*threads));
	int code = 0;

	threads_fill(issue, threads);
	count = threads_compact(threads, count);
	if (count > THREADS_MAX)
		code = error_set(err, E2BIG,
				 "--on-gpu: more than %u threads launched something; choose a part",
				 THREADS_MAX);
	else
		result->ns = threads_go(issue, threads, count);
	if (!code && issue->error)
		code = error_set(err, ENODEV, "--on-gpu: CUDA failed: %s",
				 replay_cuda_error(&issue->cuda, issue->error));
	for (uint32_t i = 0; i < count; i++)
		vec_free(&threads[i].nodes);
	free(threads);
	return code;
}

/* The begin of all, and whether the schedule is small enough. */
static int extent_check(struct issue *issue, struct error *err)
{
	const struct replay_graph *graph = &issue->build->graph;
	uint64_t last_ts = 0, operations = 0;

	issue->first_ts = UINT64_MAX;
	for (uint32_t i = 0; i < graph->nodes.len; i++) {
		const struct replay_node *node = &graph->nodes.data[i];

		if (!is_selected(issue, i))
			continue;
		operations += node->is_operation;
		if (node->start_ts < issue->first_ts)
			issue->first_ts = node->start_ts;
		if (node->start_ts + node->dur_ns > last_ts)
			last_ts = node->start_ts + node->dur_ns;
	}
	if (operations > OPERATIONS_MAX || last_ts - issue->first_ts > TIME_MAX_NS)
		return error_set(err, E2BIG,
				 "--on-gpu: more than %u operations or %u s; choose a part with "
				 "--from and --to",
				 OPERATIONS_MAX, (unsigned)(TIME_MAX_NS / 1000000000u));
	return 0;
}

static int issue_run(struct issue *issue, struct replay_device_result *result, struct error *err)
{
	int code = extent_check(issue, err) ?: ops_prepare(issue, err);

	if (code)
		return code;
	events_mark(issue);
	code = replay_cuda_open(&issue->cuda, err);
	if (!code) {
		code = handles_create(issue, err) ?: threads_run(issue, result, err);
		handles_destroy(issue);
	}
	snprintf(result->name, sizeof(result->name), "%s", issue->cuda.name);
	result->simulated = issue->cuda.simulated;
	result->operations = issue->operations;
	result->overhead_ns = issue->cuda.overhead_ns;
	replay_cuda_close(&issue->cuda);
	return code;
}

int replay_device_run(const struct replay_build *build, const bool *selected,
		      struct replay_device_result *result, struct error *err)
{
	const struct gpu_timeline *timeline = build->timeline;
	struct issue issue = {.build = build, .timeline = timeline, .selected = selected};
	int code;

	*result = (struct replay_device_result){0};
	issue.streams = memory_zeroed(timeline->streams.len, sizeof(*issue.streams));
	issue.events = memory_zeroed(timeline->ops.len, sizeof(*issue.events));
	issue.before = memory_get(timeline->ops.len * sizeof(*issue.before));
	memset(issue.before, 0xff, timeline->ops.len * sizeof(*issue.before));
	issue.issued = memory_zeroed(timeline->ops.len, sizeof(*issue.issued));
	code = issue_run(&issue, result, err);
	free(issue.streams);
	free(issue.events);
	free(issue.before);
	free(issue.issued);
	return code;
}
