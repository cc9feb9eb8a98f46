// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/enrich.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/address_space/processes.h"
#include "capture/enrich/cpu_users_internal.h"
#include "capture/enrich/limits_internal.h"
#include "capture/enrich/lock_holders_internal.h"
#include "capture/enrich/object_names_internal.h"
#include "capture/enrich/open_waits_internal.h"
#include "capture/enrich/stack_numbers_internal.h"
#include "capture/enrich/stacks_internal.h"
#include "capture/enrich/thread_names_internal.h"
#include "target/loader/needed.h"
#include "util/clock.h"
#include "util/map.h"

#define WOKEN_MAX (1u << 19)
#define NAMES_ALL_NS 500000000ull /* limit of the last search for names */

struct enrich {
	struct kernel *kernel;
	struct address_spaces *spaces;
	struct processes *processes;
	struct object_names *objects;
	struct stacks *span_stacks; /* NULL: stacks of spans are not recorded */
	struct thread_names *thread_names;
	struct stack_numbers *stack_numbers;
	struct open_waits *open_waits;
	struct limits *limits;
	struct cpu_users *cpu_users;
	struct lock_holders *lock_holders;
	struct map woken; /* tid of a thread that an interrupt woke → flags of its switch */
};

/* *enrich has what was opened, also after a failure, so that enrich_close() can close it. */
static int modules_open(struct enrich *enrich, struct store_writer *writer, struct error *err)
{
	struct stack_numbers_uses uses = {
		.kernel = enrich->kernel, .writer = writer, .spaces = enrich->spaces};
	int result = object_names_open(&enrich->objects, writer, err);

	if (!result && kernel_stacks_wanted(enrich->kernel))
		result = stacks_open(&enrich->span_stacks, enrich->kernel, writer, err);
	uses.stacks = enrich->span_stacks;
	enrich->thread_names = thread_names_open(enrich->kernel, enrich->span_stacks);
	enrich->open_waits =
		open_waits_open(enrich->kernel, enrich->processes, enrich->span_stacks);
	enrich->limits = limits_open();
	enrich->cpu_users = cpu_users_open();
	enrich->lock_holders = lock_holders_open();
	if (!result && (!enrich->open_waits || !enrich->thread_names || !enrich->limits ||
			!enrich->cpu_users || !enrich->lock_holders))
		result = error_set(err, ENOMEM, "out of memory");
	return result ?: stack_numbers_open(&enrich->stack_numbers, &uses, err);
}

int enrich_open(struct enrich **enrich, struct kernel *kernel, struct address_spaces *spaces,
		struct store_writer *writer, struct error *err)
{
	struct enrich *made = calloc(1, sizeof(*made));
	int result;

	*enrich = NULL;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	made->kernel = kernel;
	made->spaces = spaces;
	made->processes = address_spaces_processes(spaces);
	result = modules_open(made, writer, err);
	if (result) {
		enrich_close(made);
		return result;
	}
	*enrich = made;
	return 0;
}

void enrich_close(struct enrich *enrich)
{
	if (!enrich)
		return;
	stack_numbers_close(enrich->stack_numbers);
	object_names_close(enrich->objects);
	thread_names_close(enrich->thread_names);
	stacks_free(enrich->span_stacks);
	open_waits_close(enrich->open_waits);
	limits_close(enrich->limits);
	cpu_users_close(enrich->cpu_users);
	lock_holders_close(enrich->lock_holders);
	map_free(&enrich->woken);
	free(enrich);
}

uint64_t enrich_stacks_left_out(const struct enrich *enrich)
{
	return stack_numbers_left_out(enrich->stack_numbers);
}

uint64_t enrich_stacks_late(const struct enrich *enrich)
{
	return stack_numbers_late(enrich->stack_numbers);
}

uint64_t enrich_stacks_early(const struct enrich *enrich)
{
	return enrich->span_stacks ? stacks_early(enrich->span_stacks) : 0;
}

const char *enrich_stack_warning(const struct enrich *enrich)
{
	return enrich->span_stacks ? stacks_warning(enrich->span_stacks) : NULL;
}

/* ---- the stages of a record ---- */

int enrich_unwinding(struct enrich *enrich, const struct waffle_rec *rec, struct error *err)
{
	const struct waffle_rec_fork *fork = (const struct waffle_rec_fork *)rec;
	pid_t pid = (pid_t)((const struct waffle_rec_exit *)rec)->tgid;

	if (!enrich->span_stacks)
		return 0;
	if (rec->kind == WAFFLE_REC_FORK)
		return stacks_fork(enrich->span_stacks, (pid_t)fork->tgid, (pid_t)fork->child_tgid,
				   rec->ts, err);
	if (rec->kind == WAFFLE_REC_EXEC || rec->tid == (uint32_t)pid)
		stacks_forget(enrich->span_stacks, pid, rec->ts);
	return 0;
}

/* The inverse of wait_polled() in bpf/wait.h. */
static int64_t polled_object(struct enrich *enrich, struct waffle_rec_wait *wait, struct error *err)
{
	const int fds[WAFFLE_POLLED_MAX] = {(int)wait->object, (int)(uint32_t)wait->ino,
					    (int)(wait->ino >> 32), (int)(wait->address >> 32)};
	uint32_t count = (uint32_t)wait->address;
	pid_t pid = (pid_t)processes_readable(enrich->processes, wait->rec.tid);
	int64_t object = 0;

	if (pid)
		object = object_names_polled(enrich->objects, pid, fds, count, err);
	wait->object = object > 0 ? (uint32_t)object : 0;
	wait->dev = 0;
	wait->ino = 0;
	wait->address = 0;
	return object;
}

/* Whether a wait may be for a disk: those have a stack of the kernel, except in io_uring_enter(2),
 * where a thread waits for all of its requests. */
static bool may_be_for_disk(const struct waffle_rec_wait *wait)
{
	bool file = wait->ino && wait->dev != WAFFLE_WAIT_POLLED;

	return wait->kernel_stack ||
	       (file && !memcmp(&wait->address, "[io_uring]", sizeof(wait->address)));
}

/* The controller of a cgroup with a limit (WAFFLE_IO_LIMIT_*). */
static const char *controller_of(uint32_t kind)
{
	if (kind & WAFFLE_IO_LIMIT_PIDS)
		return "pids";
	if (kind & WAFFLE_IO_LIMIT_WEIGHT)
		return "cpu";
	return kind & WAFFLE_IO_LIMIT_FREEZER ? "freezer" : "blkio";
}

/* Reads the limits of disks of the process that waited, and names their cgroups. */
static int disk_limits_read(struct enrich *enrich, const struct waffle_rec_wait *wait,
			    struct error *err)
{
	uint32_t pid =
		may_be_for_disk(wait) ? processes_readable(enrich->processes, wait->rec.tid) : 0;
	struct cgroup_io_limit found[LIMITS_OF_PROCESS];
	size_t count = pid ? limits_process(enrich->limits, pid, found) : 0;
	int64_t number = 0;

	for (size_t i = 0; i < count && number >= 0; i++)
		number = object_names_cgroup(enrich->objects, (pid_t)pid, found[i].cgroup,
					     controller_of(found[i].kind), err);
	return number < 0 ? (int)number : 0;
}

/* The socket, with what it has sent again during the wait. 0: such a name is not known. */
static int64_t resent_object(struct enrich *enrich, pid_t pid, int fd, const struct file_key *key,
			     uint16_t resent, struct error *err)
{
	return resent == WAFFLE_RESENT_AMONG
		       ? object_names_among(enrich->objects, pid, fd, key, err)
		       : object_names_resent(enrich->objects, key, resent);
}

/* The descriptor may be closed soon, so it is looked up first. */
static int64_t wait_object(struct enrich *enrich, struct waffle_rec_wait *wait, struct error *err)
{
	struct file_key key = {.ino = wait->ino, .dev = wait->dev};
	int fd = (int)wait->object;
	char kind[sizeof(wait->address) + 1] = "";
	int64_t object = 0;
	pid_t pid;

	if (wait->dev == WAFFLE_WAIT_POLLED)
		return polled_object(enrich, wait, err);
	wait->object = 0;
	if (!wait->ino) /* a page fault */
		return 0;
	pid = (pid_t)processes_readable(enrich->processes, wait->rec.tid);
	if (wait->address & WAFFLE_WAIT_RESENT)
		object = resent_object(enrich, pid, fd, &key, (uint16_t)wait->address, err);
	else
		memcpy(kind, &wait->address, sizeof(wait->address));
	wait->address = 0;
	if (!object)
		object = object_names_file(enrich->objects, pid, fd, &key, kind, err);
	wait->object = object > 0 ? (uint32_t)object : 0;
	return object;
}

static int64_t memory_object(struct enrich *enrich, struct waffle_rec_memory *memory,
			     struct error *err)
{
	limits_memory(enrich->limits, memory);
	return object_names_cgroup(enrich->objects, (pid_t)memory->rec.tid, memory->cgroup,
				   "memory", err);
}

static int64_t quota_object(struct enrich *enrich, const struct waffle_rec_quota *quota,
			    struct error *err)
{
	cpu_users_throttled(enrich->cpu_users, quota->cgroup, quota->rec.tid);
	return object_names_cgroup(enrich->objects, (pid_t)quota->rec.tid, quota->cgroup, "cpu",
				   err);
}

/* The others were named before: disk_limits_read(). */
static int64_t limit_object(struct enrich *enrich, const struct waffle_rec_io_limit *limit,
			    struct error *err)
{
	return limit->kind & (WAFFLE_IO_LIMIT_PIDS | WAFFLE_IO_LIMIT_WEIGHT)
		       ? object_names_cgroup(enrich->objects, (pid_t)limit->rec.tid, limit->cgroup,
					     controller_of(limit->kind), err)
		       : 0;
}

static int64_t locked_object(struct enrich *enrich, struct waffle_rec_lock_refusal *rec,
			     struct error *err)
{
	struct file_key key = {.ino = rec->ino, .dev = rec->dev};
	pid_t pid = (pid_t)processes_readable(enrich->processes, rec->rec.tid);
	int fd = (int)rec->object;
	pid_t holder;
	int64_t object;

	lock_holders_name(enrich->lock_holders, rec, pid);
	holder = rec->flags & WAFFLE_LOCK_FORMER ? 0 : (pid_t)rec->holder_pid;
	object = object_names_locked(enrich->objects, pid, fd, holder, &key, err);
	rec->object = object > 0 ? (uint32_t)object : 0;
	return object;
}

static int64_t asked_object(struct enrich *enrich, struct waffle_rec_request_failure *rec,
			    struct error *err)
{
	struct file_key key = {.ino = rec->ino, .dev = rec->dev};
	pid_t pid = (pid_t)processes_readable(enrich->processes, rec->rec.tid);
	int64_t object = object_names_file(enrich->objects, pid, (int)rec->object, &key, "", err);

	rec->object = object > 0 ? (uint32_t)object : 0;
	return object;
}

int enrich_object(struct enrich *enrich, struct waffle_rec *rec, struct error *err)
{
	int64_t number = 0;

	if (rec->kind == WAFFLE_REC_WAIT)
		number = disk_limits_read(enrich, (struct waffle_rec_wait *)rec, err)
				 ?: wait_object(enrich, (struct waffle_rec_wait *)rec, err);
	else if (rec->kind == WAFFLE_REC_IO)
		number = object_names_device(enrich->objects,
					     ((const struct waffle_rec_io *)rec)->dev, err);
	else if (rec->kind == WAFFLE_REC_QUOTA)
		number = quota_object(enrich, (const struct waffle_rec_quota *)rec, err);
	else if (rec->kind == WAFFLE_REC_IO_LIMIT)
		number = limit_object(enrich, (const struct waffle_rec_io_limit *)rec, err);
	else if (rec->kind == WAFFLE_REC_ENDPOINTS)
		number = object_names_endpoints(enrich->objects,
						(const struct waffle_rec_endpoints *)rec, err);
	else if (rec->kind == WAFFLE_REC_MEMORY)
		number = memory_object(enrich, (struct waffle_rec_memory *)rec, err);
	else if (rec->kind == WAFFLE_REC_LOCK_REFUSAL)
		number = locked_object(enrich, (struct waffle_rec_lock_refusal *)rec, err);
	else if (rec->kind == WAFFLE_REC_REQUEST_FAILURE)
		number = asked_object(enrich, (struct waffle_rec_request_failure *)rec, err);
	return number < 0 ? (int)number : 0;
}

int enrich_addresses(struct enrich *enrich, const struct waffle_rec *rec, struct error *err)
{
	const struct waffle_rec_wait *wait = (const struct waffle_rec_wait *)rec;
	const struct waffle_rec_fault *fault = (const struct waffle_rec_fault *)rec;
	uint64_t addresses[2];
	uint32_t count, pid;

	if (rec->kind == WAFFLE_REC_FAULT) {
		addresses[0] = fault->address;
		addresses[1] = fault->ip;
		count = 2;
	} else {
		addresses[0] = wait->address;
		count = wait->address != 0;
	}
	pid = count ? processes_readable(enrich->processes, rec->tid) : 0;
	return pid ? address_spaces_write(enrich->spaces, (pid_t)pid, rec->ts, addresses, count,
					  err)
		   : 0;
}

int enrich_stacks(struct enrich *enrich, struct waffle_rec *rec, struct error *err)
{
	struct stack_numbers *numbers = enrich->stack_numbers;
	struct waffle_rec_wait *wait = (struct waffle_rec_wait *)rec;
	struct waffle_rec_wake *wake = (struct waffle_rec_wake *)rec;
	struct waffle_rec_open_wait *open = (struct waffle_rec_open_wait *)rec;
	struct waffle_rec_sample *sample = (struct waffle_rec_sample *)rec;

	switch (rec->kind) {
	case WAFFLE_REC_TRACE:
		return stack_numbers_trace(numbers, rec, err);
	case WAFFLE_REC_FRAMES:
		return stack_numbers_frames(numbers, rec, err);
	case WAFFLE_REC_CODE:
		return enrich->span_stacks ? stacks_code(enrich->span_stacks,
							 (const struct waffle_rec_code *)rec)
					   : 0;
	case WAFFLE_REC_WAIT:
		stack_numbers_replace(numbers, rec->tid, wait->from_ts, &wait->kernel_stack,
				      &wait->user_stack);
		return 0;
	case WAFFLE_REC_OPEN_WAIT:
		/* A stack by frames has the time of the switch; the others may be new. */
		stack_numbers_replace(numbers, rec->tid,
				      open->user_stack == WAFFLE_STACK_BY_FRAMES && open->from_ts
					      ? open->from_ts
					      : rec->ts,
				      &open->kernel_stack, &open->user_stack);
		return 0;
	case WAFFLE_REC_WAKE:
		stack_numbers_replace(numbers, rec->tid, rec->ts, &wake->kernel_stack,
				      &wake->user_stack);
		return 0;
	case WAFFLE_REC_SAMPLE:
		stack_numbers_replace(numbers, rec->tid, rec->ts, &sample->kernel_stack,
				      &sample->user_stack);
		return 0;
	case WAFFLE_REC_EXIT:
		stack_numbers_forget(numbers, rec->tid);
		return 0;
	default: /* STACK records are made here from FRAMES records; the kernel sends none */
		return -EINVAL;
	}
}

static void interrupt_wakes(struct enrich *enrich, struct waffle_rec_wake *wake)
{
	if (!stack_numbers_is_interrupt(enrich->stack_numbers, wake->kernel_stack))
		return;
	/* The interrupt came during a system call, which the BPF program cannot detect. So the user
	 * stack does not belong to the waker. */
	wake->user_stack = 0;
	if (!(wake->flags & WAFFLE_SWITCH_WAKER_HARDIRQ) && enrich->woken.len < WOKEN_MAX)
		map_set(&enrich->woken, wake->woken_tid, WAFFLE_SWITCH_WAKER_HARDIRQ);
	wake->flags |= WAFFLE_SWITCH_WAKER_HARDIRQ;
}

void enrich_interrupt(struct enrich *enrich, struct waffle_rec *rec)
{
	struct waffle_rec_switch *to = (struct waffle_rec_switch *)rec;
	uint32_t flags;

	if (rec->kind == WAFFLE_REC_WAKE) {
		interrupt_wakes(enrich, (struct waffle_rec_wake *)rec);
	} else if (enrich->woken.len) {
		flags = map_remove(&enrich->woken, to->next_tid);
		if (flags != MAP_NONE && to->flags & WAFFLE_SWITCH_WOKEN)
			to->flags |= (uint8_t)flags;
	}
}

void enrich_forget(struct enrich *enrich, pid_t pid)
{
	if (enrich->span_stacks)
		stacks_forget(enrich->span_stacks, pid, UINT64_MAX);
	thread_names_forget(enrich->thread_names, pid);
	limits_forget(enrich->limits, (uint32_t)pid);
	stack_numbers_forget(enrich->stack_numbers, (uint32_t)pid);
}

/* ---- names of threads ---- */

void enrich_threads(struct enrich *enrich, const struct waffle_rec *rec)
{
	thread_names_record(enrich->thread_names, rec);
}

void enrich_names_look(struct enrich *enrich, bool all)
{
	uint64_t now_ns = clock_monotonic_ns();

	if (all)
		thread_names_look_all(enrich->thread_names, now_ns + NAMES_ALL_NS);
	else
		thread_names_look(enrich->thread_names, now_ns);
}

int enrich_names_each(struct enrich *enrich, int (*pass)(struct waffle_rec *rec, void *arg),
		      void *arg)
{
	return thread_names_each(enrich->thread_names, pass, arg);
}

/* ---- the end ---- */

void enrich_halted(struct enrich *enrich, const struct waffle_rec_halted *halted)
{
	open_waits_add(enrich->open_waits, halted);
}

int enrich_halted_examine(struct enrich *enrich)
{
	return open_waits_examine(enrich->open_waits);
}

/* Limit of the time for the names of Unix sockets: a table of all is read for each of them. */
#define UNIX_NS 200000000ull

struct pipes_named {
	struct object_names *objects;
	uint64_t unix_ns; /* no later than that */
	struct error *err;
};

static int pipe_name(const struct open_wait_pipes *pipes, void *arg)
{
	struct pipes_named *named = arg;
	char text[256];

	pipe_ends_describe(text, sizeof(text), pipes->ends, pipes->end_count,
			   pipes->end_count + pipes->own_count == pipes->count);
	if (pipes->count > 1)
		return object_names_polled_pipes(named->objects, pipes->pid, pipes->fds,
						 pipes->count, text, named->err);
	if (pipes->ends[0].socket)
		return clock_monotonic_ns() < named->unix_ns
			       ? object_names_unix(named->objects, pipes->pid, pipes->tid,
						   &pipes->key, text, named->err)
			       : 0;
	return object_names_pipe(named->objects, pipes->pid, pipes->tid, pipes->fds[0], &pipes->key,
				 text, named->err);
}

static int fifo_name(pid_t pid, const struct file_key *key, const char *path, const char *lacks,
		     void *arg)
{
	struct pipes_named *named = arg;

	return object_names_fifo(named->objects, pid, key, path, lacks, named->err);
}

void enrich_peers_again(struct enrich *enrich)
{
	object_names_peers_again(enrich->objects);
}

int enrich_peers(struct enrich *enrich, const pid_t *pids, size_t count, bool at_end,
		 struct error *err)
{
	struct object_names *names = enrich->objects;

	if (!at_end)
		return object_names_peers(names, pids, count, err);
	/* The second call finds the other ends of sockets in epolls, which the first one names. */
	return object_names_unaccepted(names, pids, count, err)
		       ?: object_names_peers(names, pids, count, err)
			       ?: object_names_peers(names, pids, count, err)
				       ?: object_names_closed(names, pids, count, err)
				       ?: object_names_far_ends(names, pids, count, err);
}

int enrich_pipes(struct enrich *enrich, struct error *err)
{
	struct pipes_named named = {enrich->objects, clock_monotonic_ns() + UNIX_NS, err};

	return open_waits_pipes(enrich->open_waits, pipe_name, &named)
		       ?: open_waits_fifos(enrich->open_waits, fifo_name, &named);
}

int enrich_last_each(struct enrich *enrich, uint64_t end_ts,
		     bool (*is_recorded)(pid_t pid, void *arg),
		     int (*pass)(struct waffle_rec *rec, void *arg), void *arg)
{
	return open_waits_each(enrich->open_waits, pass, arg)
		       ?: limits_each(enrich->limits, end_ts, pass, arg)
			       ?: cpu_users_each(enrich->cpu_users, end_ts, is_recorded, pass,
						 arg);
}

/* ---- files and processes ---- */

int enrich_round(struct enrich *enrich, struct error *err)
{
	object_names_sweep(enrich->objects);
	stack_numbers_sweep(enrich->stack_numbers);
	return enrich->span_stacks ? stacks_round(enrich->span_stacks, err) : 0;
}

static void file_needed(int fd, const char *path, bool ours, void *arg)
{
	(void)ours;
	stacks_file(arg, fd, path);
}

void enrich_file(struct enrich *enrich, int fd, const char *path)
{
	if (enrich->span_stacks)
		stacks_file(enrich->span_stacks, fd, path);
}

void enrich_needed(struct enrich *enrich, pid_t pid)
{
	if (enrich->span_stacks)
		needed_each(pid, file_needed, enrich->span_stacks);
}

void enrich_program(struct enrich *enrich, pid_t pid, uint64_t exec_ts)
{
	if (enrich->span_stacks)
		stacks_forget(enrich->span_stacks, pid, exec_ts);
}

int enrich_process(struct enrich *enrich, pid_t pid, bool wait, struct error *err)
{
	int result = enrich->span_stacks ? stacks_process(enrich->span_stacks, pid, wait, err) : 0;

	return result
		       ?: address_spaces_write(enrich->spaces, pid, clock_monotonic_ns(), NULL, 0,
					       err);
}

int enrich_tables(struct enrich *enrich, bool traced, struct error *err)
{
	return enrich->span_stacks ? stacks_ready(enrich->span_stacks, true, traced, err) : 0;
}

int enrich_tables_soon(struct enrich *enrich, struct error *err)
{
	return enrich->span_stacks ? stacks_ready(enrich->span_stacks, false, false, err) : 0;
}
