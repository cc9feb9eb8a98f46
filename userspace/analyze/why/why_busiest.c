// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/why_busiest.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/hang/why_hang.h"
#include "analyze/why/lookup/why_go.h"
#include "analyze/why/lookup/why_jvm.h"
#include "analyze/why/lookup/why_roots.h"
#include "analyze/why/why_asker_internal.h"
#include "analyze/why/why_first_internal.h"
#include "target/process/descriptors.h"

/* A thread that is blocked for most of the time and uses less than this part of a CPU explains less
 * than one that hangs. */
#define IDLE_PARTS 20
/* One of the JVM's own threads, such as its compiler or collector of garbage, explains its program
 * only if it runs for at least this part of the capture. */
#define JVM_PARTS 4

/* Whether a thread waits for a socket when the capture ends. */
static bool waits_for_socket(const struct model *model, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(model, thread);
	const struct store_object *object =
		wait ? store_reader_object(model->reader, wait->object) : NULL;

	return object && descriptor_is_socket(object->name);
}

/* Which threads to choose from. A child may run longer than its parent just because it takes its
 * parent's CPU. */
enum among {
	AMONG_ALL,
	AMONG_ROOTS,      /* of the processes that the user named */
	AMONG_BUSY_ROOTS, /* of these, those that ran or waited for a CPU for `least_ns` */
};

struct candidates {
	const struct model *model;
	struct stack_names *names;
	bool idle_jvm; /* idle threads of the JVM itself count, too */
};

static uint64_t length_of(const struct model *model)
{
	return model->end_ts > model->start_ts ? model->end_ts - model->start_ts : 0;
}

/* Whether a thread is one of the JVM's own, which does little. */
static bool is_idle_jvm(const struct candidates *from, uint32_t thread)
{
	return !from->idle_jvm &&
	       from->model->threads.data[thread].running_ns <= length_of(from->model) / JVM_PARTS &&
	       why_jvm_is_own_thread(from->model, from->names, thread);
}

/* The thread that ran longest, of those that lived for at least `least_ns`. Of several that did not
 * run, one that waits for a socket says more. */
static const struct model_thread *busiest_of(const struct candidates *from, uint64_t least_ns,
					     enum among among)
{
	const struct model *model = from->model;
	uint32_t busiest = MODEL_NONE;

	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		uint64_t ns = thread->running_ns + thread->runnable_ns, most;

		if (among != AMONG_BUSY_ROOTS)
			ns += thread->blocked_ns;
		if (!thread->traced || !thread->has_sched || ns < least_ns ||
		    why_is_of_waker(model, i) ||
		    (among != AMONG_ALL && !why_is_of_root(model, i)) || is_idle_jvm(from, i))
			continue;
		most = busiest == MODEL_NONE ? 0 : model->threads.data[busiest].running_ns;
		if (busiest == MODEL_NONE || thread->running_ns > most ||
		    (!most && !waits_for_socket(model, busiest) && waits_for_socket(model, i)))
			busiest = i;
	}
	return busiest == MODEL_NONE ? NULL : &model->threads.data[busiest];
}

/* The busiest thread of all. A child that ran for at most twice as long as a thread of a process
 * that the user named may have run for that one, which is chosen instead. */
static const struct model_thread *busiest_of_any(const struct candidates *from, uint64_t least_ns)
{
	const struct model_thread *busiest = busiest_of(from, least_ns, AMONG_ALL);
	const struct model_thread *root = busiest_of(from, least_ns, AMONG_ROOTS);

	return root && root->running_ns && root->running_ns >= busiest->running_ns / 2 ? root
										       : busiest;
}

/* The number in the name of a worker of io_uring: "iou-wrk-4711", or "iou-sqp-4711" for the one
 * that polls the queue, work for thread 4711 (io_uring/io-wq.c and sqpoll.c of the kernel). 0: it
 * is none. */
static uint32_t ring_worker_owner(const char *name)
{
	static const char *const prefixes[] = {"iou-wrk-", "iou-sqp-"};
	unsigned long tid;
	char *end;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		const char *number = name + strlen(prefixes[i]);

		if (strncmp(name, prefixes[i], strlen(prefixes[i])) != 0 ||
		    !isdigit((unsigned char)*number))
			continue;
		tid = strtoul(number, &end, 10);
		return *end || tid > UINT32_MAX ? 0 : (uint32_t)tid;
	}
	return 0;
}

/* The kernel does in threads of its own what a program asks of io_uring. The program's thread is
 * the one to explain: what its workers do is the cause of its waits. */
static const struct model_thread *ring_owner(const struct model *model,
					     const struct model_thread *busiest)
{
	uint32_t owner = busiest ? ring_worker_owner(strtab_get(model->strings, busiest->comm)) : 0;

	for (uint32_t i = 0; owner && i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];

		if (model_pid_real(model, thread->tid) == owner && thread->pid == busiest->pid &&
		    thread->traced && thread->has_sched)
			return thread;
	}
	return busiest;
}

/* A thread that lives only briefly explains little. If there are many of them, as in a shell script
 * or with a thread for each request, a thread that waits for them explains all of them. */
static const struct model_thread *busiest_counted(const struct candidates *from)
{
	uint64_t length = length_of(from->model);
	const struct model_thread *busiest = busiest_of(from, length / 2, AMONG_BUSY_ROOTS)
						     ?: busiest_of_any(from, length / 2)
							     ?: busiest_of(from, 0, AMONG_ALL);

	return ring_owner(from->model, busiest);
}

static const struct model_thread *busiest_thread(struct candidates *from)
{
	const struct model_thread *busiest = busiest_counted(from);

	from->idle_jvm = !busiest;
	return busiest ?: busiest_counted(from);
}

static void choose(struct why_query *query, const struct model *model,
		   const struct model_thread *thread)
{
	query->tid = thread->tid;
	query->waited = !thread->running_ns;
	query->from_ts = model->start_ts;
	query->to_ts = model->end_ts;
}

/* Whether a thread is one of those that Go's runtime made. */
static bool is_of_runtime(const struct why_query *query, const struct model *model,
			  const struct model_thread *thread)
{
	const struct model_process *process =
		model_process_of(model, (uint32_t)(thread - model->threads.data));

	/* A thread with a name of its own is one that the program gave to a goroutine. */
	return process && process->main_thread < model->threads.len &&
	       thread->comm == model->threads.data[process->main_thread].comm &&
	       why_go_is_process(model, query->names, thread->pid);
}

/* Whether the threads of a process hardly ran: it has nothing to do, or it hangs. */
static bool is_quiet(const struct model *model, uint32_t pid)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < model->threads.len; i++)
		ns += model->threads.data[i].pid == pid ? model->threads.data[i].running_ns : 0;
	return ns < length_of(model) / IDLE_PARTS;
}

/* The runtime of Go moves the work of a program between its threads. If the busiest thread is one
 * of them, the program as a whole is chosen: that of the user, although a child may run longer,
 * unless it runs most of the time. */
static void choose_go_program(struct why_query *query, const struct candidates *from,
			      const struct model_thread *busiest)
{
	const struct model_thread *of_root = busiest_of(from, 0, AMONG_ROOTS);
	bool most = busiest->running_ns > length_of(from->model) / 2;

	if (!most && of_root && is_of_runtime(query, from->model, of_root))
		busiest = of_root;
	else if (!is_of_runtime(query, from->model, busiest))
		return;
	query->program = busiest->pid;
	query->quiet = is_quiet(from->model, busiest->pid);
	query->tid = 0;
}

/* ---- threads that hang ---- */

/* A thread that is stuck; of several, the main thread of a process that the user named, then the
 * first one in the order of the hangs. The launcher of the JVM only waits for another one.
 * MODEL_NONE: none. */
static uint32_t stuck_thread(const struct why_hangs *hangs, const struct model *model,
			     struct stack_names *names)
{
	uint32_t found = MODEL_NONE;

	for (size_t i = 0; i < hangs->waits.len; i++) {
		uint32_t number = model->open_waits.data[hangs->waits.data[i].wait].thread;
		const struct model_thread *thread = &model->threads.data[number];

		if (!hangs->waits.data[i].stuck || !thread->has_sched ||
		    why_is_of_waker(model, number) || why_jvm_is_launcher(model, names, number))
			continue;
		if (thread->tid == thread->pid && why_is_of_root(model, number))
			return number;
		if (found == MODEL_NONE)
			found = number;
	}
	return found;
}

/* If the busiest thread is of another process than the first one that the user named, and that one
 * does not wait for it, a thread of the first process takes its place. If the busiest thread is
 * next to idle, so does one that hangs or is held up. */
static void choose_other(struct why_query *query, const struct model *model,
			 const struct model_thread *busiest)
{
	uint64_t length = length_of(model);
	bool of_first = why_is_of_first(model, (uint32_t)(busiest - model->threads.data));
	struct why_hangs hangs;
	uint32_t stuck;

	if (busiest->running_ns > length / IDLE_PARTS || busiest->blocked_ns < length / 2) {
		if (!of_first)
			why_first_before_busy(query, model, busiest->tid);
		return;
	}
	why_hangs_find(&hangs, model, query->names);
	stuck = stuck_thread(&hangs, model, query->names);
	if (stuck != MODEL_NONE) {
		choose(query, model, &model->threads.data[stuck]);
		query->stuck = true;
	} else if (of_first || !why_first_process(model)) {
		why_first_before_pause(query, model, busiest->tid);
	} else {
		why_first_before_idle(query, model, &hangs);
	}
	why_hangs_free(&hangs);
}

int why_busiest_thread(struct why_query *query, const struct model *model)
{
	struct candidates from = {.model = model, .names = query->names};
	const struct model_thread *busiest = busiest_thread(&from);

	if (!busiest)
		return -ENOENT;
	choose(query, model, busiest);
	return 0;
}

int why_busiest_program(struct why_query *query, const struct model *model)
{
	struct candidates from = {.model = model, .names = query->names};
	const struct model_thread *busiest = busiest_thread(&from);

	if (!busiest)
		return -ENOENT;
	choose(query, model, busiest);
	choose_go_program(query, &from, busiest);
	if (!query->program)
		choose_other(query, model, busiest);
	return 0;
}

bool why_busiest_asker(struct why_query *query, const struct model *model)
{
	uint32_t asker = why_asker_find(model);

	if (asker == MODEL_NONE)
		return false;
	choose(query, model, &model->threads.data[asker]);
	query->asks = true;
	if (!why_go_is_process(model, query->names, model->threads.data[asker].pid))
		return true;
	query->program = model->threads.data[asker].pid;
	query->tid = 0;
	return true;
}
