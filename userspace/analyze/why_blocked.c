// SPDX-License-Identifier: Apache-2.0
/* Blocked time: what was waited for, who ended it, and on to what that thread did meanwhile. */
#include "analyze/why_walk.h"

#include <errno.h>
#include <signal.h>
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
	struct why_waiting waiting;
	struct why_ender ender;
	uint64_t until_ts; /* later events don't concern this wait */
	uint64_t end_ts;   /* when `ender` ended it, perhaps in a later wait for the same */
	bool by_signal;    /* a signal, which it did not wait for, ended it */
	bool first;        /* of the thread that is asked for: nobody waits for this one */
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

static bool is_on_path(const struct why_walk *walk, uint32_t thread)
{
	for (uint32_t i = 0; i < walk->depth; i++)
		if (walk->path[i].thread == thread)
			return true;
	return false;
}

/* On to a thread, for the same time. */
static int follow(struct why_walk *walk, const struct blocked *blocked, uint32_t thread,
		  enum why_grade grade)
{
	struct why_link link = {blocked->kind, at_most(blocked->grade, grade), blocked->object,
				blocked->end_ts};

	if (walk->depth >= WHY_DEPTH_MAX)
		return end_at(walk, blocked, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE);
	/* Who is blocked can't have woken anybody: these records contradict each other. */
	if (is_on_path(walk, thread))
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
		if (!blocked->object && model_is_own(walk->model, thread))
			return why_walk_add(walk, WHY_NOT_RECORDED,
					    at_most(blocked->grade, WHY_GRADE_LIKELY), thread,
					    walk->own_text);
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
	uint32_t holder = blocked->kind == WAIT_GIL ? gil_holder(walk, blocked) : MODEL_NONE;

	if (holder == MODEL_NONE)
		return end_at(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	blocked->ender.thread = holder;
	return woken_by(walk, blocked, WHY_GRADE_LIKELY);
}

static int socket_interrupt(struct why_walk *walk, struct blocked *blocked)
{
	uint32_t peer = why_socket_peer(walk, blocked->facts.object);

	if (peer != MODEL_NONE && peer != blocked->thread && model_is_traced(walk->model, peer))
		return follow(walk, blocked, peer, WHY_GRADE_LIKELY);
	return end_at(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, peer);
}

/* A timeout in ms may run out so much later: the kernel rounds it up, and may be busy. */
#define TIMEOUT_LATE_NS 3000000ull
#define POLL_TIMEOUT_ARG 2

/* Whether the wait ended when its timeout ran out; known for poll(2), in ms. */
static bool timeout_fits(const struct blocked *blocked)
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

/* An interrupt ended a wait for any of several things. The kernel's stack tells which one, or else
 * those things that an interrupt can signal. */
static int poll_interrupt(struct why_walk *walk, struct blocked *blocked)
{
	if (blocked->ender.hints & WHY_HINT_SOCKET)
		return end_at(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, MODEL_NONE);
	if (blocked->ender.hints & WHY_HINT_TIMER)
		return end_at(walk, blocked, WHY_TIMER, WHY_GRADE_CERTAIN, blocked->thread);
	if (polls_timer(blocked) || timeout_fits(blocked))
		return end_at(walk, blocked, WHY_TIMER, WHY_GRADE_LIKELY, blocked->thread);
	return end_at(walk, blocked, WHY_INTERRUPT, WHY_GRADE_LIKELY, MODEL_NONE);
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
		return poll_interrupt(walk, blocked);
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

/* ---- held by waffle-bpf ---- */

/* Captures before fanotify(7) stopped a new program by BPF, which has the program as the sender. */
static bool is_own_stop(const struct blocked *blocked, const struct model_signal *signal)
{
	return signal->signo == SIGSTOP && signal->code == SI_KERNEL &&
	       signal->sender == blocked->thread && signal->target == blocked->thread;
}

/* The kernel asks waffle-bpf before a new program is opened. */
static bool is_own_hold(const struct why_walk *walk, const struct blocked *blocked)
{
	const char *name = blocked->facts.syscall;

	return name && (!strcmp(name, "execve") || !strcmp(name, "execveat")) &&
	       !blocked->ender.interrupt && model_is_own(walk->model, blocked->ender.thread);
}

static int end_held(struct why_walk *walk, const struct blocked *blocked, uint32_t thread)
{
	return why_walk_add(walk, WHY_STOPPED, blocked->grade, thread, walk->held_text);
}

static int at_stop(struct why_walk *walk, const struct blocked *blocked)
{
	const struct model_signal *signal =
		why_stopper(walk->model, blocked->thread, blocked->interval->from_ts);

	if (signal && is_own_stop(blocked, signal))
		return end_held(walk, blocked, MODEL_NONE);
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

/* Requests that are waited for by these name neither a file nor a device. */
static bool is_request_call(const struct blocked *blocked)
{
	const char *name = blocked->facts.syscall;

	return name && (!strcmp(name, "io_uring_enter") || !strcmp(name, "io_getevents") ||
			!strcmp(name, "io_pgetevents"));
}

/* A request to a device ended a wait for any of several things; 1: that is not known. */
static int polled_device(struct why_walk *walk, struct blocked *blocked)
{
	uint64_t from = blocked->interval->from_ts, to = blocked->interval->to_ts;
	bool told = blocked->ender.hints & WHY_HINT_DISK;
	enum why_io read, write;

	if (!told &&
	    (!is_request_call(blocked) || blocked->ender.hints ||
	     model_is_traced(walk->model, blocked->ender.thread)) &&
	    !(blocked->ender.interrupt && is_request_call(blocked) &&
	      !(blocked->ender.hints & ~WHY_HINT_INTERRUPT)))
		return 1;
	read = why_io_during(walk->model, blocked->thread, from, to, false);
	write = why_io_during(walk->model, blocked->thread, from, to, true);
	if (!told && read != WHY_IO_OWN && write != WHY_IO_OWN)
		return 1;
	return end_at(walk, blocked, write > read ? WHY_DISK_WRITE : WHY_DISK_READ,
		      told && (read == WHY_IO_OWN) != (write == WHY_IO_OWN) ? WHY_GRADE_CERTAIN
									    : WHY_GRADE_LIKELY,
		      blocked->thread);
}

/* ---- ended by a signal, which it did not wait for ---- */

static int ended_by_signal(struct why_walk *walk, struct blocked *blocked)
{
	uint32_t sender = blocked->ender.thread;

	if (blocked->ender.interrupt || sender == MODEL_NONE)
		return end_at(walk, blocked, WHY_INTERRUPT, WHY_GRADE_LIKELY, MODEL_NONE);
	blocked->kind = WAIT_OTHER;
	if (!model_is_traced(walk->model, sender))
		return end_outside(walk, blocked, sender);
	return follow(walk, blocked, sender, WHY_GRADE_LIKELY);
}

static int at_sleep(struct why_walk *walk, const struct blocked *blocked)
{
	bool woken = blocked->ender.thread != MODEL_NONE && !blocked->ender.interrupt;

	/* Frozen while it slept, since when is not known. */
	if (woken && blocked->ender.hints & WHY_HINT_THAW)
		return end_at(walk, blocked, WHY_STOPPED, WHY_GRADE_LIKELY, blocked->ender.thread);
	/* A sleep is over by a timer's interrupt. */
	return end_at(walk, blocked, WHY_SLEEP, woken ? WHY_GRADE_LIKELY : WHY_GRADE_CERTAIN,
		      blocked->thread);
}

/* ---- a lock that went round ---- */

/* Limits of the other threads, and of their waits, that are checked; beyond them nothing is
 * certain. */
#define THREADS_MAX 256
#define OTHERS_MAX 256

/*
 * Whether the lock was released to another thread while this one waited. If so, the thread that
 * released it to this one may have acquired it during the wait. If not, it held the lock all the
 * time, since releasing a lock wakes a waiter. `by_others`: only releases by other threads count.
 */
static bool went_round(struct why_walk *walk, const struct blocked *blocked, bool by_others)
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
		if (other == blocked->thread || other == blocked->ender.thread)
			continue;
		i = why_intervals_after(&walk->intervals, other, own->from_ts);
		for (size_t end = i + OTHERS_MAX; i < of->intervals.len; i++) {
			const struct why_interval *wait = &of->intervals.data[i];

			if (wait->to_ts >= own->to_ts)
				break;
			if (i == end)
				return true;
			if (wait->state != WAFFLE_THREAD_BLOCKED || wait->syscall != own->syscall ||
			    wait->args >= model->syscall_args.len ||
			    model->syscall_args.data[wait->args] != address)
				continue;
			if (!by_others ||
			    why_ender_of(walk, other, i).thread != blocked->ender.thread)
				return true;
		}
	}
	return false;
}

#define FUTEX_PRIVATE 128u

/* A packet that arrives while a thread sends another one is not from that thread. */
static bool is_other_peer(struct why_walk *walk, const struct blocked *blocked)
{
	const struct model_thread *threads = walk->model->threads.data;
	uint32_t peer = why_socket_peer(walk, blocked->facts.object);

	return peer < walk->model->threads.len &&
	       blocked->ender.thread < walk->model->threads.len &&
	       threads[peer].pid != threads[blocked->ender.thread].pid;
}

/* What is known of who ended a wait is all that is known of what it did for it. */
static enum why_grade grade_of_waker(struct why_walk *walk, const struct blocked *blocked)
{
	if (wait_is_guess(&blocked->facts, blocked->kind))
		return WHY_GRADE_LIKELY;
	if (blocked->kind == WAIT_SOCKET)
		return is_other_peer(walk, blocked) ? WHY_GRADE_LIKELY : WHY_GRADE_CERTAIN;
	if (!wait_has_futex(&blocked->facts, blocked->kind) ||
	    blocked->facts.told == WAIT_TOLD_ENDS)
		return WHY_GRADE_CERTAIN;
	/* Those who wait for the lock of several processes are at other addresses. */
	if (blocked->facts.told == WAIT_TOLD_SHARED ||
	    (blocked->kind == WAIT_MUTEX && !(blocked->facts.args[1] & FUTEX_PRIVATE)))
		return WHY_GRADE_LIKELY;
	return went_round(walk, blocked, blocked->kind == WAIT_FUTEX) ? WHY_GRADE_LIKELY
								      : WHY_GRADE_CERTAIN;
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
	int result;

	if (is_own_hold(walk, blocked))
		return end_held(walk, blocked, blocked->ender.thread);
	if (blocked->by_signal)
		return ended_by_signal(walk, blocked);
	switch (blocked->kind) {
	case WAIT_STOPPED:
		return at_stop(walk, blocked);
	case WAIT_SLEEP:
		return at_sleep(walk, blocked);
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
	result = blocked->kind == WAIT_POLL ? polled_device(walk, blocked) : 1;
	if (result <= 0)
		return result;
	if (blocked->ender.interrupt)
		return ended_by_interrupt(walk, blocked);
	return woken_by(walk, blocked, grade_of_waker(walk, blocked));
}

/* ---- the wait that it is a part of ---- */

/* Whether the thread that ends the series waits for this one meanwhile. Then this one did work in
 * between, and the present wake-up was not in vain. */
static bool waits_for_it(struct why_walk *walk, const struct blocked *blocked, uint32_t thread)
{
	size_t index = why_intervals_after(&walk->intervals, thread, blocked->to - 1);
	struct why_ender ender;

	if (index >= walk->intervals.threads[thread].intervals.len ||
	    walk->intervals.threads[thread].intervals.data[index].state != WAFFLE_THREAD_BLOCKED ||
	    walk->intervals.threads[thread].intervals.data[index].from_ts >= blocked->to)
		return false;
	ender = why_ender_of(walk, thread, index);
	return ender.thread == blocked->thread && !ender.interrupt;
}

/* The thread of an event loop, asked for its own time and in no span: it waits for whatever comes
 * next and then handles it, so each of its waits has an end of its own. */
static bool is_idle_loop(const struct why_walk *walk, const struct blocked *blocked)
{
	uint64_t ignored;

	return blocked->first && blocked->kind == WAIT_POLL &&
	       why_intervals_span(&walk->intervals, blocked->thread, blocked->interval->from_ts,
				  &ignored) == MODEL_NONE;
}

/* A waker has not ended the wait if the thread then waits again for the same thing. */
static void find_end(struct why_walk *walk, struct blocked *blocked, struct why_step *step)
{
	const struct why_series *series = why_series_of(walk, &blocked->waiting, blocked->thread,
							blocked->index, blocked->until_ts);
	bool thread = series->ender.thread < walk->model->threads.len && !series->ender.interrupt;

	if (why_waits_for_others(walk, &blocked->waiting, blocked->thread, blocked->index,
				 blocked->until_ts))
		blocked->grade = at_most(blocked->grade, WHY_GRADE_LIKELY);
	if (is_idle_loop(walk, blocked)) {
		blocked->by_signal = why_by_signal(walk, blocked->thread, blocked->interval->to_ts,
						   &blocked->ender, blocked->kind);
		return;
	}
	if (series->last > blocked->index && thread &&
	    (is_on_path(walk, series->ender.thread) ||
	     waits_for_it(walk, blocked, series->ender.thread))) {
		blocked->grade = at_most(blocked->grade, WHY_GRADE_LIKELY);
		blocked->by_signal = why_by_signal(walk, blocked->thread, blocked->interval->to_ts,
						   &blocked->ender, blocked->kind);
		return;
	}
	blocked->by_signal = series->by_signal;
	if (series->last == blocked->index && series->first == blocked->index)
		return;
	/* What it waited for may have come while it was awake, and woke nobody. */
	if (blocked->kind == WAIT_SIGNAL)
		blocked->grade = at_most(blocked->grade, WHY_GRADE_LIKELY);
	blocked->ender = series->ender;
	blocked->end_ts =
		walk->intervals.threads[blocked->thread].intervals.data[series->last].to_ts;
	step->series_first = (uint32_t)series->first;
	step->series_last = (uint32_t)series->last;
	if (series->last > blocked->index)
		step->later_ts = why_switched_in(walk, blocked->thread, series->last);
}

static const char *variable_at(const struct why_walk *walk, uint32_t thread, uint64_t ts,
			       uint64_t address)
{
	const struct why_names *names = walk->names;

	if (!names)
		return NULL;
	return names->variable(names->arg, walk->model->threads.data[thread].pid, ts, address);
}

/* Threads wait for the same things again and again, so the texts are cached. */
static uint32_t known_text(struct why_walk *walk, const struct wait_facts *facts,
			   enum wait_kind kind)
{
	struct why_object_text wanted = {.object = facts->object}, *known;

	if (!facts->object) {
		if (facts->variable || !wait_has_futex(facts, kind))
			return wait_object_text(walk->why->texts, facts, kind);
		wanted.address = wait_futex_address(facts);
	}
	known = &walk->object_texts[((uintptr_t)wanted.object ^ wanted.address) / 8 %
				    WHY_OBJECT_TEXTS];
	if (known->object != wanted.object || known->address != wanted.address || !known->text) {
		wanted.text = wait_object_text(walk->why->texts, facts, kind);
		if (wanted.text == STRTAB_NONE)
			return STRTAB_NONE;
		*known = wanted;
	}
	return known->text;
}

/* The text of what is waited for; 0: not known. */
static uint32_t object_of(struct why_walk *walk, const struct blocked *blocked, uint64_t ts)
{
	const struct wait_facts *facts = &blocked->facts;
	uint32_t pid = walk->model->threads.data[blocked->thread].pid;

	if (!facts->object && facts->args && facts->syscall && wait_has_mapping(facts->syscall))
		return why_mapped_file(walk, pid, facts->args[0], ts);
	return known_text(walk, facts, blocked->kind);
}

/* Whether a call that waits for a GPU does so in this wait: its driver may have to wait for other
 * things as well. */
static bool is_of_call(const struct blocked *blocked)
{
	if (blocked->kind == WAIT_STOPPED || blocked->kind == WAIT_FAULT ||
	    wait_told_lock(blocked->facts.told))
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
		.until_ts = link && link->until_ts ? link->until_ts : walk->end_ts,
		.grade = link ? link->grade : WHY_GRADE_CERTAIN,
		.first = !link,
	};
	struct why_step *step;
	bool of_call;
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
	step->object = blocked.object;
	step->meaning = blocked.stack.text;
	step->in_ts = why_switched_in(walk, thread, index);
	if (blocked.wait)
		step->wait = (uint32_t)(blocked.wait - walk->model->waits.data);
	blocked.end_ts = blocked.interval->to_ts;
	blocked.waiting = (struct why_waiting){
		.kind = blocked.kind,
		.uninterruptible = blocked.facts.task_state & WAFFLE_TASK_UNINTERRUPTIBLE,
		.ends = blocked.facts.told == WAIT_TOLD_ENDS,
	};
	of_call = await->sync != MODEL_NONE && is_of_call(&blocked);
	if (!of_call)
		find_end(walk, &blocked, step);
	step->by = blocked.ender.thread;
	step->interrupt = blocked.ender.interrupt;
	if (of_call)
		result = walk_call(walk, &blocked, await);
	else if (blocked.kind != WAIT_STOPPED)
		result = walk_meaning(walk, &blocked);
	if (result > 0)
		result = walk_kind(walk, &blocked);
	walk->depth--;
	return result;
}
