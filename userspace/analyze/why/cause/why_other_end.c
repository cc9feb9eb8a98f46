// SPDX-License-Identifier: Apache-2.0
/* The other end of a pipe or connection, as it was when the capture ended. */
#include "analyze/why/cause/why_blocked_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/why_verdict.h"
#include "target/process/pipe_ends.h"
#include "util/memory.h"
#include "util/syscall_names.h"

#define STOPPED_TEXT "stopped when the capture ended"
#define GONE_TEXT "no socket is at the other end any more"

static void say(struct why_walk *walk, const char *text)
{
	walk->path[walk->depth - 1].meaning = strtab_put(walk->why->texts, text, strlen(text));
}

struct why_verdict why_blocked_at_stopped_holders(struct why_walk *walk,
						  const struct why_blocked *blocked)
{
	const struct store_object *object = blocked->facts.object;

	if (!blocked->interval->open || !object || !pipe_end_is_stopped(object->detail))
		return WHY_UNDECIDED;
	say(walk, STOPPED_TEXT);
	return why_blocked_end(walk, blocked, WHY_STOPPED, WHY_GRADE_LIKELY, MODEL_NONE);
}

struct why_verdict why_blocked_at_gone(struct why_walk *walk, struct why_blocked *blocked)
{
	if (!blocked->interval->open || !wait_may_be_at_socket(blocked->kind) ||
	    !why_is_gone(walk, blocked->facts.object))
		return WHY_UNDECIDED;
	say(walk, GONE_TEXT);
	blocked->object = why_blocked_object_with(walk, blocked->object, GONE_TEXT);
	return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, MODEL_NONE);
}

/* The peer may be about to read what arrived just before the capture ended. */
#define UNREAD_NS 100000000ull

static bool is_long(const struct model_open_wait *wait)
{
	return wait && wait->ts - wait->from_ts >= UNREAD_NS;
}

/* The name of poll(), epoll_wait() or the like, if a thread has waited there for long; else NULL.
 */
static const char *long_poll(const struct model *model, uint32_t thread)
{
	const struct model_open_wait *wait = model_open_wait_of(model, thread);
	const char *name = is_long(wait) && wait->syscall >= 0
				   ? syscall_name(model->meta->machine, wait->syscall)
				   : NULL;

	switch (wait_call_of(name)) {
	case WAIT_CALL_POLL:
	case WAIT_CALL_POLL_LIST:
	case WAIT_CALL_SELECT:
		return name;
	default:
		return NULL;
	}
}

struct why_verdict why_blocked_at_unread(struct why_walk *walk, struct why_blocked *blocked,
					 uint32_t peer)
{
	const struct model *model = walk->model;
	uint32_t bytes = why_socket_unread(walk, blocked->facts.object);
	const char *call = long_poll(model, peer);
	char unread[48] = "", text[128];

	/* A proxy may leave them unread until another server has answered it. */
	if (!bytes || !call || !blocked->interval->open ||
	    why_is_asker(walk, model->threads.data[peer].pid) ||
	    !is_long(model_open_wait_of(model, blocked->thread)))
		return WHY_UNDECIDED;
	if (!pipe_end_unread(blocked->facts.object->detail)) /* which says it already */
		snprintf(unread, sizeof(unread), "%" PRIu32 " bytes are unread there, while ",
			 bytes);
	snprintf(text, sizeof(text), "%s%.32s waits in %s", unread, model_thread_name(model, peer),
		 call);
	say(walk, text);
	blocked->object = why_blocked_object_with(walk, blocked->object, text);
	return why_blocked_end(walk, blocked, WHY_SOCKET, WHY_GRADE_LIKELY, peer);
}
