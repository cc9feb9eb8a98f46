// SPDX-License-Identifier: Apache-2.0
/* Blocked time: what was waited for, who ended it, and on to what that thread did meanwhile. */
#include "analyze/why_walk.h"

#include <errno.h>
#include <string.h>

/* A stretch of a blocked interval, which is the last step of the path. */
struct blocked {
	uint32_t thread;
	const struct why_interval *interval;
	size_t index;
	uint64_t from, to;
	const struct model_wait *wait;
	struct wait_facts facts;
	enum wait_kind kind;
	struct why_stack stack;
	struct why_ender ender;
	uint32_t object;
	enum why_grade grade; /* of the way to here, with this wait */
};

static enum why_grade at_most(enum why_grade a, enum why_grade b)
{
	return a < b ? a : b;
}

static int end_at(struct why_walk *walk, const struct blocked *blocked, enum why_cause cause,
		  enum why_grade grade, uint32_t culprit)
{
	return why_walk_add(walk, cause, at_most(blocked->grade, grade), culprit, blocked->object);
}

/* On to a thread, for the same time. */
static int follow(struct why_walk *walk, const struct blocked *blocked, uint32_t thread,
		  enum why_grade grade)
{
	struct why_link link = {blocked->kind, at_most(blocked->grade, grade), blocked->object};

	if (walk->depth >= WHY_DEPTH_MAX)
		return end_at(walk, blocked, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE);
	/* Who is blocked can't have woken anybody: these records contradict each other. */
	for (uint32_t i = 0; i < walk->depth; i++)
		if (walk->path[i].thread == thread)
			return end_at(walk, blocked, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE);
	return why_walk_time(walk, thread, blocked->from, blocked->to, &link);
}

/* ---- woken by a thread ---- */

/* Who came from outside the recorded threads. */
static int end_outside(struct why_walk *walk, const struct blocked *blocked, uint32_t thread)
{
	switch (blocked->kind) {
	case WAIT_PIPE:
		return end_at(walk, blocked, WHY_PIPE, WHY_GRADE_LIKELY, thread);
	case WAIT_SOCKET:
		return end_at(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, thread);
	case WAIT_CHILD:
		return end_at(walk, blocked, WHY_PROCESS_EXIT, WHY_GRADE_LIKELY, thread);
	default:
		return end_at(walk, blocked, WHY_NOT_RECORDED, WHY_GRADE_LIKELY, thread);
	}
}

/* A child's last thread ends the wait, its main thread did what was waited for. */
static uint32_t main_thread_of(const struct model *model, uint32_t thread)
{
	for (size_t i = 0; i < model->processes.len; i++)
		if (model->processes.data[i].pid == model->threads.data[thread].pid &&
		    model_is_traced(model, model->processes.data[i].main_thread))
			return model->processes.data[i].main_thread;
	return thread;
}

/* Whether it waits for a timer, perhaps among other things. */
static bool polls_timer(const struct blocked *blocked)
{
	return blocked->kind == WAIT_POLL && blocked->facts.object &&
	       strstr(blocked->facts.object->detail, "[timerfd]");
}

/* Whether only who ended it tells what it waited for. */
static bool is_told_by_end(const struct blocked *blocked)
{
	return blocked->kind == WAIT_POLL ||
	       (blocked->kind == WAIT_OTHER && !blocked->facts.fault && blocked->facts.syscall &&
		wait_has_descriptor(blocked->facts.syscall));
}

static int woken_by(struct why_walk *walk, struct blocked *blocked, enum why_grade grade)
{
	uint32_t thread = blocked->ender.thread;
	bool told_by_end = is_told_by_end(blocked);

	/* An interrupt in a system call whose stack was not taken looks like a thread's doing. */
	if (!model_is_traced(walk->model, thread) && !blocked->ender.hints && polls_timer(blocked))
		return end_at(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	/* A worker of the kernel passes on what the other end of a terminal has written. */
	if (told_by_end && !model_is_traced(walk->model, thread) &&
	    blocked->ender.hints & WHY_HINT_TERMINAL)
		return end_at(walk, blocked, WHY_PIPE, WHY_GRADE_LIKELY, MODEL_NONE);
	if (told_by_end) {
		if (blocked->ender.hints & WHY_HINT_PIPE)
			blocked->kind = WAIT_PIPE;
		else if (blocked->ender.hints & WHY_HINT_SOCKET)
			blocked->kind = WAIT_SOCKET;
	}
	if (!model_is_traced(walk->model, thread))
		return end_outside(walk, blocked, thread);
	if (blocked->kind == WAIT_CHILD)
		thread = main_thread_of(walk->model, thread);
	return follow(walk, blocked, thread, grade);
}

/* ---- ended by an interrupt ---- */

/* A condition variable of the C library has two futexes, side by side, that take turns. */
#define CONDITION_TURN 4

/* Whether the thread waits on for the same when it waits there. */
static bool waits_on(const struct why_walk *walk, const struct blocked *blocked,
		     const struct why_interval *next)
{
	const struct model *model = walk->model;
	uint64_t now, then = blocked->facts.args[0];

	if (next->args >= model->syscall_args.len)
		return false;
	now = model->syscall_args.data[next->args];
	return (now > then ? now - then : then - now) <= CONDITION_TURN;
}

/* Of waits at the same futex, one after the other, the one that a thread ended. */
static bool series_ender(struct why_walk *walk, const struct blocked *blocked,
			 struct why_ender *ender)
{
	const struct why_thread *of = &walk->intervals.threads[blocked->thread];

	for (size_t i = blocked->index + 1; i < of->intervals.len; i++) {
		const struct why_interval *next = &of->intervals.data[i];

		if (next->from_ts >= walk->end_ts)
			return false;
		if (next->state != WAFFLE_THREAD_BLOCKED)
			continue;
		if (next->syscall != blocked->interval->syscall)
			return false;
		if (!waits_on(walk, blocked, next)) {
			/* The interpreter lock has a mutex of its own. */
			if (blocked->kind == WAIT_GIL)
				continue;
			return false;
		}
		*ender = why_ender_of(walk, blocked->thread, i);
		if (ender->thread == MODEL_NONE || ender->interrupt)
			continue;
		walk->path[walk->depth - 1].later_ts = why_switched_in(walk, blocked->thread, i);
		return true;
	}
	return false;
}

static uint64_t ran_ns(const struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	uint64_t sum = 0;

	for (size_t i = why_intervals_after(&walk->intervals, thread, from);
	     i < of->intervals.len && of->intervals.data[i].from_ts < to; i++) {
		const struct why_interval *interval = &of->intervals.data[i];

		if (interval->state == WAFFLE_THREAD_RUNNING)
			sum += (interval->to_ts < to ? interval->to_ts : to) -
			       (interval->from_ts > from ? interval->from_ts : from);
	}
	return sum;
}

/* The holder may let go just when the waiter looks for itself: nobody woke it. Whichever thread
 * of the process ran most of the time will have held the lock. */
static uint32_t gil_holder(const struct why_walk *walk, const struct blocked *blocked)
{
	const struct model *model = walk->model;
	uint32_t found = MODEL_NONE;
	uint64_t most = 0;

	for (uint32_t i = 0; i < model->threads.len; i++) {
		uint64_t ns;

		if (i == blocked->thread || !model->threads.data[i].traced ||
		    model->threads.data[i].pid != model->threads.data[blocked->thread].pid)
			continue;
		ns = ran_ns(walk, i, blocked->from, blocked->to);
		if (ns > most) {
			most = ns;
			found = i;
		}
	}
	return found;
}

static int futex_timeout(struct why_walk *walk, struct blocked *blocked)
{
	struct why_ender ender = {.thread = MODEL_NONE};

	if (!blocked->facts.args || !series_ender(walk, blocked, &ender))
		ender.thread = blocked->kind == WAIT_GIL ? gil_holder(walk, blocked) : MODEL_NONE;
	if (ender.thread == MODEL_NONE)
		return end_at(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	blocked->ender.thread = ender.thread;
	return woken_by(walk, blocked, WHY_GRADE_LIKELY);
}

static int socket_interrupt(struct why_walk *walk, struct blocked *blocked)
{
	uint32_t peer = why_socket_peer(walk, blocked->facts.object);

	if (peer != MODEL_NONE && peer != blocked->thread && model_is_traced(walk->model, peer))
		return follow(walk, blocked, peer, WHY_GRADE_LIKELY);
	return end_at(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, peer);
}

static int ended_by_interrupt(struct why_walk *walk, struct blocked *blocked)
{
	switch (blocked->kind) {
	case WAIT_MUTEX:
	case WAIT_FUTEX:
	case WAIT_GIL:
		return futex_timeout(walk, blocked);
	case WAIT_SOCKET:
		return socket_interrupt(walk, blocked);
	case WAIT_POLL:
		if (blocked->ender.hints & WHY_HINT_SOCKET)
			return end_at(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, MODEL_NONE);
		return end_at(walk, blocked, WHY_TIMER,
			      blocked->ender.hints & WHY_HINT_TIMER ? WHY_GRADE_CERTAIN
								    : WHY_GRADE_LIKELY,
			      blocked->thread);
	case WAIT_SIGNAL:
		return end_at(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	default:
		return end_at(walk, blocked, WHY_INTERRUPT, WHY_GRADE_LIKELY, MODEL_NONE);
	}
}

/* ---- devices ---- */

/* A thread that is known to have let it go on held a lock of the file. */
static bool held_by_thread(const struct why_walk *walk, const struct blocked *blocked)
{
	const struct model_wake *wake =
		model_wake_at(walk->model, blocked->thread, blocked->interval->to_ts);

	return wake && wake->kernel_stack && !blocked->ender.interrupt &&
	       model_is_traced(walk->model, blocked->ender.thread);
}

static int at_device(struct why_walk *walk, struct blocked *blocked, bool write)
{
	enum why_io io = why_io_during(walk->model, blocked->thread, blocked->interval->from_ts,
				       blocked->interval->to_ts, write);

	if (io != WHY_IO_OWN && held_by_thread(walk, blocked)) {
		blocked->kind = WAIT_MUTEX;
		return woken_by(walk, blocked, WHY_GRADE_LIKELY);
	}
	return end_at(walk, blocked, write ? WHY_DISK_WRITE : WHY_DISK_READ,
		      io == WHY_IO_NONE ? WHY_GRADE_LIKELY : WHY_GRADE_CERTAIN, blocked->thread);
}

static int at_fault(struct why_walk *walk, struct blocked *blocked)
{
	const struct model *model = walk->model;
	const struct model_fault *fault = why_fault_during(
		model, blocked->thread, blocked->interval->from_ts, blocked->interval->to_ts);
	uint64_t address = blocked->wait ? blocked->wait->address : 0;
	bool read = fault && fault->major;

	/* A lock of the address space, most likely. */
	if (!read && held_by_thread(walk, blocked)) {
		blocked->kind = WAIT_OTHER;
		return woken_by(walk, blocked, WHY_GRADE_LIKELY);
	}
	/* Somebody else has begun to read the page. */
	if (!read && blocked->facts.task_state & WAFFLE_TASK_UNINTERRUPTIBLE)
		read = why_io_during(model, blocked->thread, blocked->interval->from_ts,
				     blocked->interval->to_ts, false) != WHY_IO_NONE;
	if (!address && fault)
		address = fault->address;
	if (!blocked->object)
		blocked->object = why_mapped_file(walk, model->threads.data[blocked->thread].pid,
						  address, blocked->interval->from_ts);
	if (blocked->object == STRTAB_NONE)
		return -ENOMEM;
	walk->path[walk->depth - 1].object = blocked->object;
	return end_at(walk, blocked, WHY_PAGE_FAULT_MAJOR,
		      read ? WHY_GRADE_CERTAIN : WHY_GRADE_LIKELY, blocked->thread);
}

static int at_stop(struct why_walk *walk, const struct blocked *blocked)
{
	const struct model_signal *signal =
		why_stopper(walk->model, blocked->thread, blocked->interval->from_ts);

	if (signal && signal->sender != MODEL_NONE)
		return end_at(walk, blocked, WHY_STOPPED, WHY_GRADE_CERTAIN, signal->sender);
	return end_at(walk, blocked, WHY_STOPPED, WHY_GRADE_LIKELY,
		      blocked->ender.interrupt ? MODEL_NONE : blocked->ender.thread);
}

/* In D state without a file: the requests of the thread tell, if there are any. */
static int at_unknown_device(struct why_walk *walk, struct blocked *blocked)
{
	uint64_t from = blocked->interval->from_ts, to = blocked->interval->to_ts;

	for (int write = 0; write < 2; write++)
		if (why_io_during(walk->model, blocked->thread, from, to, write) == WHY_IO_OWN)
			return at_device(walk, blocked, write);
	return blocked->ender.interrupt ? ended_by_interrupt(walk, blocked)
					: woken_by(walk, blocked, WHY_GRADE_LIKELY);
}

/* ---- what the kernel's stack decides ---- */

static int end_at_object(struct why_walk *walk, struct blocked *blocked, const char *object,
			 enum why_cause cause)
{
	if (!blocked->object)
		blocked->object = strtab_add(walk->why->texts, object, strlen(object));
	return end_at(walk, blocked, cause, WHY_GRADE_CERTAIN, blocked->thread);
}

/* On to who ended the wait, of which the stack says what he did. */
static int follow_ender(struct why_walk *walk, struct blocked *blocked, enum wait_kind kind)
{
	const struct meaning_row *row = blocked->stack.meaning.rows[MEANING_WAIT];

	blocked->kind = kind;
	if (kind == WAIT_MUTEX && !blocked->object) {
		blocked->object = strtab_add(walk->why->texts, row->text, strlen(row->text));
		if (blocked->object == STRTAB_NONE)
			return -ENOMEM;
	}
	return woken_by(walk, blocked, WHY_GRADE_CERTAIN);
}

/* What a rule of the table of stacks stands for; 1: it does not decide this wait. */
static int walk_meaning(struct why_walk *walk, struct blocked *blocked)
{
	bool thread = blocked->ender.thread != MODEL_NONE && !blocked->ender.interrupt;
	bool fault = blocked->kind == WAIT_FAULT;

	switch (blocked->stack.meaning.rule) {
	case MEANING_LOCK:
		return thread ? follow_ender(walk, blocked, WAIT_MUTEX) : 1;
	case MEANING_THREAD:
		return thread ? follow_ender(walk, blocked, WAIT_OTHER) : 1;
	case MEANING_CHILD:
		return thread ? follow_ender(walk, blocked, WAIT_CHILD) : 1;
	case MEANING_STOPPED:
		return end_at(walk, blocked, WHY_STOPPED, WHY_GRADE_CERTAIN,
			      thread ? blocked->ender.thread : MODEL_NONE);
	case MEANING_GPU:
		return end_at(walk, blocked, WHY_GPU, WHY_GRADE_LIKELY, blocked->thread);
	case MEANING_SERVER:
		return end_at(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, MODEL_NONE);
	case MEANING_READ:
		return fault ? 1 : at_device(walk, blocked, false);
	case MEANING_WRITE:
		return at_device(walk, blocked, true);
	case MEANING_DIRTY:
		return end_at(walk, blocked, WHY_DISK_WRITE, WHY_GRADE_CERTAIN, blocked->thread);
	case MEANING_SWAP:
		return end_at_object(walk, blocked, "swap", WHY_PAGE_FAULT_MAJOR);
	case MEANING_RECLAIM:
		return fault && !why_fault_during(walk->model, blocked->thread, blocked->from,
						  blocked->to)
			       ? end_at(walk, blocked, WHY_PAGE_FAULT_MINOR, WHY_GRADE_LIKELY,
					blocked->thread)
			       : 1;
	default:
		return 1;
	}
}

static int walk_kind(struct why_walk *walk, struct blocked *blocked)
{
	bool known = blocked->ender.thread != MODEL_NONE || blocked->ender.interrupt;

	switch (blocked->kind) {
	case WAIT_STOPPED:
		return at_stop(walk, blocked);
	case WAIT_SLEEP:
		return end_at(walk, blocked, WHY_SLEEP, WHY_GRADE_CERTAIN, blocked->thread);
	case WAIT_FAULT:
		return at_fault(walk, blocked);
	case WAIT_FILE_READ:
	case WAIT_FILE_WRITE:
		return at_device(walk, blocked, blocked->kind == WAIT_FILE_WRITE);
	case WAIT_TIMER:
		return end_at(walk, blocked, WHY_TIMER, WHY_GRADE_CERTAIN, blocked->thread);
	case WAIT_GPU:
		return end_at(walk, blocked, WHY_GPU, WHY_GRADE_CERTAIN, blocked->thread);
	default:
		break;
	}
	if (!known && blocked->kind == WAIT_GIL)
		return futex_timeout(walk, blocked);
	if (!known)
		return end_at(walk, blocked, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE);
	if (blocked->facts.task_state & WAFFLE_TASK_UNINTERRUPTIBLE)
		return at_unknown_device(walk, blocked);
	if (blocked->ender.interrupt)
		return ended_by_interrupt(walk, blocked);
	return woken_by(walk, blocked,
			wait_is_guess(&blocked->facts, blocked->kind) ? WHY_GRADE_LIKELY
								      : WHY_GRADE_CERTAIN);
}

static const char *variable_at(const struct why_walk *walk, uint32_t thread, uint64_t ts,
			       uint64_t address)
{
	const struct why_names *names = walk->names;

	if (!names)
		return NULL;
	return names->variable(names->arg, walk->model->threads.data[thread].pid, ts, address);
}

/* The text of what is waited for; 0: not known. */
static uint32_t object_of(struct why_walk *walk, const struct blocked *blocked, uint64_t ts)
{
	const struct wait_facts *facts = &blocked->facts;
	uint32_t pid = walk->model->threads.data[blocked->thread].pid;

	if (!facts->object && facts->args && facts->syscall && wait_has_mapping(facts->syscall))
		return why_mapped_file(walk, pid, facts->args[0], ts);
	return wait_object_text(walk->why->texts, facts, blocked->kind);
}

/* Whether a call that waits for a GPU does so in this wait: its driver may have to wait for other
 * things as well. */
static bool is_of_call(const struct blocked *blocked)
{
	if (blocked->kind == WAIT_STOPPED || blocked->kind == WAIT_FAULT ||
	    blocked->facts.told == WAIT_TOLD_LOCK)
		return false;
	return !(blocked->facts.task_state & WAFFLE_TASK_UNINTERRUPTIBLE) ||
	       blocked->kind == WAIT_GPU || blocked->stack.meaning.rule == MEANING_GPU;
}

/* Which thread runs what a stream runs of the program is not in the records: likely the one of the
 * process that ends the wait. */
static int walk_call(struct why_walk *walk, struct blocked *blocked, const struct why_await *await)
{
	const struct model *model = walk->model;
	uint32_t thread = blocked->ender.thread, object;

	if (blocked->ender.interrupt || !model_is_traced(model, thread) ||
	    model->threads.data[thread].pid != model->threads.data[blocked->thread].pid)
		return why_gpu_walk(walk, await, blocked->grade);
	object = why_gpu_host(walk, await);
	if (!object)
		return why_gpu_walk(walk, await, blocked->grade);
	blocked->kind = WAIT_OTHER;
	blocked->object = object;
	return follow(walk, blocked, thread, WHY_GRADE_LIKELY);
}

int why_walk_blocked(struct why_walk *walk, uint32_t thread, size_t index, uint64_t from,
		     uint64_t to, const struct why_link *link, const struct why_await *await)
{
	struct blocked blocked = {
		.thread = thread,
		.interval = &walk->intervals.threads[thread].intervals.data[index],
		.index = index,
		.from = from,
		.to = to,
		.ender = why_ender_of(walk, thread, index),
		.grade = link ? link->grade : WHY_GRADE_CERTAIN,
	};
	struct why_step *step;
	int result = 1;

	blocked.facts = why_facts_of(walk, thread, blocked.interval, &blocked.wait);
	if (wait_has_futex(&blocked.facts, WAIT_FUTEX)) {
		blocked.facts.told = why_futex_told(walk, thread, blocked.interval, blocked.wait);
		blocked.facts.variable =
			variable_at(walk, thread, from, wait_futex_address(&blocked.facts));
	}
	blocked.kind = wait_kind_of(&blocked.facts);
	blocked.object = object_of(walk, &blocked, from);
	if (blocked.object == STRTAB_NONE ||
	    (blocked.wait && !why_stack_meaning(walk, blocked.wait->kernel_stack, &blocked.stack)))
		return -ENOMEM;
	step = why_walk_push(walk, thread, WAFFLE_THREAD_BLOCKED, from, to);
	step->syscall = blocked.interval->syscall;
	step->args = blocked.interval->args;
	step->task_state = blocked.interval->task_state;
	step->by = blocked.ender.thread;
	step->interrupt = blocked.ender.interrupt;
	step->object = blocked.object;
	step->meaning = blocked.stack.text;
	step->in_ts = why_switched_in(walk, thread, index);
	if (blocked.wait)
		step->wait = (uint32_t)(blocked.wait - walk->model->waits.data);
	if (await->sync != MODEL_NONE && is_of_call(&blocked))
		result = walk_call(walk, &blocked, await);
	else if (blocked.kind != WAIT_STOPPED)
		result = walk_meaning(walk, &blocked);
	if (result > 0)
		result = walk_kind(walk, &blocked);
	walk->depth--;
	return result;
}
