// SPDX-License-Identifier: Apache-2.0
/* Finds the file for which a thread with an epoll, or with a list of files, waited. The record of a
 * wait with an epoll has the file that was ready when the thread got its CPU. */
#include "analyze/why/cause/why_blocked_internal.h"

#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_polled.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "util/syscall_names.h"

/* Wake-ups that only one kind of file can cause. */
static const struct {
	uint32_t hint;
	const char *name; /* a part of that file's name */
} done_by[] = {{WHY_HINT_SOCKET, DESCRIPTOR_SOCKET}, {WHY_HINT_TIMER, DESCRIPTOR_TIMER_KIND}};

/* True: the stack of the wake-up shows that something else woke the thread, such as its timeout.
 * The file became ready later, while the thread waited for a CPU. */
static bool came_later(const struct store_object *object, uint32_t hints)
{
	for (size_t i = 0; i < sizeof(done_by) / sizeof(done_by[0]); i++)
		if (hints & done_by[i].hint && !strstr(object->name, done_by[i].name))
			return true;
	return false;
}

/* Whether a thread with an epoll waited for something else than the socket that the record has. A
 * socket that is being connected is named because it was not ready: outside of all spans, a thread
 * waits for whatever comes at any of its sockets. */
static bool is_other(const struct store_object *object, const struct why_blocked *blocked)
{
	if (descriptor_is_epoll(object->name))
		return false;
	if (descriptor_is_connecting(object->detail))
		return blocked->waiting.outside && descriptor_is_among(object->detail);
	return came_later(object, blocked->waker.hints);
}

/* A poll() of a connection and of eventfds. If a recorded thread ended the wait, it is known
 * without the connection, and may have used an eventfd. */
static bool find_polled(const struct why_walk *walk, struct why_blocked *blocked)
{
	const struct store_object *object = blocked->facts.object;

	if (!object || blocked->kind != WAIT_POLL ||
	    (!blocked->waker.interrupt && model_is_traced(walk->model, blocked->waker.thread)))
		return false;
	object = why_polled_connection(walk, object);
	if (object)
		blocked->facts.object = object;
	return object;
}

bool why_blocked_find_ready(const struct why_walk *walk, struct why_blocked *blocked, size_t last)
{
	struct wait_facts *facts = &blocked->facts;
	const struct store_object *object = facts->object;

	if (!syscall_name_is_epoll(facts->syscall))
		return find_polled(walk, blocked);
	if (last > blocked->index)
		object = why_wait_object(
			walk, blocked->thread,
			&walk->intervals.threads[blocked->thread].intervals.data[last]);
	if (object && is_other(object, blocked))
		object = NULL;
	if (object == facts->object)
		return false;
	facts->object = object;
	return true;
}
