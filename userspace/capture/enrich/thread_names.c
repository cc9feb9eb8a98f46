// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/thread_names_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/address_space/hit_image.h"
#include "target/process/process_tids.h"
#include "target/process/python_threads.h"
#include "util/clock.h"
#include "util/map.h"
#include "util/vec.h"

#define THREADS_MAX (1u << 16)
#define FOUND_MAX (1u << 16)
/* A thread has its id some time after it is seen, and a program may give it a name later still. */
static const uint64_t pauses_ns[] = {20000000, 100000000, 500000000, 2000000000};
#define LOOKS (sizeof(pauses_ns) / sizeof(pauses_ns[0]))
#define COST 25             /* looking takes at most one COST-th of a CPU's time */
#define SLICE_NS 5000000ull /* of a search, before the thread drains records again */
/* Tids of other pid namespaces that a step reads: 1 ms. Those of the other threads come later. */
#define SEEN_MAX 100

_Static_assert(PYTHON_THREAD_NAME_MAX == WAFFLE_THREAD_NAME, "a name fits into its record");

struct named_thread {
	struct waffle_rec_thread_name rec; /* with the last name that was passed on */
	uint32_t seen;                     /* of another pid namespace: its tid there; 0: unknown */
	/* Neighbours among the threads of its process; `next` of an unused one: the next such one.
	 * MAP_NONE: none. */
	uint32_t next, previous;
};

struct named_process {
	pid_t pid;        /* 0: unused */
	uint32_t thread;  /* the first one; MAP_NONE: none */
	uint32_t looks;   /* since a thread was last seen */
	uint64_t due_ns;  /* when it is looked at; UINT64_MAX: not until a thread is seen */
	uint64_t rest_ns; /* it is not looked at before, because of COST */
	uint64_t seen_ts; /* of its last TASK record */
	/* If stacks are not recorded; `parsing`: a file that may be Python's is not parsed yet. */
	struct python python;
	bool parsing;
};

struct found_name {
	uint32_t tid;
	pid_t pid;
	char name[WAFFLE_THREAD_NAME];
};

struct thread_names {
	struct kernel *kernel;
	const struct stacks *stacks;
	struct map thread_at, process_at; /* tid, pid → index */
	VEC(struct named_thread) threads;
	VEC(struct named_process) processes;
	uint32_t unused_thread; /* MAP_NONE: none */
	VEC(uint32_t) unused_processes;
	VEC(struct found_name) found; /* not passed on yet */
	uint64_t due_ns;              /* of the process whose turn is next */
	struct python_threads search; /* in `searched` */
	pid_t searched;               /* 0: none */
	uint64_t took_ns;             /* by the search so far */
};

struct thread_names *thread_names_open(struct kernel *kernel, const struct stacks *stacks)
{
	struct thread_names *names = calloc(1, sizeof(*names));

	if (names)
		*names = (struct thread_names){.kernel = kernel,
					       .stacks = stacks,
					       .unused_thread = MAP_NONE,
					       .due_ns = UINT64_MAX};
	return names;
}

static void search_end(struct thread_names *names)
{
	if (names->searched)
		python_threads_end(&names->search);
	names->searched = 0;
}

void thread_names_close(struct thread_names *names)
{
	if (!names)
		return;
	search_end(names);
	map_free(&names->thread_at);
	map_free(&names->process_at);
	vec_free(&names->threads);
	vec_free(&names->processes);
	vec_free(&names->unused_processes);
	vec_free(&names->found);
	free(names);
}

/* ---- threads and processes ---- */

static struct named_process *process_known(struct thread_names *names, uint32_t pid)
{
	uint32_t index = map_get(&names->process_at, pid);

	return index == MAP_NONE ? NULL : &names->processes.data[index];
}

static struct named_process *process_of(struct thread_names *names, uint32_t pid)
{
	struct named_process *process = process_known(names, pid);
	uint32_t index = (uint32_t)names->processes.len;

	if (process)
		return process;
	if (names->unused_processes.len)
		index = names->unused_processes.data[--names->unused_processes.len];
	else if (!vec_push(&names->processes, (struct named_process){0}))
		return NULL;
	if (!map_set(&names->process_at, pid, index))
		return NULL; /* the slot is lost */
	process = &names->processes.data[index];
	*process = (struct named_process){.pid = (pid_t)pid, .thread = MAP_NONE};
	return process;
}

/* A thread was seen: the process is looked at soon, and again a few times. */
static void process_wake(struct thread_names *names, struct named_process *process)
{
	uint64_t due_ns = clock_monotonic_ns() + pauses_ns[0];

	process->looks = 0;
	if (process->due_ns && process->due_ns < due_ns)
		return;
	process->due_ns = due_ns > process->rest_ns ? due_ns : process->rest_ns;
	if (process->due_ns < names->due_ns)
		names->due_ns = process->due_ns;
}

static void slot_free(struct thread_names *names, uint32_t index)
{
	names->threads.data[index].next = names->unused_thread;
	names->unused_thread = index;
}

static void thread_remove(struct thread_names *names, uint32_t tid)
{
	uint32_t index = map_remove(&names->thread_at, tid);
	const struct named_thread *thread;

	if (index == MAP_NONE)
		return;
	thread = &names->threads.data[index];
	if (thread->next != MAP_NONE)
		names->threads.data[thread->next].previous = thread->previous;
	if (thread->previous != MAP_NONE)
		names->threads.data[thread->previous].next = thread->next;
	else
		process_known(names, thread->rec.tgid)->thread = thread->next;
	slot_free(names, index);
}

static bool thread_add(struct thread_names *names, struct named_process *process,
		       const struct waffle_rec_task *task)
{
	uint32_t index = names->unused_thread;
	struct named_thread thread = {
		.rec = {.rec = task->rec, .tgid = task->tgid, .start_ts = task->start_ts},
		.next = process->thread,
		.previous = MAP_NONE};

	thread.rec.rec.kind = WAFFLE_REC_THREAD_NAME;
	if (names->thread_at.len >= THREADS_MAX)
		return false;
	if (index != MAP_NONE)
		names->unused_thread = names->threads.data[index].next;
	else if (vec_push(&names->threads, thread))
		index = (uint32_t)names->threads.len - 1;
	else
		return false;
	names->threads.data[index] = thread;
	if (!map_set(&names->thread_at, task->rec.tid, index)) {
		slot_free(names, index);
		return false;
	}
	if (thread.next != MAP_NONE)
		names->threads.data[thread.next].previous = index;
	process->thread = index;
	return true;
}

/* Whether a process is worth a look before it has threads: its interpreter is looked for, so that
 * the kernel can name them. Many new ones are gone by then. `stacks` finds interpreters itself. */
static bool is_older(const struct thread_names *names, const struct waffle_rec_task *task)
{
	return !names->stacks && task->rec.ts - task->start_ts >= pauses_ns[0];
}

/* Whether a thread is followed, unless there is no memory for it. */
static bool thread_follow(struct thread_names *names, struct named_process *process,
			  const struct waffle_rec_task *task)
{
	uint32_t index = map_get(&names->thread_at, task->rec.tid);

	if (index != MAP_NONE && names->threads.data[index].rec.start_ts == task->start_ts &&
	    names->threads.data[index].rec.tgid == task->tgid)
		return true;
	thread_remove(names, task->rec.tid);
	return thread_add(names, process, task);
}

/* The main thread is left out: its name in the kernel is that of the program. */
static void task_follow(struct thread_names *names, const struct waffle_rec_task *task)
{
	bool is_main = task->rec.tid == task->tgid;
	struct named_process *process;

	if (!(task->flags & WAFFLE_TASK_TRACED_FLAG) || (is_main && !is_older(names, task)))
		return;
	process = process_of(names, task->tgid);
	if (!process || (!is_main && !thread_follow(names, process, task)))
		return;
	process->seen_ts = task->rec.ts;
	process_wake(names, process);
}

void thread_names_forget(struct thread_names *names, pid_t pid)
{
	uint32_t index = map_get(&names->process_at, (uint64_t)pid);

	if (!names->stacks) /* a forked child has its parent's interpreter there */
		kernel_stack_process(names->kernel, pid, NULL);
	if (index == MAP_NONE)
		return;
	if (names->searched == pid)
		search_end(names);
	while (names->processes.data[index].thread != MAP_NONE)
		thread_remove(names,
			      names->threads.data[names->processes.data[index].thread].rec.rec.tid);
	map_remove(&names->process_at, (uint64_t)pid);
	names->processes.data[index] = (struct named_process){.due_ns = UINT64_MAX};
	(void)vec_push(&names->unused_processes, index);
}

/* Keeps a name that the kernel has read, if it has read the same twice. */
static void name_take(struct thread_names *names, const struct waffle_rec_python_name *rec)
{
	struct found_name found = {.tid = rec->rec.tid, .pid = (pid_t)rec->tgid};

	if (rec->text.bytes <= sizeof(rec->name) && names->found.len < FOUND_MAX &&
	    !memcmp(rec->name, rec->again, rec->text.bytes) &&
	    python_text_decode(&rec->text, rec->name, sizeof(rec->name), found.name,
			       sizeof(found.name)))
		(void)vec_push(&names->found, found);
}

void thread_names_record(struct thread_names *names, const struct waffle_rec *rec)
{
	const struct waffle_rec_exit *end = (const struct waffle_rec_exit *)rec;

	if (rec->kind == WAFFLE_REC_TASK)
		task_follow(names, (const struct waffle_rec_task *)rec);
	else if (rec->kind == WAFFLE_REC_PYTHON_NAME)
		name_take(names, (const struct waffle_rec_python_name *)rec);
	else if (rec->kind == WAFFLE_REC_EXEC || rec->tid == end->tgid)
		thread_names_forget(names, (pid_t)end->tgid);
	else
		thread_remove(names, rec->tid);
}

/* ---- looking ---- */

/* The names that one step of a search found. */
struct step {
	struct thread_names *names;
	pid_t pid;
	struct python_thread list[PYTHON_THREADS_STEP];
	size_t count;
	unsigned read; /* tids of the process's threads, at most SEEN_MAX */
};

static void thread_found(const struct python_thread *thread, void *arg)
{
	struct step *step = arg;

	if (step->count < PYTHON_THREADS_STEP)
		step->list[step->count++] = *thread;
}

/* The thread of a process in another pid namespace that it sees by a tid. 0: it is not known. */
static uint32_t other_tid(struct step *step, uint32_t seen)
{
	const struct named_process *process = process_known(step->names, (uint32_t)step->pid);
	uint32_t next = process ? process->thread : MAP_NONE;

	while (next != MAP_NONE) {
		struct named_thread *thread = &step->names->threads.data[next];
		uint32_t tid = thread->rec.rec.tid;

		if (!thread->seen && step->read < SEEN_MAX) {
			step->read++;
			thread->seen = process_seen_tid(step->pid, tid);
		}
		if (thread->seen == seen)
			return tid;
		next = thread->next;
	}
	return 0;
}

/* Keeps a name, unless its thread has ended since that was read. */
static void name_keep(struct step *step, const struct python_thread *thread, bool same)
{
	struct found_name found = {.tid = same ? thread->seen_tid
					       : other_tid(step, thread->seen_tid),
				   .pid = step->pid};

	if (!found.tid || process_seen_tid(step->pid, found.tid) != thread->seen_tid ||
	    step->names->found.len >= FOUND_MAX)
		return;
	memcpy(found.name, thread->name, sizeof(found.name));
	(void)vec_push(&step->names->found, found);
}

/* Continues the search. Keeps the names of threads that still live after the names were read.
 * Returns whether some are left. */
static bool search_step(struct thread_names *names)
{
	struct step step = {.names = names, .pid = names->searched};
	bool more = python_threads_step(&names->search, thread_found, &step);
	size_t before = names->found.len;
	bool same;

	if (!step.count)
		return more;
	same = process_has_tid(step.pid, (uint32_t)step.pid); /* all threads are in our namespace */
	for (size_t i = 0; i < step.count; i++)
		name_keep(&step, &step.list[i], same);
	if (!image_is_there(&names->search.image)) /* the tids are those of another program */
		names->found.len = before;
	return more;
}

/* NULL: it is unknown, or there is none. */
static const struct python *interpreter_of(struct thread_names *names,
					   struct named_process *process, const struct image *image)
{
	struct waffle_stack_process sent = {0};
	struct error gone = ERROR_INIT;
	struct mappings mappings;

	if (names->stacks)
		return stacks_interpreter(names->stacks, (uint32_t)process->pid);
	if (process->python.found ||
	    kernel_lock_may_be_kept(names->kernel, (uint32_t)process->pid) ||
	    process_mappings(&mappings, process->pid, &gone))
		return &process->python;
	process->parsing =
		python_find(&process->python, image, process->pid, &mappings, true) == -EAGAIN;
	mappings_free(&mappings);
	sent.python = process->python.kernel;
	if (sent.python.runtime) /* from now on, the kernel reads the names of new threads */
		kernel_stack_process(names->kernel, process->pid, &sent);
	return &process->python;
}

static bool search_begin(struct thread_names *names, struct named_process *process)
{
	const struct python *python;
	struct image image;

	search_end(names);
	process->parsing = false;
	if (hit_image_open(&image, names->kernel, process->pid, process->seen_ts))
		return false;
	python = interpreter_of(names, process, &image);
	if (!python)
		image_close(&image);
	else if (python_threads_begin(&names->search, python, &image))
		names->searched = process->pid;
	return names->searched;
}

/* Whether some thread of a process has no name. */
static bool lacks_names(const struct thread_names *names, const struct named_process *process)
{
	for (uint32_t i = process->thread; i != MAP_NONE; i = names->threads.data[i].next)
		if (!names->threads.data[i].rec.name[0])
			return true;
	return false;
}

/* Sets when a process that was looked at is next. */
static void turn_end(struct thread_names *names, struct named_process *process, uint64_t now_ns)
{
	process->rest_ns = now_ns + COST * names->took_ns;
	process->due_ns = UINT64_MAX;
	if (!process->parsing && (++process->looks >= LOOKS || !lacks_names(names, process)))
		return;
	process->due_ns = now_ns + pauses_ns[process->looks];
	if (process->due_ns < process->rest_ns)
		process->due_ns = process->rest_ns;
}

/* Begins a search in the next process whose turn it is. NULL: there is none. */
static struct named_process *turn_begin(struct thread_names *names, uint64_t now_ns)
{
	struct named_process *found = NULL;

	names->due_ns = UINT64_MAX;
	for (size_t i = 0; i < names->processes.len; i++) {
		struct named_process *process = &names->processes.data[i];

		if (!found && process->pid && now_ns >= process->due_ns)
			found = process;
		else if (process->pid && process->due_ns < names->due_ns)
			names->due_ns = process->due_ns;
	}
	names->took_ns = 0;
	if (found)
		search_begin(names, found);
	return found;
}

void thread_names_look(struct thread_names *names, uint64_t now_ns)
{
	uint64_t begin_ns = now_ns;
	struct named_process *process;
	bool more;

	if (!names->searched && now_ns < names->due_ns)
		return;
	process = names->searched ? process_known(names, (uint32_t)names->searched)
				  : turn_begin(names, now_ns);
	if (!process)
		return;
	do {
		more = names->searched && search_step(names);
		now_ns = clock_monotonic_ns();
	} while (more && now_ns < begin_ns + SLICE_NS);
	names->took_ns += now_ns - begin_ns;
	if (more)
		return;
	search_end(names);
	turn_end(names, process, now_ns);
	if (process->due_ns < names->due_ns)
		names->due_ns = process->due_ns;
}

void thread_names_look_all(struct thread_names *names, uint64_t until_ns)
{
	for (size_t i = 0; i < names->processes.len; i++) {
		bool more = names->processes.data[i].pid &&
			    search_begin(names, &names->processes.data[i]);

		while (more && clock_monotonic_ns() < until_ns)
			more = search_step(names);
	}
	search_end(names);
}

int thread_names_each(struct thread_names *names, int (*pass)(struct waffle_rec *rec, void *arg),
		      void *arg)
{
	int result = 0;

	for (size_t i = 0; i < names->found.len && !result; i++) {
		const struct found_name *found = &names->found.data[i];
		uint32_t index = map_get(&names->thread_at, found->tid);
		struct waffle_rec_thread_name *rec =
			index == MAP_NONE ? NULL : &names->threads.data[index].rec;

		if (!rec || rec->tgid != (uint32_t)found->pid || !strcmp(rec->name, found->name))
			continue;
		memcpy(rec->name, found->name, sizeof(rec->name));
		result = pass(&rec->rec, arg);
	}
	names->found.len = 0;
	return result;
}
