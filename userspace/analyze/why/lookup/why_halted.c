// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_halted.h"

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_peers.h"

/* Limit of the threads of a process to look at; one with more counts as not stopped. */
#define THREADS_MAX 1024

/* Its states are known from the begin of the capture to its end, but for the moments until they
 * were read. */
static bool is_thread_halted(const struct why_walk *walk, uint32_t thread, uint64_t from,
			     uint64_t to)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	const struct why_interval *interval = of->intervals.data;
	size_t index;

	if (!of->intervals.len)
		return false;
	from = from > interval->from_ts ? from : interval->from_ts;
	if (from >= to)
		return false;
	index = why_intervals_after(&walk->intervals, thread, from);
	if (index >= of->intervals.len)
		return false;
	interval = &of->intervals.data[index];
	return interval->state == WAFFLE_THREAD_BLOCKED && interval->from_ts <= from &&
	       (interval->to_ts >= to || interval->open) &&
	       interval->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED);
}

bool why_is_halted(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to)
{
	const struct model *model = walk->model;
	uint32_t pid = model->threads.data[thread].pid;
	size_t first = why_traced_of(walk, pid);
	bool any = false;

	for (size_t at = first; at < walk->traced.len; at++) {
		uint32_t other = walk->traced.data[at];

		if (model->threads.data[other].pid != pid)
			break;
		walk->why->searched++;
		if (model->threads.data[other].exit_ts || model->threads.data[other].gone)
			continue;
		if (at - first >= THREADS_MAX || !is_thread_halted(walk, other, from, to))
			return false;
		any = true;
	}
	return any;
}

uint32_t why_halted_peer(struct why_walk *walk, const struct store_object *object, uint64_t from,
			 uint64_t to)
{
	uint32_t peer = why_socket_peer(walk, object);

	if (peer == MODEL_NONE)
		peer = why_socket_server(walk, object);
	if (peer >= walk->model->threads.len || !why_is_halted(walk, peer, from, to))
		return MODEL_NONE;
	return why_main_thread(walk, peer);
}

uint32_t why_tracer_of(const struct why_walk *walk, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(walk->model, thread);

	return wait ? wait->tracer : MODEL_NONE;
}
