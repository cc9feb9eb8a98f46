// SPDX-License-Identifier: Apache-2.0
/*
 * Threads and processes. The kernel reuses tids, so we split a tid into incarnations. An
 * incarnation is closed by its last switch off a CPU. An exit record closes it only when there is
 * also evidence of another thread with that tid.
 */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "util/memory.h"
#include "util/search.h"
#include "util/text.h"

static uint32_t thread_new(struct builder *builder, uint32_t tid, uint64_t ts, uint32_t previous)
{
	struct model *model = builder->model;
	uint32_t index = (uint32_t)model->threads.len;

	memory_require(index != MODEL_NONE);
	map_put(&builder->tids, tid, index);
	vec_add(&model->threads, (struct model_thread){.tid = tid, .first_ts = ts, .last_ts = ts});
	vec_add(&builder->threads, (struct thread_build){.previous = previous});
	return index;
}

/* Another thread took over the tid after `ended_ts`. */
static uint32_t thread_renew(struct builder *builder, uint32_t old, uint64_t ended_ts, uint64_t ts)
{
	builder->threads.data[old].closed_ts = ended_ts;
	return thread_new(builder, builder->model->threads.data[old].tid, ts, old);
}

static void thread_touch(struct model_thread *thread, uint64_t ts)
{
	if (ts < thread->first_ts)
		thread->first_ts = ts;
	if (ts > thread->last_ts)
		thread->last_ts = ts;
}

uint32_t threads_at(struct builder *builder, uint32_t tid, uint64_t ts)
{
	uint32_t index = map_get(&builder->tids, tid);
	const struct thread_build *build = builder->threads.data;

	if (index == MAP_NONE)
		return thread_new(builder, tid, ts, MODEL_NONE);
	if (build[index].closed_ts && ts > build[index].closed_ts)
		return thread_new(builder, tid, ts, index);
	/* A late record may belong to an earlier incarnation. */
	while (build[index].previous != MODEL_NONE && ts <= build[build[index].previous].closed_ts)
		index = build[index].previous;
	thread_touch(&builder->model->threads.data[index], ts);
	return index;
}

uint32_t threads_running(struct builder *builder, uint32_t tid, uint32_t pid, uint64_t ts)
{
	uint32_t index = threads_at(builder, tid, ts);
	struct model_thread *thread = &builder->model->threads.data[index];

	if (thread->exit_ts && ts > thread->exit_ts) {
		index = thread_renew(builder, index, thread->exit_ts, ts);
		thread = &builder->model->threads.data[index];
	}
	thread->traced = true;
	if (pid)
		thread->pid = pid;
	return index;
}

/* The number of a text in the model. */
static uint32_t text_put(struct model *model, const char *text)
{
	return strtab_put(model->strings, text, strlen(text));
}

void threads_add_process(struct builder *builder, uint32_t pid, uint32_t ppid, const char *cmdline)
{
	struct model *model = builder->model;
	uint32_t index = map_get(&model->pids, pid), host = store_pid_host(pid);
	struct model_process *process;

	if (index == MAP_NONE) {
		index = (uint32_t)model->processes.len;
		map_put(&model->pids, pid, index);
		vec_add(&model->processes,
			(struct model_process){.pid = pid,
					       .main_thread = MODEL_NONE,
					       .host = host < model->host_count ? host : 0,
					       .rank = MODEL_NONE});
	}
	process = &model->processes.data[index];
	if (ppid)
		process->ppid = ppid;
	if (*cmdline)
		process->cmdline = text_put(model, cmdline);
}

void threads_add_rank(struct builder *builder, const struct store_rank *rank)
{
	struct model *model = builder->model;
	struct model_process *process;

	threads_add_process(builder, rank->pid, 0, "");
	process = &model->processes.data[map_get(&model->pids, rank->pid)];
	process->rank = rank->rank == STORE_RANK_NONE ? MODEL_NONE : rank->rank;
	process->world_size = rank->world_size;
	process->job = text_put(model, rank->job);
}

/* Nice values are -20 to 19. 0: it is none. */
static int8_t nice_parse(const char *text)
{
	long nice = strtol(text, NULL, 10);

	return nice < -20 || nice > 19 ? 0 : (int8_t)nice;
}

void threads_add_attribute(struct builder *builder, const struct store_attribute *attribute)
{
	struct model *model = builder->model;
	bool container = !strcmp(attribute->key, STORE_CONTAINER_ID);
	bool network = !strcmp(attribute->key, STORE_NETWORK);
	bool waker = !strcmp(attribute->key, STORE_WAKER);
	bool nice = !strcmp(attribute->key, STORE_NICE);
	struct model_process *process;

	if (!container && !network && !waker && !nice && strcmp(attribute->key, STORE_FOUND) != 0)
		return;
	threads_add_process(builder, attribute->pid, 0, "");
	process = &model->processes.data[map_get(&model->pids, attribute->pid)];
	if (container)
		process->container = text_put(model, attribute->value);
	else if (network)
		process->network = text_put(model, attribute->value);
	else if (waker)
		process->waker_ts = attribute->ts;
	else if (nice)
		process->nice = nice_parse(attribute->value);
	else
		process->found = true;
}

void threads_add_transport(struct builder *builder, const struct store_transport *transport)
{
	struct model *model = builder->model;

	threads_add_process(builder, transport->pid, 0, "");
	model->processes.data[map_get(&model->pids, transport->pid)].transport = transport;
}

/* The thread of a TASK record. An exited thread keeps its tid until another one with that tid was
 * started. */
static uint32_t task_thread(struct builder *builder, const struct waffle_rec_task *task)
{
	uint64_t started = task->start_ts ? task->start_ts : task->rec.ts;
	uint32_t index = threads_at(builder, task->rec.tid, task->rec.ts);
	uint64_t exit_ts = builder->model->threads.data[index].exit_ts;

	if (exit_ts && started > exit_ts && task->rec.ts > exit_ts)
		return thread_renew(builder, index, exit_ts, task->rec.ts);
	return index;
}

void threads_add_task(struct builder *builder, const struct waffle_rec_task *task)
{
	uint32_t index, comm;
	struct model_thread *thread;

	if (!task->rec.tid)
		return; /* tid 0 stands for the idle tasks of all CPUs, which are no threads here */
	index = task_thread(builder, task);
	comm = strtab_put(builder->model->strings, task->comm,
			  strnlen(task->comm, sizeof(task->comm)));
	thread = &builder->model->threads.data[index];
	if (task->tgid)
		thread->pid = task->tgid;
	if (comm)
		thread->comm = comm;
	if (task->start_ts)
		thread->born_ts = task->start_ts;
	if (task->flags & WAFFLE_TASK_TRACED_FLAG)
		thread->traced = true;
	if (task->flags & WAFFLE_TASK_OWN_FLAG)
		thread->own = true;
	if (task->flags & WAFFLE_TASK_KERNEL_FLAG)
		thread->kernel = true;
	if (task->flags & WAFFLE_TASK_USER_FLAG)
		thread->user = true;
	if (builder->want_names)
		vec_add(&builder->names, (struct thread_name){task->rec.ts, index, comm});
}

uint32_t threads_outside(struct builder *builder, uint32_t pid, const char comm[WAFFLE_COMM_BYTES],
			 uint64_t ts)
{
	uint32_t index;
	struct model_thread *thread;

	if (!pid)
		return MODEL_NONE;
	index = threads_at(builder, pid, ts);
	thread = &builder->model->threads.data[index];
	if (!thread->pid)
		thread->pid = pid;
	if (!thread->comm)
		thread->comm =
			strtab_put(builder->model->strings, comm, strnlen(comm, WAFFLE_COMM_BYTES));
	return index;
}

void threads_add_name(struct builder *builder, const struct waffle_rec_thread_name *name)
{
	uint32_t index;
	struct thread_build *build;

	if (!name->rec.tid)
		return;
	index = threads_at(builder, name->rec.tid, name->rec.ts);
	build = &builder->threads.data[index];
	build->own_name = strtab_put(builder->model->strings, name->name,
				     strnlen(name->name, sizeof(name->name)));
	build->named_start_ts = name->start_ts;
}

void threads_add_fork(struct builder *builder, const struct waffle_rec_fork *fork)
{
	if (!fork->child_tgid || fork->child_tgid == fork->tgid) {
		builder->model->bad_records++;
		return;
	}
	threads_running(builder, fork->rec.tid, fork->tgid, fork->rec.ts);
	threads_add_process(builder, fork->child_tgid, fork->tgid, "");
}

void threads_add_exec(struct builder *builder, const struct waffle_rec_exit *exec)
{
	uint32_t index = threads_running(builder, exec->rec.tid, exec->tgid, exec->rec.ts);

	vec_add(&builder->model->execs, (struct model_exec){exec->rec.ts, index});
}

void threads_add_exit(struct builder *builder, const struct waffle_rec_exit *gone)
{
	uint32_t index = threads_at(builder, gone->rec.tid, gone->rec.ts);
	struct model_thread *thread = &builder->model->threads.data[index];

	thread->traced = true;
	thread->exit_ts = gone->rec.ts ? gone->rec.ts : 1;
	thread->exit_code = gone->code;
	if (gone->tgid)
		thread->pid = gone->tgid;
}

static int exec_compare(const void *left, const void *right)
{
	const struct model_exec *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return a->ts < b->ts ? -1 : a->ts > b->ts;
}

uint64_t threads_end_after(const struct builder *builder, uint32_t thread, uint64_t ts)
{
	const struct model *model = builder->model;
	uint64_t exit_ts = model->threads.data[thread].exit_ts;
	const struct model_exec *execs = model->execs.data;
	size_t next = lower_bound(model->execs.len, i,
				  execs[i].thread < thread ||
					  (execs[i].thread == thread && execs[i].ts < ts));

	if (next < model->execs.len && execs[next].thread == thread)
		return execs[next].ts;
	return exit_ts >= ts && exit_ts ? exit_ts : UINT64_MAX;
}

/* If more threads with names of one kind have ended, a thread is made for each job. The threads of
 * a pool live on, however many there are, and each of them may matter. A program may also end a
 * pool (ThreadPoolExecutor: at most 32 threads). */
#define ENDED_MAX 32

/* The name of the kind of a thread: N takes the place of each number. */
static uint32_t kind_put(struct model *model, const char *name)
{
	char kind[WAFFLE_THREAD_NAME];

	return strtab_put(model->strings, kind, text_without_numbers(kind, sizeof(kind), name));
}

static uint64_t kind_key(const struct model_thread *thread)
{
	return (uint64_t)thread->pid << 32 | thread->kind;
}

/* The threads of a kind so far. */
struct kind_count {
	uint32_t ended;
	uint32_t comm; /* the name of the first one */
	bool differ;   /* there is another name */
};

/* Finds the kinds of threads, which have names that differ only in numbers. Each thread of the
 * kernel is a process of its own, so these have none: the numbers in their names are those of CPUs
 * and devices. */
static void kinds_find(struct builder *builder)
{
	struct model *model = builder->model;
	VEC(struct kind_count) counts = {0};
	struct map at = {0};

	for (size_t i = 0; i < model->threads.len; i++) {
		struct model_thread *thread = &model->threads.data[i];
		struct kind_count *count;
		uint32_t known;

		if (!thread->pid || thread->track)
			continue;
		thread->kind = kind_put(model, strtab_get(model->strings, thread->comm));
		known = map_get(&at, kind_key(thread));
		if (known == MAP_NONE) {
			known = (uint32_t)counts.len;
			map_put(&at, kind_key(thread), known);
			vec_add(&counts, (struct kind_count){.comm = thread->comm});
		}
		count = &counts.data[known];
		count->ended += thread->exit_ts != 0;
		count->differ |= thread->comm != count->comm;
	}
	for (size_t i = 0; i < model->threads.len && counts.len; i++) {
		struct model_thread *thread = &model->threads.data[i];
		const struct kind_count *count;

		if (!thread->kind)
			continue;
		count = &counts.data[map_get(&at, kind_key(thread))];
		if (count->ended <= ENDED_MAX || !count->differ)
			thread->kind = 0;
	}
	vec_free(&counts);
	map_free(&at);
}

void threads_finish(struct builder *builder)
{
	struct model *model = builder->model;
	uint32_t unnamed = text_put(model, "?");

	if (model->execs.len)
		qsort(model->execs.data, model->execs.len, sizeof(struct model_exec), exec_compare);
	for (size_t i = 0; i < model->threads.len; i++) {
		struct model_thread *thread = &model->threads.data[i];
		const struct thread_build *build = &builder->threads.data[i];

		if (build->own_name && build->named_start_ts == thread->born_ts)
			thread->comm = build->own_name;
		if (!thread->comm)
			thread->comm = unnamed;
		if (thread->pid)
			threads_add_process(builder, thread->pid, 0, "");
	}
	kinds_find(builder);
	for (size_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];

		if (thread->pid && thread->pid == thread->tid && !thread->track)
			model->processes.data[map_get(&model->pids, thread->pid)].main_thread =
				(uint32_t)i;
	}
}
