// SPDX-License-Identifier: Apache-2.0
/* Waits that an interrupt ended. The kernel stack and the wait show what the interrupt was for. */
#include "analyze/why/cause/why_blocked_internal.h"

#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/lookup/why_peers_wait.h"
#include "analyze/why/parts/why_sums.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "util/syscall_names.h"

static bool runs(const struct why_walk *walk, uint32_t thread, const struct why_interval *interval)
{
	(void)walk;
	(void)thread;
	return interval->state == WAFFLE_THREAD_RUNNING;
}

/* Whether CPython gives its lock back before it waits so. An extension may keep it while it waits
 * for a disk, a page of memory or a mutex. */
static bool waits_without_gil(const struct why_walk *walk, uint32_t thread,
			      const struct why_interval *interval)
{
	const struct model_wait *wait;
	struct wait_facts facts;

	if (interval->state != WAFFLE_THREAD_BLOCKED ||
	    interval->task_state & WAFFLE_TASK_UNINTERRUPTIBLE)
		return false;
	facts = why_facts_of(walk, thread, interval, &wait);
	switch (wait_kind_of(&facts)) {
	case WAIT_GIL:
	case WAIT_FUTEX:
	case WAIT_SOCKET:
	case WAIT_POLL:
	case WAIT_SLEEP:
		return true;
	default:
		return false;
	}
}

/* The time that a thread spent in intervals that count. */
static uint64_t time_in(const struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
			bool (*counts)(const struct why_walk *walk, uint32_t thread,
				       const struct why_interval *interval))
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	uint64_t sum = 0;

	for (size_t i = why_intervals_after(&walk->intervals, thread, from);
	     i < of->intervals.len && of->intervals.data[i].from_ts < to; i++) {
		const struct why_interval *interval = &of->intervals.data[i];

		if (counts(walk, thread, interval))
			sum += (interval->to_ts < to ? interval->to_ts : to) -
			       (interval->from_ts > from ? interval->from_ts : from);
	}
	return sum;
}

/* Limit of the threads to compare. */
#define THREADS_MAX 1024

/* The holder may release the GIL just when the waiter checks it by itself, so nobody wakes the
 * waiter. We assume that the thread of the process that ran longest held the lock. */
static uint32_t gil_holder(const struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model *model = walk->model;
	uint32_t pid = model->threads.data[blocked->thread].pid, found = MODEL_NONE;
	size_t first = why_traced_of(walk, pid);
	uint64_t most = 0;

	for (size_t at = first; at < walk->traced.len && at - first < THREADS_MAX; at++) {
		uint32_t thread = walk->traced.data[at];
		uint64_t ns;

		if (model->threads.data[thread].pid != pid)
			break;
		walk->why->searched++;
		if (thread == blocked->thread)
			continue;
		ns = time_in(walk, thread, blocked->from, blocked->to, runs);
		if (ns > most) {
			most = ns;
			found = thread;
		}
	}
	return found;
}

/* A thread that waits for the GIL wakes up at each switch interval, 5 ms if the program does not
 * change it (sys.setswitchinterval()). If the address of the GIL is unknown, a longer timeout shows
 * another lock of Python. */
#define SWITCH_INTERVAL_MAX_NS 20000000ull

static bool may_be_gil(const struct why_blocked *blocked)
{
	return blocked->kind == WAIT_GIL &&
	       (blocked->facts.variable ||
		blocked->interval->to_ts - blocked->interval->from_ts <= SWITCH_INTERVAL_MAX_NS);
}

/* A waker that waited without the GIL for all but this part of a wait had it only at its end. */
#define HOLDER_PARTS 4

void why_blocked_find_holder(struct why_walk *walk, struct why_blocked *blocked)
{
	uint64_t ns = blocked->to - blocked->from;
	uint32_t holder;

	if (!may_be_gil(blocked) || blocked->waker.interrupt ||
	    time_in(walk, blocked->waker.thread, blocked->from, blocked->to, waits_without_gil) <
		    ns - ns / HOLDER_PARTS)
		return;
	holder = gil_holder(walk, blocked);
	if (holder == MODEL_NONE || why_walk_is_on_path(walk, holder) ||
	    time_in(walk, holder, blocked->from, blocked->to, runs) < ns / 2)
		return;
	blocked->waker = (struct why_waker){.thread = holder, .inferred = true};
	blocked->grade = why_grade_least(blocked->grade, WHY_GRADE_LIKELY);
}

struct why_verdict why_blocked_timeout(struct why_walk *walk, struct why_blocked *blocked)
{
	uint32_t holder = may_be_gil(blocked) ? gil_holder(walk, blocked) : MODEL_NONE;

	if (blocked->program_lock)
		return why_blocked_end(walk, blocked, WHY_LOCK, WHY_GRADE_LIKELY, MODEL_NONE);
	if (holder == MODEL_NONE)
		return why_blocked_end(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	blocked->waker.thread = holder;
	return why_blocked_woken_by(walk, blocked, WHY_GRADE_LIKELY);
}

/* The timer that wakes a thread may call it without a function of its own on the stack. Timers of
 * the connection wake threads through the socket. */
static bool is_receive_timeout(uint32_t hints)
{
	return hints & WHY_HINT_TIMER || (hints & WHY_HINT_TIMERS && !(hints & WHY_HINT_SOCKET));
}

/* Whether the peer is certainly the thread that uses the other end of the connection: it waited
 * there, or its process has no other thread. */
static bool is_user(struct why_walk *walk, const struct why_blocked *blocked, uint32_t peer)
{
	return why_has_socket_waiter(walk, blocked->facts.object) || why_is_only_thread(walk, peer);
}

/* Whether a client waits for the answer of a server, of which this thread is known to be the one
 * that serves it. */
static bool is_for_answer(struct why_walk *walk, const struct why_blocked *blocked, uint32_t server)
{
	return server != MODEL_NONE && server != blocked->thread &&
	       model_is_traced(walk->model, server) && is_user(walk, blocked, server) &&
	       why_socket_side(walk, blocked->facts.object) == WHY_SIDE_CLIENT;
}

struct why_verdict why_blocked_follow_server(struct why_walk *walk,
					     const struct why_blocked *blocked, uint32_t server)
{
	struct why_verdict verdict = why_blocked_follow(walk, blocked, server, WHY_GRADE_LIKELY);

	verdict.link.unanswered = verdict.kind == WHY_VERDICT_FOLLOW;
	verdict.link.open = blocked->interval->open;
	return verdict;
}

struct why_verdict why_blocked_for_answer(struct why_walk *walk, struct why_blocked *blocked)
{
	uint32_t peer = why_socket_peer(walk, blocked->facts.object);

	if (!is_for_answer(walk, blocked, peer))
		return WHY_UNDECIDED;
	if (why_walk_is_on_path(walk, peer))
		return why_blocked_unanswered(walk, blocked, peer);
	return why_blocked_follow_server(walk, blocked, peer);
}

/* A server of this machine did not answer: its queue of new connections was full. TCP asked again
 * only after its back-off, so that most of the wait is no work of the server. */
static struct why_verdict at_full_queue(struct why_walk *walk, const struct why_blocked *blocked)
{
	return why_blocked_end(
		walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY,
		why_socket_other_server(walk, blocked->facts.object, blocked->thread));
}

/* The timeout of a wait for a connection expired. That of a client only limits how long it waits
 * for the server. A server without a request has nothing to wait for. */
static struct why_verdict at_timeout(struct why_walk *walk, struct why_blocked *blocked,
				     enum why_grade grade)
{
	struct why_verdict verdict;

	if (wait_is_for_connecting(blocked->facts.object))
		return at_full_queue(walk, blocked);
	verdict = why_blocked_for_answer(walk, blocked);
	return verdict.kind != WHY_VERDICT_NONE
		       ? verdict
		       : why_blocked_end(walk, blocked, WHY_TIMER, grade, blocked->thread);
}

static struct why_verdict socket_interrupt(struct why_walk *walk, struct why_blocked *blocked)
{
	uint32_t peer = why_socket_peer(walk, blocked->facts.object);

	if (blocked->program_lock) /* an answer of another program, by its functions */
		return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, MODEL_NONE);
	/* Who waits for room waits for the reader, also if it gives up after a time. */
	if (is_receive_timeout(blocked->waker.hints) && !blocked->waiting.writes)
		return at_timeout(walk, blocked,
				  blocked->waker.hints & WHY_HINT_TIMER ? WHY_GRADE_CERTAIN
									: WHY_GRADE_LIKELY);
	if (wait_is_for_connecting(blocked->facts.object))
		return at_full_queue(walk, blocked);
	if (peer != MODEL_NONE && peer != blocked->thread && why_walk_is_on_path(walk, peer))
		return why_blocked_neither_sends(walk, blocked);
	if (peer != MODEL_NONE && peer != blocked->thread && model_is_traced(walk->model, peer) &&
	    is_user(walk, blocked, peer))
		return why_blocked_follow(walk, blocked, peer, WHY_GRADE_LIKELY);
	return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, peer);
}

/* How late a timeout in ms may expire: the kernel rounds it up, and may be busy. */
#define TIMEOUT_LATE_NS 3000000ull
#define POLL_TIMEOUT_ARG 2

/* Whether the wait ended when its timeout expired. Known for poll(2) only. */
static bool timeout_fits(const struct why_blocked *blocked)
{
	uint64_t ns = blocked->interval->to_ts - blocked->interval->from_ts, timeout_ns;
	int32_t ms;

	if (!blocked->facts.args || !blocked->facts.syscall ||
	    strcmp(blocked->facts.syscall, "poll") != 0)
		return false;
	ms = (int32_t)blocked->facts.args[POLL_TIMEOUT_ARG];
	timeout_ns = (uint64_t)ms * 1000000u;
	return ms > 0 && ns >= timeout_ns && ns < timeout_ns + TIMEOUT_LATE_NS;
}

/* Whether neither end of a connection that an epoll instance watches sent what made it ready. The
 * packet is for an established connection, so that no client connects, and from this machine: the
 * instance may also watch a connection whose other end is not known. */
static bool neither_sent(struct why_walk *walk, const struct why_blocked *blocked)
{
	const uint32_t needed = WHY_HINT_SOCKET | WHY_HINT_TCP | WHY_HINT_BACKLOG;
	const struct store_object *object = blocked->facts.object;

	return (blocked->waker.hints & needed) == needed && object &&
	       descriptor_is_epoll(object->name) &&
	       why_peers_wait(walk, object, blocked->interval->to_ts);
}

/* An interrupt ended a wait for several things. The kernel stack shows which one; otherwise we
 * consider the things that an interrupt can signal. */
static struct why_verdict poll_interrupt(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct store_object *object = blocked->facts.object;
	bool alone = object && descriptor_is_socket(object->name) &&
		     !syscall_name_is_epoll(blocked->facts.syscall);

	/* It polled nothing else. */
	if (blocked->waker.hints & WHY_HINT_SOCKET && object && descriptor_is_socket(object->name))
		return socket_interrupt(walk, blocked);
	/* The socket was not ready, so its timeout or another timer ended the wait. */
	if (wait_is_for_connecting(blocked->facts.object))
		return at_full_queue(walk, blocked);
	if (alone && blocked->waker.hints & WHY_HINT_TIMER)
		return at_timeout(walk, blocked, WHY_GRADE_CERTAIN);
	if (alone && timeout_fits(blocked))
		return at_timeout(walk, blocked, WHY_GRADE_LIKELY);
	if (neither_sent(walk, blocked))
		return why_blocked_neither_sends(walk, blocked);
	if (blocked->waker.hints & WHY_HINT_SOCKET)
		return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, MODEL_NONE);
	if (blocked->waker.hints & WHY_HINT_TIMER)
		return why_blocked_end(walk, blocked, WHY_TIMER, WHY_GRADE_CERTAIN,
				       blocked->thread);
	/* The signal that a signalfd waits for, such as that of a limit of time. */
	if (blocked->waker.hints & WHY_HINT_ALARM || why_blocked_polls_timer(blocked) ||
	    timeout_fits(blocked))
		return why_blocked_end(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	return why_blocked_end(walk, blocked, WHY_INTERRUPT, WHY_GRADE_LIKELY, MODEL_NONE);
}

struct why_verdict why_blocked_interrupted(struct why_walk *walk, struct why_blocked *blocked)
{
	switch (blocked->kind) {
	case WAIT_MUTEX:
	case WAIT_FUTEX:
	case WAIT_GIL:
		return why_blocked_timeout(walk, blocked);
	case WAIT_SOCKET:
		return socket_interrupt(walk, blocked);
	case WAIT_POLL:
		return poll_interrupt(walk, blocked);
	case WAIT_SIGNAL:
		return why_blocked_end(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	default:
		return why_blocked_end(walk, blocked, WHY_INTERRUPT, WHY_GRADE_LIKELY, MODEL_NONE);
	}
}
