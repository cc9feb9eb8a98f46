// SPDX-License-Identifier: Apache-2.0
/* What became ready in an epoll: its record says what that was when the thread got its CPU. */
#include "analyze/why/why_blocked_internal.h"

#include <string.h>

#include "target/process/descriptors.h"
#include "util/memory.h"

/* What only one kind of file can have done. */
static const struct {
	uint32_t hint;
	const char *name; /* a part of that file's name */
} done_by[] = {{WHY_HINT_SOCKET, "socket:"}, {WHY_HINT_TIMER, "[timerfd]"}};

/* Whether the stack of the wake-up shows that something else woke the thread, such as its timeout.
 * Then the file became ready later, while the thread waited for a CPU. */
static bool came_later(const struct store_object *object, uint32_t hints)
{
	for (size_t i = 0; i < sizeof(done_by) / sizeof(done_by[0]); i++)
		if (hints & done_by[i].hint && !strstr(object->name, done_by[i].name))
			return true;
	return false;
}

/* The object that a later wait of the thread had. */
static const struct store_object *object_of(const struct why_walk *walk, uint32_t thread,
					    size_t index)
{
	const struct why_interval *interval =
		&walk->intervals.threads[thread].intervals.data[index];
	const struct model_wait *wait = model_wait_at(walk->model, thread, interval->from_ts);

	return wait ? store_reader_object(walk->model->reader, wait->object) : NULL;
}

bool why_blocked_find_ready(const struct why_walk *walk, struct why_blocked *blocked, size_t last)
{
	struct wait_facts *facts = &blocked->facts;
	const struct store_object *object = facts->object;

	if (!facts->syscall || strncmp(facts->syscall, "epoll_", strlen("epoll_")) != 0)
		return false;
	if (last > blocked->index)
		object = object_of(walk, blocked->thread, last);
	if (object && !descriptor_is_epoll(object->name) &&
	    came_later(object, blocked->waker.hints))
		object = NULL;
	if (object == facts->object)
		return false;
	facts->object = object;
	return true;
}
