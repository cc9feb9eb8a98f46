// SPDX-License-Identifier: Apache-2.0
/* Waits for a device, and for pages to be read from one. */
#include "analyze/why/cause/why_blocked_internal.h"

#include <string.h>

#include "analyze/why/lookup/why_evidence.h"
#include "analyze/why/lookup/why_lookup.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"

bool why_blocked_by_program(const struct why_walk *walk, const struct why_blocked *blocked)
{
	return !blocked->waker.interrupt && model_is_traced(walk->model, blocked->waker.thread);
}

static struct why_io_list find_io(struct why_walk *walk, const struct why_blocked *blocked,
				  bool write)
{
	const struct why_io_wait wait = {
		.thread = blocked->thread,
		.dev = walk->path[walk->depth - 1].dev,
		.from = blocked->interval->from_ts,
		.to = blocked->interval->to_ts,
		.write = write,
	};
	struct why_io_list list;

	why_io_find(walk->why, &wait, &list);
	return list;
}

/*
 * Whether the records show that the thread waited for the device: its waker's stack does, or its
 * own together with a request, or its own request, if an interrupt ended the wait. Else requests of
 * others may be for something else, and a thread that is not traced may have released a lock.
 */
static bool is_shown(const struct why_walk *walk, const struct why_blocked *blocked,
		     const struct why_io_list *list)
{
	enum meaning_rule rule = blocked->stack.meaning.rule;

	if (why_blocked_by_program(walk, blocked))
		return false;
	if (blocked->waker.hints & WHY_HINT_DISK)
		return true;
	if (rule == MEANING_READ || rule == MEANING_WRITE)
		return list->sure;
	return list->sure && list->whose == WHY_IO_OWN && blocked->waker.interrupt;
}

/* If a thread is known to have woken it, that thread held a lock of the file. */
static bool held_by_thread(const struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model_wake *wake =
		model_wake_at(walk->model, blocked->thread, blocked->interval->to_ts);

	return wake && wake->kernel_stack && why_blocked_by_program(walk, blocked);
}

struct why_verdict why_blocked_at_device(struct why_walk *walk, struct why_blocked *blocked,
					 bool write)
{
	struct why_io_list list = find_io(walk, blocked, write);

	if (list.whose != WHY_IO_OWN && held_by_thread(walk, blocked)) {
		blocked->kind = WAIT_MUTEX;
		return why_blocked_woken_by(walk, blocked, WHY_GRADE_LIKELY);
	}
	return why_blocked_end(walk, blocked, write ? WHY_DISK_WRITE : WHY_DISK_READ,
			       is_shown(walk, blocked, &list) ? WHY_GRADE_CERTAIN
							      : WHY_GRADE_LIKELY,
			       blocked->thread);
}

struct why_verdict why_blocked_dirty_throttled(struct why_walk *walk, struct why_blocked *blocked)
{
	/* The pages may be those of a file system without a device. */
	return why_blocked_end(walk, blocked, WHY_DISK_WRITE,
			       find_io(walk, blocked, true).sure ? WHY_GRADE_CERTAIN
								 : WHY_GRADE_LIKELY,
			       blocked->thread);
}

struct why_verdict why_blocked_at_fault(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model *model = walk->model;
	const struct model_fault *fault = why_fault_during(
		model, blocked->thread, blocked->interval->from_ts, blocked->interval->to_ts);
	uint64_t address = blocked->wait ? blocked->wait->address : 0;
	bool own = fault && fault->major;

	/* Most likely a lock of the address space. */
	if (!own && held_by_thread(walk, blocked)) {
		blocked->kind = WAIT_OTHER;
		return why_blocked_woken_by(walk, blocked, WHY_GRADE_LIKELY);
	}
	if (!address && fault)
		address = fault->address;
	if (!blocked->object)
		blocked->object = why_mapped_file(walk, model->threads.data[blocked->thread].pid,
						  address, blocked->interval->from_ts);
	walk->path[walk->depth - 1].object = blocked->object;
	return why_blocked_end(walk, blocked, WHY_PAGE_FAULT_MAJOR,
			       own && !why_blocked_by_program(walk, blocked) ? WHY_GRADE_CERTAIN
									     : WHY_GRADE_LIKELY,
			       blocked->thread);
}

/* Whether the end of a request to a device ended the wait, as the waker's stack shows. */
static bool is_ended_by_device(struct why_walk *walk, const struct why_blocked *blocked)
{
	enum worker_for what;

	if (blocked->waker.hints & WHY_HINT_DISK)
		return true;
	why_worker_of_wake(walk, blocked->thread, blocked->interval->to_ts, &what);
	return what == WORKER_ENDS;
}

/* The thread's own requests come before those of others, such as of a worker of the kernel. Of
 * those, the last one that ended in the wait ended it. */
static bool is_for_write(const struct why_walk *walk, const struct why_blocked *blocked,
			 const struct why_io_list *read, const struct why_io_list *write)
{
	const struct model_io *ios = walk->model->ios.data;
	uint64_t read_ts, write_ts;

	if (read->whose != write->whose || read->whose != WHY_IO_OTHERS)
		return write->whose > read->whose;
	read_ts = ios[read->ios[0]].done_ts;
	write_ts = ios[write->ios[0]].done_ts;
	return write_ts <= blocked->interval->to_ts &&
	       (read_ts < write_ts || read_ts > blocked->interval->to_ts);
}

/* A request of others ended the wait, such as one that the kernel held back because of a limit. */
static struct why_verdict at_request_of_others(struct why_walk *walk, struct why_blocked *blocked,
					       const struct why_io_list *read,
					       const struct why_io_list *write)
{
	bool writes = is_for_write(walk, blocked, read, write);

	return why_blocked_end(walk, blocked, writes ? WHY_DISK_WRITE : WHY_DISK_READ,
			       WHY_GRADE_LIKELY, blocked->thread);
}

struct why_verdict why_blocked_at_unknown_device(struct why_walk *walk, struct why_blocked *blocked)
{
	struct why_io_list read = find_io(walk, blocked, false);
	struct why_io_list write = find_io(walk, blocked, true);

	if (read.whose == WHY_IO_OWN || write.whose == WHY_IO_OWN)
		return why_blocked_at_device(walk, blocked, read.whose != WHY_IO_OWN);
	if ((read.whose != WHY_IO_NONE || write.whose != WHY_IO_NONE) &&
	    is_ended_by_device(walk, blocked))
		return at_request_of_others(walk, blocked, &read, &write);
	return blocked->waker.interrupt ? why_blocked_interrupted(walk, blocked)
					: why_blocked_woken_by(walk, blocked, WHY_GRADE_LIKELY);
}

/* Calls that wait for requests without naming a file or device. */
static bool is_request_call(const struct why_blocked *blocked)
{
	const char *name = blocked->facts.syscall;

	return name && (!strcmp(name, "io_uring_enter") || !strcmp(name, "io_getevents") ||
			!strcmp(name, "io_pgetevents"));
}

struct why_verdict why_blocked_polled_device(struct why_walk *walk, struct why_blocked *blocked)
{
	bool by_disk = is_ended_by_device(walk, blocked);
	/* Whose requests there have to be, at least, if the waker's stack shows so much. */
	enum why_io least = blocked->waker.hints & WHY_HINT_DISK ? WHY_IO_NONE
			    : by_disk                            ? WHY_IO_OTHERS
								 : WHY_IO_OWN;
	struct why_io_list read, write;

	if (!by_disk &&
	    (!is_request_call(blocked) || blocked->waker.hints ||
	     model_is_traced(walk->model, blocked->waker.thread)) &&
	    !(blocked->waker.interrupt && is_request_call(blocked) &&
	      !(blocked->waker.hints & ~WHY_HINT_INTERRUPT)))
		return WHY_UNDECIDED;
	read = find_io(walk, blocked, false);
	write = find_io(walk, blocked, true);
	if (read.whose < least && write.whose < least)
		return WHY_UNDECIDED;
	return why_blocked_end(walk, blocked,
			       is_for_write(walk, blocked, &read, &write) ? WHY_DISK_WRITE
									  : WHY_DISK_READ,
			       by_disk && (read.whose == WHY_IO_OWN) != (write.whose == WHY_IO_OWN)
				       ? WHY_GRADE_CERTAIN
				       : WHY_GRADE_LIKELY,
			       blocked->thread);
}
