// SPDX-License-Identifier: Apache-2.0
/* Waits for a device, and for pages to be read from one. */
#include "analyze/why_blocked.h"

#include <errno.h>
#include <string.h>

/* A device's interrupt, or a kernel thread on its behalf, ends a wait for the device. A thread of a
 * program releases something else, such as a lock. */
static bool woken_by_program(const struct why_walk *walk, const struct why_blocked *blocked)
{
	return !blocked->ender.interrupt && model_is_traced(walk->model, blocked->ender.thread);
}

/* If a thread is known to have woken it, that thread held a lock of the file. */
static bool held_by_thread(const struct why_walk *walk, const struct why_blocked *blocked)
{
	const struct model_wake *wake =
		model_wake_at(walk->model, blocked->thread, blocked->interval->to_ts);

	return wake && wake->kernel_stack && woken_by_program(walk, blocked);
}

int why_blocked_at_device(struct why_walk *walk, struct why_blocked *blocked, bool write)
{
	enum why_io io = why_io_during(walk->model, blocked->thread, blocked->interval->from_ts,
				       blocked->interval->to_ts, write);

	if (io != WHY_IO_OWN && held_by_thread(walk, blocked)) {
		blocked->kind = WAIT_MUTEX;
		return why_blocked_woken_by(walk, blocked, WHY_GRADE_LIKELY);
	}
	return why_blocked_end(walk, blocked, write ? WHY_DISK_WRITE : WHY_DISK_READ,
			       io == WHY_IO_NONE || woken_by_program(walk, blocked)
				       ? WHY_GRADE_LIKELY
				       : WHY_GRADE_CERTAIN,
			       blocked->thread);
}

int why_blocked_at_fault(struct why_walk *walk, struct why_blocked *blocked)
{
	const struct model *model = walk->model;
	const struct model_fault *fault = why_fault_during(
		model, blocked->thread, blocked->interval->from_ts, blocked->interval->to_ts);
	uint64_t address = blocked->wait ? blocked->wait->address : 0;
	bool read = fault && fault->major;

	/* Most likely a lock of the address space. */
	if (!read && held_by_thread(walk, blocked)) {
		blocked->kind = WAIT_OTHER;
		return why_blocked_woken_by(walk, blocked, WHY_GRADE_LIKELY);
	}
	/* Another thread has started to read the page. */
	if (!read && blocked->facts.task_state & WAFFLE_TASK_UNINTERRUPTIBLE)
		read = why_io_during(model, blocked->thread, blocked->interval->from_ts,
				     blocked->interval->to_ts, false) != WHY_IO_NONE;
	if (!address && fault)
		address = fault->address;
	if (!blocked->object)
		blocked->object = why_mapped_file(walk, model->threads.data[blocked->thread].pid,
						  address, blocked->interval->from_ts);
	if (blocked->object == STRTAB_NONE)
		return -ENOMEM;
	walk->path[walk->depth - 1].object = blocked->object;
	return why_blocked_end(walk, blocked, WHY_PAGE_FAULT_MAJOR,
			       read && !woken_by_program(walk, blocked) ? WHY_GRADE_CERTAIN
									: WHY_GRADE_LIKELY,
			       blocked->thread);
}

int why_blocked_at_unknown_device(struct why_walk *walk, struct why_blocked *blocked)
{
	uint64_t from = blocked->interval->from_ts, to = blocked->interval->to_ts;

	for (int write = 0; write < 2; write++)
		if (why_io_during(walk->model, blocked->thread, from, to, write) == WHY_IO_OWN)
			return why_blocked_at_device(walk, blocked, write);
	return blocked->ender.interrupt ? why_blocked_interrupted(walk, blocked)
					: why_blocked_woken_by(walk, blocked, WHY_GRADE_LIKELY);
}

/* Calls that wait for requests without naming a file or device. */
static bool is_request_call(const struct why_blocked *blocked)
{
	const char *name = blocked->facts.syscall;

	return name && (!strcmp(name, "io_uring_enter") || !strcmp(name, "io_getevents") ||
			!strcmp(name, "io_pgetevents"));
}

int why_blocked_polled_device(struct why_walk *walk, struct why_blocked *blocked)
{
	uint64_t from = blocked->interval->from_ts, to = blocked->interval->to_ts;
	bool told = blocked->ender.hints & WHY_HINT_DISK;
	enum why_io read, write;

	if (!told &&
	    (!is_request_call(blocked) || blocked->ender.hints ||
	     model_is_traced(walk->model, blocked->ender.thread)) &&
	    !(blocked->ender.interrupt && is_request_call(blocked) &&
	      !(blocked->ender.hints & ~WHY_HINT_INTERRUPT)))
		return 1;
	read = why_io_during(walk->model, blocked->thread, from, to, false);
	write = why_io_during(walk->model, blocked->thread, from, to, true);
	if (!told && read != WHY_IO_OWN && write != WHY_IO_OWN)
		return 1;
	return why_blocked_end(walk, blocked, write > read ? WHY_DISK_WRITE : WHY_DISK_READ,
			       told && (read == WHY_IO_OWN) != (write == WHY_IO_OWN)
				       ? WHY_GRADE_CERTAIN
				       : WHY_GRADE_LIKELY,
			       blocked->thread);
}
