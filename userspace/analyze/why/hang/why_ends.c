// SPDX-License-Identifier: Apache-2.0
/* Waits at pipes, for locks of files, and for children, which another process has to end. The text
 * of the awaited file says which process holds the other end or the lock, as the descriptors of all
 * processes showed when the capture ended. If it has one thread, that one has to end the wait. */
#include <stdlib.h>
#include <string.h>

#include "analyze/why/hang/why_hang_internal.h"
#include "analyze/why/lookup/why_holder.h"
#include "analyze/why/lookup/why_wait.h"
#include "target/process/pipe_ends.h"
#include "util/memory.h"
#include "util/syscall_names.h"

#define SEVERAL (MAP_NONE - 1)

/* What is known of the waits, by their index. */
struct wait_ends {
	const struct why_hangs *hangs;
	const struct model *model;
	struct map only;   /* pid → its only living thread, or SEVERAL */
	struct map active; /* pid → the only one of these that is not idle, or SEVERAL */
	uint32_t *pids;    /* the process that has to end the wait; 0: it is not known */
};

static const struct model_open_wait *wait_at(const struct wait_ends *ends, uint32_t index)
{
	return &ends->model->open_waits.data[ends->hangs->waits.data[index].wait];
}

static const char *call_of(const struct wait_ends *ends, const struct model_open_wait *wait)
{
	return syscall_name(ends->model->meta->machine, wait->syscall);
}

static void put_only(struct map *map, uint64_t key, uint32_t value)
{
	map_put(map, key, map_get(map, key) == MAP_NONE ? value : SEVERAL);
}

static void threads_find(struct wait_ends *ends)
{
	const struct model_thread *threads = ends->model->threads.data;

	for (uint32_t i = 0; i < ends->model->threads.len; i++) {
		if (!why_hang_is_alive(&threads[i]))
			continue;
		put_only(&ends->only, threads[i].pid, i);
		if (!why_hang_is_idle(ends->model, i))
			put_only(&ends->active, threads[i].pid, i);
	}
}

/* The only process that holds what a wait is for; 0: it is not known. A socket's read may have a
 * timeout (SO_RCVTIMEO), and a server waits there for its next request, so such a wait is no
 * deadlock. */
static uint32_t holder_of(const struct wait_ends *ends, const struct model_open_wait *wait)
{
	const struct store_object *object = store_reader_object(ends->model->reader, wait->object);

	return object && !descriptor_is_socket(object->name) ? why_holder_pid(object) : 0;
}

/* The only child that a wait is for; 0: it is not known. */
static uint32_t child_of(const struct wait_ends *ends, const struct model_open_wait *wait)
{
	uint32_t children[WHY_CHILDREN];

	return why_hang_children(ends->hangs, ends->model, wait, children) == 1
		       ? ends->model->threads.data[children[0]].pid
		       : 0;
}

/* Whether a wait at pipes has no timeout. */
static bool has_no_timeout(const struct model *model, const struct model_open_wait *wait,
			   const char *call)
{
	const uint64_t *args =
		wait->args < model->syscall_args.len ? &model->syscall_args.data[wait->args] : NULL;

	switch (wait_call_of(call)) {
	case WAIT_CALL_READ:
	case WAIT_CALL_WRITE:
		return true;
	case WAIT_CALL_POLL_LIST:
		return args && (strcmp(call, "poll") ? !args[2] : (int32_t)args[2] < 0);
	default:
		return false;
	}
}

/* The process that has to end a wait; 0: it is not known. A thread that is stopped waits to be
 * continued. */
static uint32_t ender_of(const struct wait_ends *ends, const struct model_open_wait *wait)
{
	const char *call = call_of(ends, wait);

	if (wait->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED))
		return 0;
	if (wait_call_of(call) == WAIT_CALL_FILE_LOCK)
		return holder_of(ends, wait);
	if (wait->ts - wait->from_ts < WHY_STANDSTILL_NS)
		return 0;
	if (wait_call_of(call) == WAIT_CALL_CHILD)
		return child_of(ends, wait);
	return has_no_timeout(ends->model, wait, call) ? holder_of(ends, wait) : 0;
}

static void enders_find(struct wait_ends *ends)
{
	for (uint32_t i = 0; i < ends->hangs->waits.len; i++)
		if (ends->hangs->waits.data[i].awaits == WHY_AWAITS_UNKNOWN &&
		    wait_at(ends, i)->syscall >= 0)
			ends->pids[i] = ender_of(ends, wait_at(ends, i));
}

/* Whether a pipe has been full all the time: no thread of the other process reads it. */
static bool is_full(const struct wait_ends *ends, uint32_t index)
{
	const struct model_open_wait *wait = wait_at(ends, index);

	return wait->before && wait_call_of(call_of(ends, wait)) == WAIT_CALL_WRITE;
}

/* The thread that has to end a wait for a process with several threads: the only one of them that
 * is not idle, if it waits for this process, of which no other thread is active either, and one of
 * both waits at a full pipe. A program that reads what its child says, while the child waits for
 * what another thread of the program has to write, is just idle. MODEL_NONE: it is not known. */
static uint32_t counterpart_thread(const struct wait_ends *ends, uint32_t index)
{
	const struct model *model = ends->model;
	const struct model_open_wait *wait = wait_at(ends, index), *back;
	uint32_t pid = model->threads.data[wait->thread].pid, other = ends->pids[index], at;
	uint32_t thread = map_get(&ends->active, other);

	if (other == pid || thread >= SEVERAL || map_get(&ends->active, pid) != wait->thread)
		return MODEL_NONE;
	back = model_open_wait_of(model, thread);
	at = back ? (uint32_t)(back - model->open_waits.data) : 0;
	if (!back || ends->pids[at] != pid || !wait->before || !back->before ||
	    !(is_full(ends, index) || is_full(ends, at)))
		return MODEL_NONE;
	return thread;
}

static void owner_find(struct why_hung *hung, const struct wait_ends *ends, uint32_t index)
{
	const struct model_open_wait *wait = wait_at(ends, index);
	uint32_t only = map_get(&ends->only, ends->pids[index]);

	if (only == MAP_NONE)
		return;
	hung->others = only == SEVERAL;
	hung->owner = hung->others ? counterpart_thread(ends, index) : only;
	if (hung->owner == MODEL_NONE)
		return;
	/* A descendant that has inherited the lock may release it as well. */
	hung->sure =
		!hung->others && wait_call_of(call_of(ends, wait)) == WAIT_CALL_FILE_LOCK &&
		!pipe_end_is_shared(store_reader_object(ends->model->reader, wait->object)->detail);
	hung->awaits = hung->sure ? WHY_AWAITS_LOCK : WHY_AWAITS_PROCESS;
}

void why_ends_find(struct why_hangs *hangs, const struct model *model)
{
	struct wait_ends ends = {
		.hangs = hangs,
		.model = model,
		.pids = memory_zeroed(hangs->waits.len + 1, sizeof(*ends.pids)),
	};

	threads_find(&ends);
	enders_find(&ends);
	for (uint32_t i = 0; i < hangs->waits.len; i++)
		if (ends.pids[i])
			owner_find(&hangs->waits.data[i], &ends, i);
	map_free(&ends.only);
	map_free(&ends.active);
	free(ends.pids);
}

void why_ends_check(struct why_hangs *hangs)
{
	for (size_t i = 0; i < hangs->waits.len; i++) {
		struct why_hung *hung = &hangs->waits.data[i];

		if (hung->awaits != WHY_AWAITS_PROCESS || hung->deadlock != MODEL_NONE)
			continue;
		hung->awaits = WHY_AWAITS_UNKNOWN;
		hung->owner = hung->next = MODEL_NONE;
	}
}
