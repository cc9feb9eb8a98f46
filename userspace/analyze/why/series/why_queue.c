// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/series/why_queue_internal.h"

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/series/why_runners_internal.h"
#include "analyze/why/why_walk_types.h"

/* Whether the thread is in a request at ts. *since is when that began. */
static bool is_in_request(const struct why_walk *walk, uint32_t thread, uint64_t ts,
			  uint64_t *since)
{
	uint64_t ignored;
	uint32_t span = why_intervals_span(&walk->intervals, thread, ts, &ignored);

	if (span == MODEL_NONE ||
	    !site_is_request(model_site(walk->model, walk->model->spans.data[span].site)))
		return false;
	*since = walk->model->spans.data[span].start_ts;
	return true;
}

/* The index behind the thread's last wait that ends before ts; 0: not known. */
static size_t last_wait(const struct why_walk *walk, uint32_t thread, uint64_t ts)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	size_t at = why_intervals_after(&walk->intervals, thread, ts - 1);

	for (size_t i = at; i && at - i < WHY_LOOK_AHEAD; i--) {
		walk->why->searched++;
		if (of->intervals.data[i - 1].state == WAFFLE_THREAD_BLOCKED)
			return i;
	}
	return 0;
}

/*
 * When the thread that wakes the loop at ts took up the request that it answers then. It has no
 * other one meanwhile, and none before. A thread of a pool does so, or one that is started for each
 * connection. 0: not known.
 */
static uint64_t taken_up(const struct why_walk *walk, uint32_t server, uint64_t ts)
{
	uint64_t since, before;

	if (!is_in_request(walk, server, ts - 1, &since) || !since ||
	    is_in_request(walk, server, since - 1, &before) ||
	    why_intervals_answers(&walk->intervals, server, since, ts - 1))
		return 0;
	return since;
}

/* A server that answers wakes who waits for the answer within this time. */
#define ANSWER_NS 1000000u

/* Whether the loop ended or began another request after a wait, before it waited again. */
static bool has_served(const struct why_walk *walk, uint32_t thread, size_t index)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	size_t next = index + 1;

	while (next < of->intervals.len && of->intervals.data[next].state != WAFFLE_THREAD_BLOCKED)
		next++;
	walk->why->searched += next - index;
	return next < of->intervals.len &&
	       why_intervals_answers(&walk->intervals, thread, of->intervals.data[index].to_ts,
				     of->intervals.data[next].from_ts);
}

/* Whether a thread of that process ended a wait by an answer: to another request of the loop
 * (*queued), or to one of the explained request itself. */
static bool is_answer(const struct why_walk *walk, uint32_t thread, size_t index, uint32_t pid,
		      bool *queued)
{
	uint64_t woken_ts = walk->intervals.threads[thread].intervals.data[index].to_ts;
	struct why_waker waker = why_waker_of(walk, thread, index);

	if (waker.interrupt || waker.thread >= walk->intervals.count ||
	    walk->model->threads.data[waker.thread].pid != pid)
		return false;
	*queued = has_served(walk, thread, index);
	return *queued || why_intervals_answers(&walk->intervals, waker.thread,
						woken_ts - ANSWER_NS, woken_ts + ANSWER_NS);
}

/* The thread that answered the request of `thread` that ends at until_ts, and when it took that up.
 * MODEL_NONE: not known. */
static uint32_t answered_by(const struct why_walk *walk, uint32_t thread, uint64_t until_ts,
			    uint64_t *taken_ts)
{
	size_t last = last_wait(walk, thread, until_ts);
	struct why_waker waker;

	if (!last || !why_intervals_answers(&walk->intervals, thread, until_ts - 1, until_ts))
		return MODEL_NONE;
	waker = why_waker_of(walk, thread, last - 1);
	if (waker.interrupt || waker.thread >= walk->intervals.count ||
	    !walk->model->threads.data[waker.thread].traced)
		return MODEL_NONE;
	*taken_ts = taken_up(walk, waker.thread,
			     walk->intervals.threads[thread].intervals.data[last - 1].to_ts);
	return *taken_ts ? waker.thread : MODEL_NONE;
}

bool why_queue_find(const struct why_walk *walk, const struct why_waiting *waiting, uint32_t thread,
		    size_t index, size_t *end, bool *queued)
{
	const struct model_thread *threads = walk->model->threads.data;
	const struct why_thread *of = &walk->intervals.threads[thread];
	uint64_t taken_ts, ignored;
	uint32_t server;

	if (waiting->kind != WAIT_POLL || waiting->outside || waiting->any ||
	    !is_in_request(walk, thread, of->intervals.data[index].from_ts, &ignored))
		return false;
	server = answered_by(walk, thread, waiting->until_ts, &taken_ts);
	if (server == MODEL_NONE || threads[server].pid == threads[thread].pid)
		return false;
	for (size_t i = index; i < of->intervals.len && i - index < WHY_LOOK_AHEAD; i++) {
		const struct why_interval *wait = &of->intervals.data[i];

		walk->why->searched++;
		if (wait->to_ts > taken_ts)
			return false;
		if (wait->state != WAFFLE_THREAD_BLOCKED ||
		    !is_answer(walk, thread, i, threads[server].pid, queued))
			continue;
		*end = i;
		return true;
	}
	return false;
}
