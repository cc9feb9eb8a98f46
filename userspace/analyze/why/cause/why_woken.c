// SPDX-License-Identifier: Apache-2.0
/* Waits that a thread ended: which thread, and whether the records prove that it was the awaited
 * one. */
#include "analyze/why/cause/why_blocked_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/lookup/why_roots.h"
#include "analyze/why/lookup/why_signals.h"
#include "analyze/why/parts/why_sums.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "util/memory.h"
#include "util/syscall_names.h"
#include "util/text.h"

/* ---- end and continuation of a chain ---- */

struct why_verdict why_blocked_end(struct why_walk *walk, const struct why_blocked *blocked,
				   enum why_cause cause, enum why_grade grade, uint32_t culprit)
{
	struct why_disk_use disk = {.own_bytes = 0};
	struct why_verdict verdict =
		why_verdict_end(walk, cause, why_grade_least(blocked->grade, grade), culprit,
				why_pressure(walk, blocked, cause, &disk));

	verdict.disk = disk;
	return verdict;
}

bool why_blocked_serves(struct why_walk *walk, const struct why_blocked *blocked)
{
	const char *call = blocked->facts.syscall;

	if (!call || wait_is_for_room(&blocked->facts, blocked->kind))
		return false;
	return !strcmp(call, "accept") || !strcmp(call, "accept4") ||
	       (wait_may_be_at_socket(blocked->kind) && blocked->facts.object &&
		why_is_of_server(walk, blocked->facts.object,
				 walk->model->threads.data[blocked->thread].pid));
}

/* A thread on the path has woken a server that waits for whoever comes next: it asked only then,
 * and waited for something else before. */
static struct why_verdict asked_late(struct why_walk *walk, const struct why_blocked *blocked,
				     uint32_t by)
{
	const struct model *model = walk->model;
	char text[128];
	int len = snprintf(text, sizeof(text), "asked %.64s (%u) only at the end",
			   model_thread_name(model, blocked->thread),
			   model_pid_real(model, model->threads.data[blocked->thread].tid));

	return why_verdict_end(walk, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, by,
			       strtab_put(walk->why->texts, text, (size_t)len));
}

struct why_verdict why_blocked_follow(struct why_walk *walk, const struct why_blocked *blocked,
				      uint32_t thread, enum why_grade grade)
{
	bool on_path = why_walk_is_on_path(walk, thread);

	if (on_path && thread != blocked->thread && why_blocked_serves(walk, blocked))
		return asked_late(walk, blocked, thread);
	/* A blocked thread cannot wake anybody: if it is on the path, the records contradict each
	 * other. */
	if (walk->depth >= WHY_DEPTH_MAX || on_path)
		return why_blocked_end(walk, blocked, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE);
	if (blocked->kind == WAIT_MUTEX || blocked->kind == WAIT_GIL)
		walk->path[walk->depth - 1].lock = blocked->object;
	return (struct why_verdict){
		.kind = WHY_VERDICT_FOLLOW,
		.thread = thread,
		.link = {.kind = blocked->kind,
			 .grade = why_grade_least(blocked->grade, grade),
			 .object = blocked->object,
			 .from_ts = blocked->interval->from_ts,
			 .until_ts = blocked->end_ts},
	};
}

/* ---- nobody sends ---- */

#define NEITHER_TEXT                                                                               \
	"neither end sends: a delayed acknowledgement, Nagle's algorithm, or a lost packet"

#define AGAIN_TEXT "neither end sends: data was lost, or not acknowledged in time, and sent again"

/* The wait at the other end of the connection, if that has sent data again. NULL: none. */
static const struct why_step *resent_to(const struct why_walk *walk,
					const struct store_object *object)
{
	const struct model *model = walk->model;

	for (size_t i = 0; i + 1 < walk->depth; i++) {
		const struct why_step *step = &walk->path[i];

		if (step->wait != MODEL_NONE &&
		    why_socket_resent(walk,
				      store_reader_object(model->reader,
							  model->waits.data[step->wait].object),
				      object))
			return step;
	}
	return NULL;
}

#define LOST_TEXT "neither end sends: a lost packet"

/* Only TCP holds packets back. Of an epoll instance, only TCP connections are examined. */
static bool is_of_tcp(const struct store_object *object)
{
	return object && (text_begins(object->detail, "tcp") || descriptor_is_epoll(object->name));
}

uint32_t why_blocked_object_with(struct why_walk *walk, uint32_t object, const char *text)
{
	char *whole = NULL;
	size_t len = 0;
	FILE *stream = memory_stream(&whole, &len);
	uint32_t number;

	fprintf(stream, "%s: %s", strtab_get(walk->why->texts, object), text);
	memory_require(!fclose(stream));
	number = strtab_put(walk->why->texts, whole, len);
	free(whole);
	return number;
}

struct why_verdict why_blocked_neither_sends(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct why_step *resent = resent_to(walk, blocked->facts.object);
	const char *text = !is_of_tcp(blocked->facts.object) ? LOST_TEXT
			   : resent                          ? AGAIN_TEXT
							     : NEITHER_TEXT;

	walk->path[walk->depth - 1].meaning = strtab_put(walk->why->texts, text, strlen(text));
	if (resent)
		blocked->object = resent->object;
	blocked->object = why_blocked_object_with(walk, blocked->object, text);
	return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, MODEL_NONE);
}

/* ---- no answer ---- */

#define UNANSWERED_TEXT "no answer came"
#define SILENT_TEXT "did not answer before the client stopped waiting"
#define SILENT_SO_FAR_TEXT "had not answered when the capture ended"

/* Whether a step waits for several connections, or for a new one, so that another one may have a
 * request that is not answered. If the server waits for this one alone, the request may be
 * incomplete. */
static bool is_of_loop(const struct why_walk *walk, const struct why_step *step)
{
	const char *syscall =
		step->syscall >= 0 ? syscall_name(walk->model->meta->machine, step->syscall) : NULL;

	return syscall_name_is_epoll(syscall) || (syscall && text_begins(syscall, "accept"));
}

struct why_verdict why_blocked_unanswered(struct why_walk *walk, struct why_blocked *blocked,
					  uint32_t server)
{
	bool loop = false;

	for (size_t i = 0; i + 1 < walk->depth; i++)
		if (walk->path[i].thread == server)
			loop = is_of_loop(walk, &walk->path[i]);
	walk->path[walk->depth - 1].meaning =
		strtab_put(walk->why->texts, UNANSWERED_TEXT, strlen(UNANSWERED_TEXT));
	return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY,
			       loop ? server : MODEL_NONE);
}

struct why_verdict why_blocked_silent(struct why_walk *walk, struct why_blocked *blocked)
{
	struct why_step *step = &walk->path[walk->depth - 1];
	const char *text;
	bool loop;

	if (!blocked->link || !blocked->link->unanswered || walk->depth < 2 ||
	    blocked->program_lock)
		return WHY_UNDECIDED;
	loop = is_of_loop(walk, step);
	/* A proxy may wait for the answer of another server. */
	if (loop ? why_is_asker(walk, walk->model->threads.data[blocked->thread].pid)
		 : why_socket_peer(walk, blocked->facts.object) !=
			    walk->path[walk->depth - 2].thread)
		return WHY_UNDECIDED;
	text = blocked->link->open ? SILENT_SO_FAR_TEXT : SILENT_TEXT;
	step->meaning = strtab_put(walk->why->texts, text, strlen(text));
	blocked->object = blocked->link->object;
	return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY,
			       loop ? blocked->thread : MODEL_NONE);
}

/* ---- woken ---- */

/* Whether the thread that ended the wait did so by releasing a lock: of a file, or of memory that
 * processes share. */
static bool is_for_lock(const struct why_blocked *blocked)
{
	return blocked->kind == WAIT_MUTEX && (blocked->facts.call == WAIT_CALL_FILE_LOCK ||
					       futex_use_is_lock(blocked->facts.futex));
}

/* Who waits for the end of a process, if that is not the one that is explained: "awaited by sh",
 * the same for all shells of a script; else 0. */
static uint32_t awaiter_text(struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model *model = walk->model;
	const struct model_thread *thread = &model->threads.data[blocked->thread];
	char text[96];
	int len;

	if (thread->pid == model->threads.data[walk->path[0].thread].pid)
		return 0;
	len = snprintf(text, sizeof(text), "awaited by %.64s",
		       model_thread_name(model, blocked->thread));
	return strtab_put(walk->why->texts, text, (size_t)len);
}

/* Ends the chain at a thread that was not recorded. If it is a thread of the kernel, its work says
 * what was waited for. */
static struct why_verdict end_outside(struct why_walk *walk, const struct why_blocked *blocked,
				      uint32_t thread)
{
	uint32_t work, object;
	enum why_cause cause = WHY_NOT_RECORDED;
	enum worker_for what;
	bool writes;

	switch (blocked->kind) {
	case WAIT_PIPE:
		return why_blocked_end(walk, blocked, WHY_PIPE, WHY_GRADE_LIKELY, thread);
	case WAIT_SOCKET:
		return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, thread);
	case WAIT_CHILD:
		return why_verdict_end(walk, WHY_PROCESS_EXIT,
				       why_grade_least(blocked->grade, WHY_GRADE_LIKELY), thread,
				       awaiter_text(walk, blocked) ?: blocked->object);
	default:
		if (blocked->program_lock)
			return why_blocked_end(walk, blocked, WHY_LOCK, WHY_GRADE_LIKELY, thread);
		if (!blocked->object && model_is_own(walk->model, thread))
			return why_verdict_end(walk, WHY_NOT_RECORDED,
					       why_grade_least(blocked->grade, WHY_GRADE_LIKELY),
					       thread, walk->own_cpu_text);
		work = why_worker_of_wake(walk, blocked->thread, blocked->end_ts, &what);
		writes = what == WORKER_WRITES;
		object = work ?: blocked->object;
		if (writes && blocked->object) /* the file says more than that somebody writes */
			object = blocked->object;
		if (writes)
			cause = WHY_DISK_WRITE;
		else if (!work && is_for_lock(blocked))
			cause = WHY_LOCK;
		return why_verdict_end(walk, cause,
				       why_grade_least(blocked->grade, WHY_GRADE_LIKELY), thread,
				       object);
	}
}

/* Whether only the waker shows what the thread waited for. */
static bool is_shown_by_end(const struct why_blocked *blocked)
{
	return blocked->kind == WAIT_POLL ||
	       (blocked->kind == WAIT_OTHER && !blocked->facts.fault &&
		wait_has_descriptor(&blocked->facts));
}

bool why_blocked_polls_timer(const struct why_blocked *blocked)
{
	const struct store_object *object = blocked->facts.object;

	return blocked->kind == WAIT_POLL && object &&
	       (strstr(object->detail, DESCRIPTOR_TIMER_KIND) ||
		strstr(object->name, DESCRIPTOR_TIMER_KIND));
}

/* Whether a thread on the path waited at the other end of the connection, and no longer when this
 * wait ended. Other threads of the process may have used the connection after that. */
static bool is_awaited_at_other_end(const struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model *model = walk->model;

	for (size_t i = 0; i + 1 < walk->depth; i++) {
		const struct why_step *step = &walk->path[i];
		uint64_t end_ts = step->later_ts ?: step->in_ts;

		if (step->state == WAFFLE_THREAD_BLOCKED && step->wait != MODEL_NONE && end_ts &&
		    end_ts <= blocked->end_ts &&
		    why_is_other_end(walk,
				     store_reader_object(model->reader,
							 model->waits.data[step->wait].object),
				     blocked->facts.object))
			return true;
	}
	return false;
}

/* Whether both ends of the connection waited for each other: the waker is on the path already, and
 * sent only after its own wait at the connection, so something else had ended that wait. */
static bool waits_for_each_other(struct why_walk *walk, const struct why_blocked *blocked,
				 uint32_t waker)
{
	if (waker == blocked->thread)
		return false;
	return (why_walk_is_on_path(walk, waker) &&
		why_socket_peer(walk, blocked->facts.object) == waker) ||
	       is_awaited_at_other_end(walk, blocked);
}

/* Whoever waits for a terminal waits for the process at its other end. The chain goes on there only
 * if that process has one thread: otherwise nothing shows which of them writes. */
static struct why_verdict at_terminal(struct why_walk *walk, struct why_blocked *blocked)
{
	uint32_t peer = why_socket_peer(walk, blocked->facts.object);

	blocked->kind = WAIT_PIPE;
	if (peer == MODEL_NONE || peer == blocked->thread || why_walk_is_on_path(walk, peer) ||
	    !model_is_traced(walk->model, peer) || !why_is_only_thread(walk, peer))
		return why_blocked_end(walk, blocked, WHY_PIPE, WHY_GRADE_LIKELY,
				       peer == blocked->thread ? MODEL_NONE : peer);
	return why_blocked_follow(walk, blocked, peer, WHY_GRADE_LIKELY);
}

struct why_verdict why_blocked_woken_by(struct why_walk *walk, struct why_blocked *blocked,
					enum why_grade grade)
{
	uint32_t thread = blocked->waker.thread;
	bool shown_by_end = is_shown_by_end(blocked);

	/* Without a stack, a wake-up by an interrupt during a system call looks as if the
	 * interrupted thread did it. */
	if (!model_is_traced(walk->model, thread) && !blocked->waker.hints &&
	    why_blocked_polls_timer(blocked))
		return why_blocked_end(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	/* A kernel worker passes on what was written at the other end of a terminal. */
	if (shown_by_end && !model_is_traced(walk->model, thread) &&
	    (blocked->waker.hints & WHY_HINT_TERMINAL || why_is_terminal(blocked->facts.object)))
		return at_terminal(walk, blocked);
	if (shown_by_end) {
		if (blocked->waker.hints & WHY_HINT_PIPE || why_is_terminal(blocked->facts.object))
			blocked->kind = WAIT_PIPE;
		else if (blocked->waker.hints & WHY_HINT_SOCKET)
			blocked->kind = WAIT_SOCKET;
	}
	if (!why_is_recorded_at(walk->model, thread, blocked->end_ts))
		return end_outside(walk, blocked, thread);
	/* The last thread of a child ends the wait, but its main thread did the awaited work. */
	if (blocked->kind == WAIT_CHILD)
		thread = why_main_thread(walk, thread);
	if (blocked->kind == WAIT_SOCKET && waits_for_each_other(walk, blocked, thread))
		return why_blocked_neither_sends(walk, blocked);
	return why_blocked_follow(walk, blocked, thread, grade);
}

bool why_blocked_is_shared(const struct why_blocked *blocked)
{
	if (blocked->facts.lock_hints & WHY_HINT_READERS || blocked->waker.hints & WHY_HINT_READERS)
		return true;
	return blocked->facts.lock_hints & WHY_HINT_WRITER && !blocked->waker.has_stack;
}

/* ---- ended by an unexpected signal ---- */

struct why_verdict why_blocked_signalled(struct why_walk *walk, struct why_blocked *blocked)
{
	uint32_t sender = blocked->waker.thread;

	if (blocked->waker.interrupt && blocked->waker.hints & WHY_HINT_ALARM)
		return why_blocked_end(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	if (blocked->waker.interrupt || sender == MODEL_NONE)
		return why_blocked_end(walk, blocked, WHY_INTERRUPT, WHY_GRADE_LIKELY, MODEL_NONE);
	blocked->kind = WAIT_OTHER;
	if (!model_is_traced(walk->model, sender))
		return end_outside(walk, blocked, sender);
	return why_blocked_follow(walk, blocked, sender, WHY_GRADE_LIKELY);
}

/* ---- locks that others held in between ---- */

/* Limits of the other threads and of their waits to check; beyond them nothing is certain. */
#define THREADS_MAX 256
#define OTHERS_MAX 256

/*
 * Whether the lock was released to another thread while this one waited. If so, the thread that
 * released it to this one may have acquired it during the wait. If not, it held the lock all the
 * time, since releasing a lock wakes a waiter. `by_others`: only releases by other threads count.
 */
static bool changed_hands(struct why_walk *walk, const struct why_blocked *blocked, bool by_others)
{
	const struct model *model = walk->model;
	const struct why_interval *own = blocked->interval;
	uint64_t address = blocked->facts.args[0];
	uint32_t pid = model->threads.data[blocked->thread].pid;
	size_t first = why_threads_of(walk, pid);

	for (size_t at = first; at < model->threads.len; at++) {
		uint32_t other = walk->by_pid[at];
		const struct why_thread *of = &walk->intervals.threads[other];
		size_t i;

		if (model->threads.data[other].pid != pid)
			break;
		if (at - first >= THREADS_MAX)
			return true;
		if (other == blocked->thread || other == blocked->waker.thread)
			continue;
		i = why_intervals_after(&walk->intervals, other, own->from_ts);
		for (size_t end = i + OTHERS_MAX; i < of->intervals.len; i++) {
			const struct why_interval *wait = &of->intervals.data[i];

			walk->why->searched++;
			if (wait->to_ts >= own->to_ts)
				break;
			if (i == end)
				return true;
			if (wait->state != WAFFLE_THREAD_BLOCKED || wait->syscall != own->syscall ||
			    wait->args >= model->syscall_args.len ||
			    model->syscall_args.data[wait->args] != address)
				continue;
			if (!by_others ||
			    why_waker_of(walk, other, i).thread != blocked->waker.thread)
				return true;
		}
	}
	return false;
}

/* A packet may arrive while any thread sends something else. That thread is not the peer, which may
 * be on another machine. */
static bool may_be_other_peer(struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model_thread *threads = walk->model->threads.data;
	uint32_t peer = why_socket_peer(walk, blocked->facts.object);

	if (peer >= walk->model->threads.len || blocked->waker.thread >= walk->model->threads.len)
		return why_may_be_remote(blocked->facts.object);
	return threads[peer].pid != threads[blocked->waker.thread].pid;
}

/* True: the thread waited for several files, and the wake-up shows that a socket ended the wait. */
static bool is_for_socket(const struct why_blocked *blocked)
{
	const struct store_object *object = blocked->facts.object;

	return blocked->kind == WAIT_POLL && blocked->waker.hints & WHY_HINT_SOCKET && object &&
	       descriptor_is_socket(object->name);
}

/* Whether a recorded signal ended a call that any signal ends. Which signals the other calls wait
 * for is in the memory of the program, and no record has that. */
static bool is_any_signal(const struct why_walk *walk, const struct why_blocked *blocked)
{
	const char *name = blocked->facts.syscall;

	return name && (!strcmp(name, "pause") || !strcmp(name, "rt_sigsuspend")) &&
	       why_is_signalled(walk, blocked->thread, blocked->end_ts, &blocked->waker);
}

enum why_grade why_blocked_grade_of_waker(struct why_walk *walk, const struct why_blocked *blocked)
{
	if (wait_is_guess(&blocked->facts, blocked->kind) || blocked->waker.inferred)
		return WHY_GRADE_LIKELY;
	if (blocked->kind == WAIT_SOCKET || is_for_socket(blocked))
		return may_be_other_peer(walk, blocked) ? WHY_GRADE_LIKELY : WHY_GRADE_CERTAIN;
	/* Timers and devices end such waits as well. Without a stack, a wake-up by an interrupt in
	 * a system call on a socket looks as if the interrupted thread did it. */
	if (blocked->kind == WAIT_POLL && !blocked->waker.has_stack)
		return WHY_GRADE_LIKELY;
	if (blocked->kind == WAIT_SIGNAL && !is_any_signal(walk, blocked))
		return WHY_GRADE_LIKELY;
	if (!wait_has_futex(&blocked->facts, blocked->kind) ||
	    blocked->facts.futex == FUTEX_USE_ENDS)
		return WHY_GRADE_CERTAIN;
	/* The waiters for a lock shared by processes see it at other addresses. */
	if (blocked->facts.futex == FUTEX_USE_SHARED ||
	    (blocked->kind == WAIT_MUTEX && !(blocked->facts.args[1] & WAIT_FUTEX_PRIVATE)))
		return WHY_GRADE_LIKELY;
	return changed_hands(walk, blocked, blocked->kind == WAIT_FUTEX) ? WHY_GRADE_LIKELY
									 : WHY_GRADE_CERTAIN;
}
