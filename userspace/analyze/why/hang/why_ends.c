// SPDX-License-Identifier: Apache-2.0
/* Waits at pipes, for locks of files, and for children, which another process has to end. The text
 * of the awaited file says which process holds the other end or the lock, as the descriptors of all
 * processes showed when the capture ended. If it has one thread, that one has to end the wait. */
#include <string.h>

#include "analyze/why/hang/why_hang_internal.h"
#include "analyze/why/lookup/why_holder.h"
#include "analyze/why/lookup/why_wait.h"
#include "target/process/pipe_ends.h"
#include "util/memory.h"
#include "util/syscall_names.h"

#define SEVERAL (MAP_NONE - 1)

/* The only living thread of each process, or SEVERAL. */
static void threads_find(struct map *only, const struct model *model)
{
	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];

		if (why_hang_is_alive(thread))
			map_put(only, thread->pid,
				map_get(only, thread->pid) == MAP_NONE ? i : SEVERAL);
	}
}

static uint32_t only_thread(const struct map *only, uint32_t pid)
{
	uint32_t thread = pid ? map_get(only, pid) : MAP_NONE;

	return thread == SEVERAL || thread == MAP_NONE ? MODEL_NONE : thread;
}

/* The only thread of the only process that holds what a wait is for; MODEL_NONE: it is not known.
 * A socket's read may have a timeout (SO_RCVTIMEO), and a server waits there for its next request,
 * so such a wait is no deadlock. */
static uint32_t holder_of(const struct model *model, const struct map *only,
			  const struct model_open_wait *wait)
{
	const struct store_object *object = store_reader_object(model->reader, wait->object);

	return object && !descriptor_is_socket(object->name)
		       ? only_thread(only, why_holder_pid(object))
		       : MODEL_NONE;
}

/* The only thread of the only child that a wait is for; MODEL_NONE: it is not known. */
static uint32_t child_of(const struct why_hangs *hangs, const struct model *model,
			 const struct map *only, const struct model_open_wait *wait)
{
	uint32_t children[WHY_CHILDREN];

	return why_hang_children(hangs, model, wait, children) == 1
		       ? only_thread(only, model->threads.data[children[0]].pid)
		       : MODEL_NONE;
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

/* The thread of another process that has to end a wait; MODEL_NONE: it is not known. A thread that
 * is stopped waits to be continued. */
static uint32_t ender_of(const struct why_hangs *hangs, const struct model *model,
			 const struct map *only, const struct model_open_wait *wait,
			 const char *call)
{
	if (wait->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED))
		return MODEL_NONE;
	if (wait_call_of(call) == WAIT_CALL_FILE_LOCK)
		return holder_of(model, only, wait);
	if (wait->ts - wait->from_ts < WHY_STANDSTILL_NS)
		return MODEL_NONE;
	if (wait_call_of(call) == WAIT_CALL_CHILD)
		return child_of(hangs, model, only, wait);
	return has_no_timeout(model, wait, call) ? holder_of(model, only, wait) : MODEL_NONE;
}

void why_ends_find(struct why_hangs *hangs, const struct model *model)
{
	struct map only = {0};

	threads_find(&only, model);
	for (size_t i = 0; i < hangs->waits.len; i++) {
		struct why_hung *hung = &hangs->waits.data[i];
		const struct model_open_wait *wait = &model->open_waits.data[hung->wait];
		const char *call;

		if (hung->awaits != WHY_AWAITS_UNKNOWN || wait->syscall < 0)
			continue;
		call = syscall_name(model->meta->machine, wait->syscall);
		hung->owner = ender_of(hangs, model, &only, wait, call);
		if (hung->owner == MODEL_NONE)
			continue;
		/* A descendant that has inherited the lock may release it as well. */
		hung->sure = wait_call_of(call) == WAIT_CALL_FILE_LOCK &&
			     !pipe_end_is_shared(
				     store_reader_object(model->reader, wait->object)->detail);
		hung->awaits = hung->sure ? WHY_AWAITS_LOCK : WHY_AWAITS_PROCESS;
	}
	map_free(&only);
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
