// SPDX-License-Identifier: Apache-2.0
/* Explains blocked time: what the thread waited for, who ended the wait, and what that thread did
 * meanwhile. */
#include "analyze/why/cause/why_blocked.h"
#include "analyze/why/cause/why_blocked_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/why/await/why_await.h"
#include "analyze/why/cause/why_running.h"
#include "analyze/why/hang/why_hang.h"
#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_futex.h"
#include "analyze/why/lookup/why_lock_names.h"
#include "analyze/why/lookup/why_lookup.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/lookup/why_polled.h"
#include "analyze/why/lookup/why_signals.h"
#include "analyze/why/parts/why_sums.h"
#include "analyze/why/series/why_doubt.h"
#include "analyze/why/series/why_series.h"
#include "analyze/why/series/why_waiting.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "target/process/pipe_ends.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/signal_names.h"
#include "util/syscall_names.h"

/* ---- decisions by the kernel stack ---- */

#define SWAP_TEXT "swap"

/* If a thread of a program ended the wait, it had locked the page, perhaps for something else. */
static struct why_verdict at_swap(struct why_walk *walk, struct why_blocked *blocked)
{
	if (!blocked->object)
		blocked->object = strtab_put(walk->why->texts, SWAP_TEXT, strlen(SWAP_TEXT));
	return why_blocked_end(walk, blocked, WHY_PAGE_FAULT_MAJOR,
			       why_blocked_by_program(walk, blocked) ? WHY_GRADE_LIKELY
								     : WHY_GRADE_CERTAIN,
			       blocked->thread);
}

/* If it is not known which object the thread waits for, the stack says what kind it is. */
static void name_by_meaning(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct meaning_row *row = blocked->stack.meaning.rows[MEANING_WAIT];

	if (!blocked->object)
		blocked->object = strtab_put(walk->why->texts, row->text, strlen(row->text));
}

/* Continues with the waker. The stack says what it did. */
static struct why_verdict follow_waker(struct why_walk *walk, struct why_blocked *blocked,
				       enum wait_kind kind)
{
	blocked->kind = kind;
	if (kind == WAIT_MUTEX)
		name_by_meaning(walk, blocked);
	return why_blocked_woken_by(walk, blocked,
				    why_blocked_is_shared(blocked) ? WHY_GRADE_LIKELY
								   : WHY_GRADE_CERTAIN);
}

static bool is_major(const struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model_fault *fault =
		why_fault_during(walk->model, blocked->thread, blocked->from, blocked->to);

	return fault && fault->major;
}

/* Applies a rule of the table of stacks (why_meaning.h). Undecided if the rule does not fit this
 * wait. */
static struct why_verdict by_meaning(struct why_walk *walk, struct why_blocked *blocked)
{
	bool thread = blocked->waker.thread != MODEL_NONE && !blocked->waker.interrupt;
	bool fault = blocked->kind == WAIT_FAULT;

	switch (blocked->stack.meaning.rule) {
	case MEANING_LOCK:
		return thread ? follow_waker(walk, blocked, WAIT_MUTEX) : WHY_UNDECIDED;
	case MEANING_THREAD:
		return thread ? follow_waker(walk, blocked, WAIT_OTHER) : WHY_UNDECIDED;
	case MEANING_CHILD:
		return thread ? follow_waker(walk, blocked, WAIT_CHILD) : WHY_UNDECIDED;
	case MEANING_PIPE:
		blocked->kind = WAIT_PIPE;
		name_by_meaning(walk, blocked);
		return thread && !blocked->by_signal ? follow_waker(walk, blocked, WAIT_PIPE)
						     : WHY_UNDECIDED;
	case MEANING_STOPPED:
		/* Who continues a stopped thread need not be who stopped it. */
		return why_blocked_end(walk, blocked, WHY_STOPPED, WHY_GRADE_LIKELY,
				       thread ? blocked->waker.thread : MODEL_NONE);
	case MEANING_FROZEN:
		return why_blocked_at_freeze(walk, blocked);
	case MEANING_GPU:
		return why_blocked_end(walk, blocked, WHY_GPU, WHY_GRADE_LIKELY, blocked->thread);
	case MEANING_SERVER:
		return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, MODEL_NONE);
	case MEANING_READ:
		return fault ? WHY_UNDECIDED : why_blocked_at_device(walk, blocked, false);
	case MEANING_WRITE:
		return why_blocked_at_device(walk, blocked, true);
	case MEANING_DIRTY:
		return why_blocked_dirty_throttled(walk, blocked);
	case MEANING_SWAP:
		return at_swap(walk, blocked);
	case MEANING_RECLAIM:
		return fault && !is_major(walk, blocked)
			       ? why_blocked_end(walk, blocked, WHY_PAGE_FAULT_MINOR,
						 WHY_GRADE_LIKELY, blocked->thread)
			       : WHY_UNDECIDED;
	default:
		return WHY_UNDECIDED;
	}
}

static uint32_t object_of(struct why_walk *walk, const struct why_blocked *blocked);

#define OPEN_TEXT "still waits when the capture ends"
#define NOBODY_TEXT "no other thread of the process is left to end it"
#define LEFT_ALONE_TEXT "only another thread of the process could release it, and there is none"
#define DEADLOCK_TEXT "deadlock: the chain of owners leads back to it"

/* Whether the owner has waited itself since before this wait began. Then it has not run meanwhile,
 * so that it has held the lock all the time. */
static bool owner_is_old(const struct model *model, uint32_t owner,
			 const struct model_open_wait *wait)
{
	const struct model_open_wait *own = model_open_wait_of(model, owner);

	return own && (own->before || own->from_ts <= wait->from_ts);
}

/* Nobody can release the lock any more. */
static struct why_verdict at_ended(struct why_walk *walk, struct why_blocked *blocked,
				   const struct model_open_wait *wait)
{
	char text[64];
	int len = snprintf(text, sizeof(text), WHY_ENDED_TEXT,
			   model_pid_real(walk->model, wait->ended),
			   why_ended_had(why_hang_is_shared(walk->model, wait)));

	blocked->kind = WAIT_MUTEX;
	walk->path[walk->depth - 1].meaning = strtab_put(walk->why->texts, text, (size_t)len);
	blocked->object = why_blocked_object_with(walk, blocked->object, text);
	return why_blocked_end(walk, blocked, WHY_LOCK, WHY_GRADE_LIKELY, MODEL_NONE);
}

/* The wait goes on when the capture ends, and the memory of the program says who owns the lock.
 * Undecided if it does not. */
static struct why_verdict at_owned(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model_open_wait *wait = model_open_wait_of(walk->model, blocked->thread);
	struct why_step *step = &walk->path[walk->depth - 1];
	enum why_grade grade = WHY_GRADE_LIKELY;
	uint32_t owner;
	bool sure;

	if (!wait || wait->from_ts != blocked->interval->from_ts)
		return WHY_UNDECIDED;
	if (why_hang_is_orphan(walk->model, walk->names, wait))
		return at_ended(walk, blocked, wait);
	owner = why_hang_owner(walk->model, walk->names, wait, &sure);
	if (owner == MODEL_NONE || !model_is_traced(walk->model, owner))
		return WHY_UNDECIDED;
	if (sure && owner_is_old(walk->model, owner, wait))
		grade = WHY_GRADE_CERTAIN;
	if (!(wait->flags & WAFFLE_OPEN_WAIT_JOIN))
		blocked->kind = WAIT_MUTEX;
	step->owned = true;
	step->by = owner;
	if (!why_walk_is_on_path(walk, owner))
		return why_blocked_follow(walk, blocked, owner, grade);
	step->meaning = strtab_put(walk->why->texts, DEADLOCK_TEXT, strlen(DEADLOCK_TEXT));
	return why_blocked_end(walk, blocked, WHY_LOCK, grade, owner);
}

static struct why_verdict earlier_or(const struct why_walk *walk, const struct why_blocked *blocked,
				     struct why_verdict verdict)
{
	struct why_verdict earlier = why_blocked_as_earlier(walk, blocked);

	return earlier.kind == WHY_VERDICT_NONE ? verdict : earlier;
}

/* Whether nobody else can release the lock of a file: another thread of the process, or a
 * descendant that has inherited it. */
static bool is_only_holder(const struct why_blocked *blocked, bool alone)
{
	return alone && !pipe_end_is_shared(blocked->facts.object->detail);
}

#define ALONE_TEXT "no other process holds the other end"
#define MUTUAL_PIPES_TEXT "the chain of pipes leads back to it"
#define MUTUAL_SOCKETS_TEXT "the chain of connections leads back to it"

/* What a thread waited for at a pipe or connection, or the lock of a file, did not come, and the
 * process of `peer` holds the other end or the lock. The chain continues there if the process has
 * one thread, or if that thread is known to serve the connection. */
static struct why_verdict at_peer(struct why_walk *walk, struct why_blocked *blocked, uint32_t peer)
{
	bool socket = blocked->kind == WAIT_SOCKET, alone = why_is_only_thread(walk, peer);
	bool lock = blocked->kind == WAIT_MUTEX;
	const char *mutual = lock     ? DEADLOCK_TEXT
			     : socket ? MUTUAL_SOCKETS_TEXT
				      : MUTUAL_PIPES_TEXT;
	struct why_step *step = &walk->path[walk->depth - 1];
	const struct model_open_wait *wait = model_open_wait_of(walk->model, blocked->thread);
	enum why_grade grade = lock && wait && is_only_holder(blocked, alone) &&
					       owner_is_old(walk->model, peer, wait)
				       ? WHY_GRADE_CERTAIN
				       : WHY_GRADE_LIKELY;
	struct why_verdict verdict = WHY_UNDECIDED;

	step->by = peer;
	if (socket && alone)
		verdict = why_blocked_at_unread(walk, blocked, peer);
	if (verdict.kind != WHY_VERDICT_NONE)
		return verdict;
	if (socket)
		verdict = why_blocked_for_answer(walk, blocked);
	step->owned = blocked->interval->open && (alone || verdict.kind != WHY_VERDICT_NONE);
	if (verdict.kind != WHY_VERDICT_NONE)
		return earlier_or(walk, blocked, verdict);
	if (alone && !why_walk_is_on_path(walk, peer))
		return why_blocked_follow(walk, blocked, peer, grade);
	if (alone)
		step->meaning = strtab_put(walk->why->texts, mutual, strlen(mutual));
	return why_blocked_end(walk, blocked,
			       lock     ? WHY_LOCK
			       : socket ? WHY_SOCKET
					: WHY_PIPE,
			       grade, peer);
}

/* Undecided if the process at the other end is unknown, or if another thread of the same process
 * may be the one. All holders of a pipe are known, and so are those of the lock of a file; those of
 * a connection may be more. */
static struct why_verdict at_held(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model_thread *threads = walk->model->threads.data;
	bool pipe = blocked->kind == WAIT_PIPE;
	uint32_t peer =
		pipe || blocked->kind == WAIT_SOCKET || blocked->facts.call == WAIT_CALL_FILE_LOCK
			? why_socket_peer(walk, blocked->facts.object)
			: MODEL_NONE;
	bool alone;

	if (peer == MODEL_NONE || !model_is_traced(walk->model, peer))
		return WHY_UNDECIDED;
	if (threads[peer].pid != threads[blocked->thread].pid)
		return at_peer(walk, blocked, peer);
	alone = why_is_only_thread(walk, peer);
	if (blocked->kind == WAIT_MUTEX && alone)
		return at_peer(walk, blocked, peer);
	if (!pipe)
		return WHY_UNDECIDED;
	walk->path[walk->depth - 1].meaning =
		strtab_put(walk->why->texts, ALONE_TEXT, strlen(ALONE_TEXT));
	return why_blocked_end(walk, blocked, WHY_PIPE,
			       alone ? WHY_GRADE_LIKELY : WHY_GRADE_UNKNOWN,
			       alone ? peer : MODEL_NONE);
}

/* The child that a process waits for: the one whose number it has given, or its only one. Other
 * children may be unknown. MODEL_NONE: several come into question, or none is known. */
static uint32_t awaited_child(const struct why_walk *walk, const struct why_blocked *blocked)
{
	uint32_t pid = walk->model->threads.data[blocked->thread].pid;
	struct why_wanted_children wanted;

	if (!why_wanted_children(&wanted, blocked->facts.syscall, blocked->facts.args))
		return MODEL_NONE;
	return wanted.any ? why_only_child(walk, pid)
			  : why_child_with_pid(walk, pid, wanted.number);
}

/* The wait for a child goes on when the capture ends. */
static struct why_verdict at_child(struct why_walk *walk, struct why_blocked *blocked)
{
	uint32_t child;

	if (blocked->kind != WAIT_CHILD)
		return WHY_UNDECIDED;
	child = awaited_child(walk, blocked);
	if (child == MODEL_NONE || !model_is_traced(walk->model, child) ||
	    why_walk_is_on_path(walk, child))
		return WHY_UNDECIDED;
	walk->path[walk->depth - 1].by = child;
	walk->path[walk->depth - 1].owned = true;
	return why_blocked_follow(walk, blocked, child, WHY_GRADE_LIKELY);
}

/* Whether a thread has waited since before this wait began, for something outside of the process
 * that is no work to come. Then that keeps it from ending this wait. */
static bool hangs_outside(const struct model *model, uint32_t thread,
			  const struct model_open_wait *wait)
{
	const struct model_open_wait *own = model_open_wait_of(model, thread);

	return owner_is_old(model, thread, wait) && !(own->flags & WAFFLE_OPEN_WAIT_INSIDE) &&
	       (own->task_state & WAFFLE_TASK_UNINTERRUPTIBLE ||
		wait_call_is_never_idle(syscall_name(model->meta->machine, own->syscall)));
}

/* The wait goes on when the capture ends, only another thread of the process can end it, and the
 * process has only one: the one that has to end, or that should wake this one and hangs itself. A
 * lock may also be held by the thread that waits for it. */
static struct why_verdict at_last_thread(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model *model = walk->model;
	const struct model_open_wait *wait = model_open_wait_of(model, blocked->thread);
	struct why_step *step = &walk->path[walk->depth - 1];
	uint32_t other;
	bool joins;

	if (!wait || wait->from_ts != blocked->interval->from_ts ||
	    !(wait->flags & WAFFLE_OPEN_WAIT_INSIDE))
		return WHY_UNDECIDED;
	joins = why_hang_is_join(model, walk->names, wait);
	other = why_only_other_thread(walk, blocked->thread);
	if (other == MODEL_NONE || why_walk_is_on_path(walk, other))
		return WHY_UNDECIDED;
	if (!joins &&
	    (why_hang_is_lock(model, walk->names, wait) || !hangs_outside(model, other, wait)))
		return WHY_UNDECIDED;
	step->by = other;
	step->owned = joins;
	step->left = !joins;
	return why_blocked_follow(walk, blocked, other, WHY_GRADE_LIKELY);
}

#define UNACCEPTED_TEXT "the server had not accepted the connection when the capture ended"
#define OWN_UNACCEPTED_TEXT                                                                        \
	"it listens there itself, and has no other thread to accept the connection"

/* Whether the client and the server of a connection are one process, which has one thread. */
static bool is_own_server(struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model_thread *threads = walk->model->threads.data;
	uint32_t server = why_socket_server(walk, blocked->facts.object);

	return server != MODEL_NONE && threads[server].pid == threads[blocked->thread].pid &&
	       why_is_only_thread(walk, blocked->thread);
}

/* The connection is in the queue of the socket that listens: what its server does meanwhile keeps
 * it there. */
static struct why_verdict at_unaccepted(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct store_object *object = blocked->facts.object;
	struct why_step *step = &walk->path[walk->depth - 1];
	char text[sizeof(((struct descriptor *)NULL)->detail) + 96];
	const char *says;
	bool own;
	int len;

	if (!blocked->interval->open || !wait_may_be_at_socket(blocked->kind) ||
	    !why_is_unaccepted(walk, object))
		return WHY_UNDECIDED;
	len = snprintf(text, sizeof(text), "%.48s (%s" DESCRIPTOR_UNACCEPTED ")", object->name,
		       object->detail);
	blocked->object = strtab_put(walk->why->texts, text, (size_t)len);
	own = is_own_server(walk, blocked);
	says = own ? OWN_UNACCEPTED_TEXT : UNACCEPTED_TEXT;
	step->by = own ? blocked->thread : why_socket_other_server(walk, object, blocked->thread);
	step->meaning = strtab_put(walk->why->texts, says, strlen(says));
	if (step->by == MODEL_NONE || !why_is_only_thread(walk, step->by) ||
	    why_walk_is_on_path(walk, step->by))
		return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, step->by);
	blocked->kind = WAIT_SOCKET;
	step->owned = true;
	return why_blocked_follow_server(walk, blocked, step->by);
}

/* Nobody has answered the SYN of the connection when the capture ends. */
static struct why_verdict at_unconnected(struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct store_object *object = blocked->facts.object;
	uint32_t server;

	if (!wait_may_be_at_socket(blocked->kind) || !wait_is_for_connecting(object))
		return WHY_UNDECIDED;
	server = why_socket_other_server(walk, object, blocked->thread);
	if (server == MODEL_NONE)
		return WHY_UNDECIDED;
	walk->path[walk->depth - 1].by = server;
	return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, server);
}

/* The wait goes on when the capture ends, and only a thread of the process could end it, which has
 * no other one. A handler of a signal could as well. */
static struct why_verdict at_left_alone(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model_open_wait *wait = model_open_wait_of(walk->model, blocked->thread);

	if (!wait || wait->from_ts != blocked->interval->from_ts ||
	    !(wait->flags & WAFFLE_OPEN_WAIT_INSIDE) || !why_is_only_thread(walk, blocked->thread))
		return WHY_UNDECIDED;
	if (!why_hang_is_lock(walk->model, walk->names, wait)) {
		blocked->object = why_blocked_object_with(walk, blocked->object, NOBODY_TEXT);
		return WHY_UNDECIDED;
	}
	walk->path[walk->depth - 1].meaning =
		strtab_put(walk->why->texts, LEFT_ALONE_TEXT, strlen(LEFT_ALONE_TEXT));
	return why_blocked_end(walk, blocked, WHY_LOCK, WHY_GRADE_LIKELY, blocked->thread);
}

/* The awaited event did not come. The wait shows what it is for, but not who has to end it. */
static struct why_verdict at_open(struct why_walk *walk, struct why_blocked *blocked,
				  const char *text)
{
	static const enum why_cause causes[] = {
		[WAIT_MUTEX] = WHY_LOCK,         [WAIT_GIL] = WHY_GIL,
		[WAIT_PIPE] = WHY_PIPE,          [WAIT_SOCKET] = WHY_SOCKET,
		[WAIT_CHILD] = WHY_PROCESS_EXIT,
	};
	enum why_cause cause = WHY_UNKNOWN;

	if (blocked->kind < sizeof(causes) / sizeof(causes[0]) && causes[blocked->kind])
		cause = causes[blocked->kind];
	else if (wait_is_for_connecting(blocked->facts.object))
		cause = WHY_SOCKET;
	else if (why_is_terminal(blocked->facts.object))
		cause = WHY_PIPE;
	walk->path[walk->depth - 1].meaning = strtab_put(walk->why->texts, text, strlen(text));
	if (blocked->program_lock)
		return why_blocked_end(walk, blocked, cause, WHY_GRADE_LIKELY, MODEL_NONE);
	/* Another thread waits for this one, which need not end soon. */
	if (cause == WHY_UNKNOWN && blocked->link)
		return why_verdict_end(walk, why_cause_behind(blocked->link),
				       why_grade_least(blocked->grade, WHY_GRADE_LIKELY),
				       blocked->thread, blocked->link->object);
	/* Otherwise the cause itself would say that records may be missing. */
	if (cause == WHY_UNKNOWN && !blocked->object)
		blocked->object = strtab_put(walk->why->texts, text, strlen(text));
	return why_blocked_end(walk, blocked, cause, WHY_GRADE_UNKNOWN, MODEL_NONE);
}

/* A poll() of one pipe or connection waits for that. So does one of several pipes, if the same
 * processes hold the other ends of all of them. */
static enum wait_kind polled_kind(const struct wait_facts *facts)
{
	if (!facts->object || facts->call != WAIT_CALL_POLL_LIST)
		return WAIT_POLL;
	if (descriptor_is_socket(facts->object->name) || why_is_connection(facts->object))
		return WAIT_SOCKET;
	return pipe_end_is_described(facts->object->detail) ? WAIT_PIPE : WAIT_POLL;
}

/* A thread that still waits with an epoll when the capture ends waits for the server of its only
 * connection. */
static void find_epoll_connection(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct store_object *object = blocked->facts.object;

	if (!blocked->interval->open || !object || !descriptor_is_epoll(object->name))
		return;
	object = why_epoll_connection(walk, object);
	if (!object)
		return;
	blocked->facts.object = object;
	blocked->object = object_of(walk, blocked);
	blocked->kind = WAIT_SOCKET;
}

/* The awaited event did not come. The text says what ended the wait instead. */
static struct why_verdict by_other_end(struct why_walk *walk, struct why_blocked *blocked,
				       const char *text)
{
	struct why_verdict verdict = at_owned(walk, blocked);

	find_epoll_connection(walk, blocked);
	if (blocked->kind == WAIT_POLL)
		blocked->kind = polled_kind(&blocked->facts);
	if (verdict.kind == WHY_VERDICT_NONE)
		verdict = at_unaccepted(walk, blocked);
	if (verdict.kind == WHY_VERDICT_NONE)
		verdict = why_blocked_at_gone(walk, blocked);
	if (verdict.kind == WHY_VERDICT_NONE)
		verdict = at_held(walk, blocked);
	if (verdict.kind == WHY_VERDICT_NONE)
		verdict = why_blocked_at_stopped_holders(walk, blocked);
	if (verdict.kind == WHY_VERDICT_NONE)
		verdict = at_unconnected(walk, blocked);
	if (verdict.kind == WHY_VERDICT_NONE)
		verdict = at_child(walk, blocked);
	if (verdict.kind == WHY_VERDICT_NONE)
		verdict = why_blocked_for_ranks(walk, blocked);
	if (verdict.kind == WHY_VERDICT_NONE)
		verdict = at_last_thread(walk, blocked);
	if (verdict.kind == WHY_VERDICT_NONE)
		verdict = at_left_alone(walk, blocked);
	if (verdict.kind != WHY_VERDICT_NONE)
		return verdict;
	return earlier_or(walk, blocked, at_open(walk, blocked, text));
}

#define UNREPORTED_TEXT "the kernel did not report what woke it"

/* The wait has ended, and nobody is known to have ended it. The kernels of some virtual machines
 * report nothing that an interrupt does while a thread of the machine's agent has the CPU. */
static struct why_verdict at_unreported(struct why_walk *walk, struct why_blocked *blocked)
{
	if (!blocked->waker.reported)
		walk->path[walk->depth - 1].meaning =
			strtab_put(walk->why->texts, UNREPORTED_TEXT, strlen(UNREPORTED_TEXT));
	/* Its functions show what it waited for. */
	if (blocked->program_lock)
		return why_blocked_end(walk, blocked,
				       blocked->kind == WAIT_SOCKET ? WHY_SOCKET : WHY_LOCK,
				       WHY_GRADE_LIKELY, MODEL_NONE);
	return why_blocked_end(walk, blocked, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE);
}

#define SIGNAL_TEXT "a signal ended the wait"

/* Whether a signal of another process ended a client's wait before the answer came, as a timeout
 * would. */
static bool is_given_up(const struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model_thread *threads = walk->model->threads.data;

	return blocked->by_signal && blocked->kind == WAIT_SOCKET && blocked->facts.object &&
	       why_socket_side(walk, blocked->facts.object) == WHY_SIDE_CLIENT &&
	       !blocked->waker.interrupt && blocked->waker.thread < walk->model->threads.len &&
	       threads[blocked->waker.thread].pid != threads[blocked->thread].pid;
}

static struct why_verdict by_kind(struct why_walk *walk, struct why_blocked *blocked)
{
	bool given_up = is_given_up(walk, blocked);
	bool known = blocked->waker.thread != MODEL_NONE || blocked->waker.interrupt;
	enum why_grade by_interrupt =
		blocked->waker.interrupt ? WHY_GRADE_CERTAIN : WHY_GRADE_LIKELY;
	struct why_verdict verdict;

	if (why_blocked_is_own_hold(walk, blocked))
		return why_blocked_end_held(walk, blocked, blocked->waker.thread);
	if (blocked->by_signal && !given_up)
		return why_blocked_signalled(walk, blocked);
	/* It was frozen while it waited; we do not know since when. */
	if (why_blocked_is_thawed(blocked))
		return why_blocked_at_freeze(walk, blocked);
	switch (blocked->kind) {
	case WAIT_STOPPED:
		return why_blocked_at_stop(walk, blocked);
	case WAIT_SLEEP:
		return why_blocked_at_sleep(walk, blocked);
	case WAIT_FAULT:
		return why_blocked_at_fault(walk, blocked);
	case WAIT_FILE_READ:
	case WAIT_FILE_WRITE:
		return why_blocked_at_device(walk, blocked, blocked->kind == WAIT_FILE_WRITE);
	case WAIT_TIMER:
		return why_blocked_end(walk, blocked, WHY_TIMER, by_interrupt, blocked->thread);
	case WAIT_GPU:
		/* A driver also waits for timers and for other devices. */
		return why_blocked_end(walk, blocked, WHY_GPU, WHY_GRADE_LIKELY, blocked->thread);
	default:
		break;
	}
	verdict = why_blocked_at_halted(walk, blocked);
	if (verdict.kind != WHY_VERDICT_NONE)
		return verdict;
	if (given_up || (!known && blocked->interval->open))
		return by_other_end(walk, blocked, given_up ? SIGNAL_TEXT : OPEN_TEXT);
	if (!known && blocked->kind == WAIT_GIL)
		return why_blocked_timeout(walk, blocked);
	if (!known)
		return at_unreported(walk, blocked);
	if (blocked->facts.task_state & WAFFLE_TASK_UNINTERRUPTIBLE)
		return why_blocked_at_unknown_device(walk, blocked);
	if (blocked->kind == WAIT_POLL)
		verdict = why_blocked_polled_device(walk, blocked);
	if (verdict.kind != WHY_VERDICT_NONE)
		return verdict;
	if (blocked->waker.interrupt)
		return why_blocked_interrupted(walk, blocked);
	if (blocked->kind == WAIT_GIL)
		why_blocked_find_holder(walk, blocked);
	return why_blocked_woken_by(walk, blocked, why_blocked_grade_of_waker(walk, blocked));
}

/* ---- series of waits ---- */

/* Whether the thread that ends the series waits for this one meanwhile. Then this thread did work
 * in between, and the present wake-up was not in vain. */
static bool waits_for_it(struct why_walk *walk, const struct why_blocked *blocked, uint32_t thread)
{
	size_t index = why_intervals_after(&walk->intervals, thread, blocked->to - 1);
	struct why_waker waker;

	if (index >= walk->intervals.threads[thread].intervals.len ||
	    walk->intervals.threads[thread].intervals.data[index].state != WAFFLE_THREAD_BLOCKED ||
	    walk->intervals.threads[thread].intervals.data[index].from_ts >= blocked->to)
		return false;
	waker = why_waker_of(walk, thread, index);
	return waker.thread == blocked->thread && !waker.interrupt;
}

/* The instance is the thread's time, and the thread is in no span. So nothing shows what it waits
 * for. */
static bool is_outside(const struct why_walk *walk, const struct why_blocked *blocked)
{
	uint64_t ignored;

	return !blocked->link &&
	       why_intervals_span(&walk->intervals, blocked->thread, blocked->interval->from_ts,
				  &ignored) == MODEL_NONE;
}

/* Whether each wake-up ends a wait of this kind, if the thread is in no span: then it waits for
 * whatever comes next, and handles that. */
static bool is_idle(struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct why_series *series;

	if (blocked->kind != WAIT_FUTEX)
		return why_waits_for_any(blocked->kind);
	/* A broadcast may be for others. If the thread still waits when the capture ends, nothing
	 * shows which wake-up was for this one. */
	series = why_series_of(walk, &blocked->waiting, blocked->thread, blocked->index);
	return walk->intervals.threads[blocked->thread].intervals.data[series->last].open;
}

#define AWAKE_TEXT "came while it was awake, when only that thread ran"

/* What it waited for came after its last timeout. */
static void end_awake(struct why_walk *walk, struct why_blocked *blocked, struct why_step *step,
		      uint32_t thread)
{
	blocked->waker = (struct why_waker){.thread = thread, .inferred = true};
	blocked->grade = why_grade_least(blocked->grade, WHY_GRADE_LIKELY);
	step->meaning = strtab_put(walk->why->texts, AWAKE_TEXT, strlen(AWAKE_TEXT));
}

#define MISSED_TEXT                                                                                \
	"woken for another request; what this one waited for may have come while it was awake"

/* A loop was woken for another request, and this one was answered, too. */
static void end_missed(struct why_walk *walk, struct why_blocked *blocked, struct why_step *step,
		       const struct why_series *series)
{
	blocked->missed = true;
	/* What became ready is the other request's connection. */
	step->object = blocked->object = 0;
	blocked->waker = (struct why_waker){.thread = series->done_by, .inferred = true};
	step->meaning = strtab_put(walk->why->texts, MISSED_TEXT, strlen(MISSED_TEXT));
}

static struct why_verdict at_missed(struct why_walk *walk, struct why_blocked *blocked)
{
	if (blocked->waker.thread != MODEL_NONE)
		return why_blocked_follow(walk, blocked, blocked->waker.thread, WHY_GRADE_LIKELY);
	blocked->object = walk->path[walk->depth - 1].meaning; /* MISSED_TEXT */
	return why_blocked_end(walk, blocked, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE);
}

#define QUEUED_TEXT "queued behind another request, which was answered first"

/* The last wait of a series ends the others. */
static void end_series(struct why_walk *walk, struct why_blocked *blocked, struct why_step *step,
		       const struct why_series *series)
{
	blocked->waker = series->waker;
	blocked->end_ts =
		walk->intervals.threads[blocked->thread].intervals.data[series->last].to_ts;
	step->series_first = (uint32_t)series->first;
	step->series_last = (uint32_t)series->last;
	if (series->last > blocked->index)
		step->later_ts = why_switched_in(walk, blocked->thread, series->last);
}

/* The loop did work before the series ended, so that the wait ends apart from it: by its own
 * wake-up, or if that is a timeout, by the next event. */
static void end_apart(struct why_walk *walk, struct why_blocked *blocked, struct why_step *step,
		      const struct why_series *series)
{
	struct why_series event;

	blocked->grade = why_grade_least(blocked->grade, WHY_GRADE_LIKELY);
	if (why_series_event(walk, &blocked->waiting, blocked->thread, blocked->index, series,
			     &event) &&
	    !why_walk_is_on_path(walk, event.waker.thread))
		end_series(walk, blocked, step, &event);
	blocked->by_signal = why_ended_by_signal(walk, blocked->thread, blocked->end_ts,
						 &blocked->waker, blocked->kind);
}

/* If the thread waits for the same thing again, the waker did not end its wait. */
static void find_end(struct why_walk *walk, struct why_blocked *blocked, struct why_step *step)
{
	const struct why_series *series =
		why_series_of(walk, &blocked->waiting, blocked->thread, blocked->index);
	bool thread = series->waker.thread < walk->model->threads.len && !series->waker.interrupt;

	if (blocked->grade == WHY_GRADE_CERTAIN &&
	    why_is_doubtful(walk, &blocked->waiting, blocked->thread, blocked->index))
		blocked->grade = WHY_GRADE_LIKELY;
	if (!series->missed && series->last > blocked->index && thread &&
	    (why_walk_is_on_path(walk, series->waker.thread) ||
	     waits_for_it(walk, blocked, series->waker.thread))) {
		end_apart(walk, blocked, step, series);
		return;
	}
	blocked->by_signal = series->by_signal;
	if (series->last > blocked->index || series->first < blocked->index)
		end_series(walk, blocked, step, series);
	if (series->queued)
		step->meaning = strtab_put(walk->why->texts, QUEUED_TEXT, strlen(QUEUED_TEXT));
	if (series->served || series->apart)
		blocked->grade = why_grade_least(blocked->grade, WHY_GRADE_LIKELY);
	if (series->missed)
		end_missed(walk, blocked, step, series);
	else if (series->done_by != MODEL_NONE && !why_walk_is_on_path(walk, series->done_by))
		end_awake(walk, blocked, step, series->done_by);
}

static const char *variable_at(const struct why_walk *walk, uint32_t thread, uint64_t ts,
			       uint64_t address)
{
	return stack_names_variable(walk->names, walk->model->threads.data[thread].pid, ts,
				    address);
}

/* Threads wait for the same things again and again, so we cache the texts. */
static uint32_t known_text(struct why_walk *walk, const struct wait_facts *facts,
			   enum wait_kind kind)
{
	struct why_object_text wanted = {.object = facts->object}, *known;

	if (!facts->object) {
		if (facts->variable || !wait_has_futex(facts, kind))
			return wait_object_text(walk->why->texts, facts, kind);
		wanted.address = wait_futex_address(facts);
	}
	known = &walk->object_texts[hash_number((uintptr_t)wanted.object ^ wanted.address) >>
				    (64 - WHY_OBJECT_TEXT_BITS)];
	if (known->object != wanted.object || known->address != wanted.address || !known->text) {
		wanted.text = wait_object_text(walk->why->texts, facts, kind);
		*known = wanted;
	}
	return known->text;
}

/* The text of what it waits for; 0: unknown. */
static uint32_t object_of(struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct wait_facts *facts = &blocked->facts;
	uint32_t pid = walk->model->threads.data[blocked->thread].pid;

	if (!facts->object && facts->args && wait_has_mapping(facts))
		return why_mapped_file(walk, pid, facts->args[0], blocked->from);
	return known_text(walk, facts, blocked->kind);
}

/* The device that holds the file that it waits for; 0: unknown. The node of a device in /dev lies
 * on another device, and a pipe or a socket lies on none. */
static uint32_t device_of(const struct wait_facts *facts)
{
	const struct store_object *object = facts->object;

	if (!object || object->name[0] != '/' || !strncmp(object->name, "/dev/", 5))
		return 0;
	return object->dev;
}

/* Whether this wait is the one that a GPU call makes for the GPU. A driver may also wait for other
 * things. */
static bool is_of_call(const struct why_blocked *blocked)
{
	if (blocked->kind == WAIT_STOPPED || blocked->kind == WAIT_FAULT ||
	    futex_use_is_lock(blocked->facts.futex))
		return false;
	return !(blocked->facts.task_state & WAFFLE_TASK_UNINTERRUPTIBLE) ||
	       blocked->kind == WAIT_GPU || blocked->stack.meaning.rule == MEANING_GPU;
}

/* The records do not say which thread runs a host function. It is likely the thread of the process
 * that ends the wait. */
static struct why_verdict by_call(struct why_walk *walk, struct why_blocked *blocked,
				  const struct why_await *await)
{
	const struct model *model = walk->model;
	uint32_t thread = blocked->waker.thread, object;

	if (await->host != MODEL_NONE || blocked->waker.interrupt ||
	    !model_is_traced(model, thread) ||
	    model->threads.data[thread].pid != model->threads.data[blocked->thread].pid)
		return why_await_verdict(walk, await, blocked->grade);
	object = why_await_host(walk, await);
	if (!object)
		return why_await_verdict(walk, await, blocked->grade);
	blocked->kind = WAIT_OTHER;
	blocked->object = object;
	return why_blocked_follow(walk, blocked, thread, WHY_GRADE_LIKELY);
}

static struct why_step *blocked_push(struct why_walk *walk, const struct why_blocked *blocked)
{
	struct why_step *step = why_walk_push(walk, blocked->thread, WAFFLE_THREAD_BLOCKED,
					      blocked->from, blocked->to);

	step->syscall = blocked->interval->syscall;
	step->args = blocked->interval->args;
	step->task_state = blocked->interval->task_state;
	step->object = blocked->file_lock ? 0 : blocked->object; /* it does not sleep at the file */
	step->meaning = blocked->stack.text;
	step->dev = device_of(&blocked->facts);
	step->in_ts = why_switched_in(walk, blocked->thread, blocked->index);
	if (blocked->wait)
		step->wait = (uint32_t)(blocked->wait - walk->model->waits.data);
	return step;
}

/* The timeout of an event loop expired: it had nothing to do. A timer with a descriptor is an
 * event, and then the object is that one. In a span, or on the way of a chain, somebody waits for
 * the timeout. A thread that calls poll() may wait for the answer to a request. */
static bool is_idle_loop(const struct why_walk *walk, const struct why_blocked *blocked,
			 const struct why_verdict *verdict)
{
	const char *object = strtab_get(walk->why->texts, blocked->object);

	return verdict->kind == WHY_VERDICT_END && verdict->cause == WHY_TIMER &&
	       blocked->kind == WAIT_POLL && blocked->waiting.outside &&
	       syscall_name_is_epoll(blocked->facts.syscall) &&
	       (!*object || descriptor_is_epoll(object));
}

/* The program's functions show a lock of its own. While it sleeps to try again, that is still a
 * sleep. */
static void find_program_lock(struct why_walk *walk, struct why_blocked *blocked)
{
	blocked->program_lock = why_program_lock(walk, blocked);
	if (!blocked->program_lock)
		return;
	blocked->grade = why_grade_least(blocked->grade, WHY_GRADE_LIKELY);
	if (blocked->kind != WAIT_SLEEP)
		blocked->kind =
			why_lock_is_answer(strtab_get(walk->why->texts, blocked->program_lock))
				? WAIT_SOCKET
				: WAIT_MUTEX;
}

/* Adds the session that may hold a lock of PostgreSQL, unless another thread is known to have
 * released the lock. */
static void add_session(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model *model = walk->model;
	uint32_t session;
	char text[128];

	if (!why_lock_is_of_transaction(strtab_get(walk->why->texts, blocked->object)) ||
	    (model_is_traced(model, blocked->waker.thread) && !blocked->waker.interrupt))
		return;
	session = why_idle_session(walk, blocked->thread, blocked->to);
	if (session == MODEL_NONE)
		return;
	snprintf(text, sizeof(text), "may be held by %.64s (%u), which is idle in a transaction",
		 model_thread_name(model, session),
		 model_pid_real(model, model->threads.data[session].tid));
	blocked->object = why_blocked_object_with(walk, blocked->object, text);
}

/* Says that nothing shows which connection holds a metadata lock, unless a thread is known to have
 * released it. */
static void add_unknown_connection(struct why_walk *walk, struct why_blocked *blocked)
{
	if (why_lock_is_of_metadata(strtab_get(walk->why->texts, blocked->object)) &&
	    (!model_is_traced(walk->model, blocked->waker.thread) || blocked->waker.interrupt))
		blocked->object = why_blocked_object_with(
			walk, blocked->object, "which connection holds it is not recorded");
}

/* Whether a process that has ended may have left a lock to its siblings, as far as others show. */
static bool may_have_shared(struct why_walk *walk, uint32_t killed)
{
	uint32_t may = map_get(&walk->killed_shared, killed);

	if (may == MAP_NONE) {
		may = why_hang_children_share(walk->model, walk->names, killed);
		map_put(&walk->killed_shared, killed, may);
	}
	return may;
}

/* Adds the process that may have held a lock that processes share: it ended meanwhile. */
static void add_killed(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model *model = walk->model;
	uint32_t killed;
	const char *name;
	char text[160];

	if (!blocked->interval->open ||
	    !why_lock_is_shared(strtab_get(walk->why->texts, blocked->object)))
		return;
	killed = why_killed_sibling(walk, blocked->thread);
	if (killed == MODEL_NONE || !may_have_shared(walk, killed))
		return;
	name = signal_name(why_killed_by(model, killed));
	snprintf(text, sizeof(text), "may be held by %.64s (%u), which %s has ended",
		 model_thread_name(model, killed),
		 model_pid_real(model, model->threads.data[killed].tid), name ?: "a signal");
	blocked->object = why_blocked_object_with(walk, blocked->object, text);
}

/* The step has the descriptor or futex as its object. */
static void set_program_lock(struct why_walk *walk, struct why_blocked *blocked,
			     struct why_step *step)
{
	char text[128];
	int len = snprintf(text, sizeof(text), "waits for %s",
			   strtab_get(walk->why->texts, blocked->program_lock));

	blocked->object = blocked->program_lock;
	add_session(walk, blocked);
	add_unknown_connection(walk, blocked);
	add_killed(walk, blocked);
	if (!step->meaning && len < (int)sizeof(text))
		step->meaning = strtab_put(walk->why->texts, text, (size_t)len);
}

/* Describes the wait for the search of its series. To be called when it is on the path. */
static void find_waiting(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct why_link *link = blocked->link;

	blocked->waiting = (struct why_waiting){
		.kind = blocked->kind,
		.uninterruptible = blocked->facts.task_state & WAFFLE_TASK_UNINTERRUPTIBLE,
		.ends = blocked->facts.futex == FUTEX_USE_ENDS,
		.lists = blocked->kind == WAIT_POLL && !wait_has_descriptor(&blocked->facts),
		.writes = wait_is_for_room(&blocked->facts, blocked->kind),
		.from_ts = link && link->until_ts ? link->from_ts : walk->instance->from_ts,
		.until_ts = link && link->until_ts ? link->until_ts : walk->end_ts,
	};
	if (is_outside(walk, blocked)) {
		blocked->waiting.idle = is_idle(walk, blocked);
		blocked->waiting.outside = true;
	}
	blocked->waiting.any = why_go_is_any(walk, blocked);
}

/* While a thread is stopped or frozen, it does not wait for what its system call is for. */
static bool is_stop(const struct meaning *meaning)
{
	return meaning->rule == MEANING_STOPPED || meaning->rule == MEANING_FROZEN;
}

/* A server that has not answered may wait for a process that is stopped, or be stopped itself. */
static struct why_verdict at_silence(struct why_walk *walk, struct why_blocked *blocked)
{
	struct why_verdict verdict = WHY_UNDECIDED;

	if (blocked->kind == WAIT_STOPPED || is_stop(&blocked->stack.meaning) ||
	    why_blocked_is_thawed(blocked))
		return WHY_UNDECIDED;
	if (blocked->link && blocked->link->unanswered)
		verdict = why_blocked_at_halted(walk, blocked);
	return verdict.kind == WHY_VERDICT_NONE ? why_blocked_silent(walk, blocked) : verdict;
}

/* Whether the object may be that of another request, or the waker no interrupt. */
static bool is_uncertain(const struct why_blocked *blocked)
{
	return (blocked->facts.other_request && blocked->facts.object) ||
	       (blocked->waker.interrupt && blocked->waker.inferred);
}

struct why_verdict why_blocked_verdict(struct why_walk *walk, const struct why_stretch *stretch)
{
	uint32_t thread = stretch->thread;
	struct why_blocked blocked = {
		.thread = thread,
		.interval = stretch->interval,
		.index = stretch->index,
		.from = stretch->from,
		.to = stretch->to,
		.waker = why_waker_of(walk, thread, stretch->index),
		.grade = stretch->grade,
		.link = stretch->link,
	};
	struct why_verdict verdict = WHY_UNDECIDED;
	struct why_step *step;
	bool of_call;

	blocked.facts = why_facts_of(walk, thread, blocked.interval, &blocked.wait);
	if (wait_has_futex(&blocked.facts, WAIT_FUTEX)) {
		blocked.facts.futex = why_futex_use(walk, thread, blocked.interval, blocked.wait);
		blocked.facts.variable =
			variable_at(walk, thread, blocked.from, wait_futex_address(&blocked.facts));
	}
	blocked.kind = wait_kind_of(&blocked.facts);
	if (blocked.wait)
		why_stack_meaning(walk, blocked.wait->kernel_stack, &blocked.stack);
	if (blocked.kind != WAIT_STOPPED && !is_stop(&blocked.stack.meaning))
		blocked.object = object_of(walk, &blocked);
	find_program_lock(walk, &blocked);
	why_file_lock_find(walk, &blocked);
	step = blocked_push(walk, &blocked);
	blocked.end_ts = blocked.interval->to_ts;
	find_waiting(walk, &blocked);
	of_call = stretch->await.sync != MODEL_NONE && !why_await_polls(walk, &stretch->await) &&
		  is_of_call(&blocked);
	if (!of_call && !is_stop(&blocked.stack.meaning)) {
		find_end(walk, &blocked, step);
		if (!blocked.missed && why_blocked_find_ready(walk, &blocked, step->series_last))
			step->object = blocked.object = object_of(walk, &blocked);
	}
	step->serves = walk->through_tid && why_blocked_serves(walk, &blocked);
	if (blocked.program_lock)
		set_program_lock(walk, &blocked, step);
	if (blocked.file_lock)
		why_file_lock_describe(walk, &blocked, step);
	step->by = blocked.waker.thread;
	step->interrupt = blocked.waker.interrupt;
	if (is_uncertain(&blocked))
		blocked.grade = why_grade_least(blocked.grade, WHY_GRADE_LIKELY);
	if (of_call)
		verdict = by_call(walk, &blocked, &stretch->await);
	else
		verdict = at_silence(walk, &blocked);
	if (verdict.kind == WHY_VERDICT_NONE && blocked.missed)
		verdict = at_missed(walk, &blocked);
	else if (verdict.kind == WHY_VERDICT_NONE && blocked.kind != WAIT_STOPPED)
		verdict = by_meaning(walk, &blocked);
	if (verdict.kind == WHY_VERDICT_NONE)
		verdict = by_kind(walk, &blocked);
	verdict.idle = is_idle_loop(walk, &blocked, &verdict);
	return why_go_at_idle(walk, &blocked, verdict);
}
