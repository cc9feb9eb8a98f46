// SPDX-License-Identifier: Apache-2.0
/* A wait that goes on when the capture ends, as the thread's earlier ones. */
#include "analyze/why/cause/why_blocked_internal.h"

#include "analyze/why/lookup/why_at_end.h"
#include "analyze/why/parts/why_connections.h"

/* A client has another connection for each request. */
static bool is_same_object(const struct why_walk *walk, uint32_t a, uint32_t b)
{
	uint32_t server;

	if (a == b)
		return a;
	server = why_connections_to(walk->why->texts, a);
	return server && server == why_connections_to(walk->why->texts, b);
}

/* Whether the chain of a sum begins with a wait of the same thread, in the same functions, for the
 * same thing. */
static bool is_alike(const struct why_walk *walk, const struct why_blocked *blocked,
		     const struct why_sum *sum)
{
	const struct why_step *own = &walk->chains.data[sum->chain].steps[0];
	const struct model_wait *waits = walk->model->waits.data;
	bool timed = sum->part.cause == WHY_TIMER && sum->part.thread == blocked->thread;

	if (own->state != WAFFLE_THREAD_BLOCKED || own->thread != blocked->thread ||
	    own->syscall != blocked->interval->syscall || own->wait == MODEL_NONE ||
	    !is_same_object(walk, own->object, blocked->object))
		return false;
	return (waits[own->wait].user_stack &&
		waits[own->wait].user_stack == blocked->wait->user_stack) ||
	       why_wait_at_end(walk, own->wait, timed) != MODEL_NONE;
}

static bool is_same_cause(const struct why_sum *a, const struct why_sum *b)
{
	return a->part.cause == b->part.cause && a->part.thread == b->part.thread;
}

struct why_verdict why_blocked_as_earlier(const struct why_walk *walk,
					  const struct why_blocked *blocked)
{
	uint64_t longest_ns = 0, all_ns = 0, same_ns = 0;
	const struct why_sum *most = NULL;

	if (blocked->link || !blocked->interval->open || !blocked->wait || walk->no_chains)
		return WHY_UNDECIDED;
	for (size_t i = 0; i < walk->sums.len; i++) {
		const struct why_sum *sum = &walk->sums.data[i];
		const struct why_step *own = &walk->chains.data[sum->chain].steps[0];

		if (!is_alike(walk, blocked, sum))
			continue;
		all_ns += sum->part.ns;
		if (own->to_ts - own->from_ts > longest_ns)
			longest_ns = own->to_ts - own->from_ts;
		if (!most || sum->part.ns > most->part.ns)
			most = sum;
	}
	for (size_t i = 0; most && i < walk->sums.len; i++)
		if (is_same_cause(&walk->sums.data[i], most) &&
		    is_alike(walk, blocked, &walk->sums.data[i]))
			same_ns += walk->sums.data[i].part.ns;
	if (!most || most->part.cause == WHY_UNKNOWN || same_ns <= all_ns / 2 ||
	    longest_ns < blocked->to - blocked->from)
		return WHY_UNDECIDED;
	return (struct why_verdict){.kind = WHY_VERDICT_JOIN,
				    .sum = (uint32_t)(most - walk->sums.data)};
}
