// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/details.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/enrich/memory_internal.h"
#include "capture/enrich/naming_internal.h"
#include "capture/enrich/processes_internal.h"
#include "capture/enrich/stack_numbers_internal.h"
#include "capture/enrich/stacks_internal.h"
#include "target/loader/needed.h"
#include "util/clock.h"
#include "util/map.h"

#define WOKEN_MAX (1u << 19)

struct details {
	struct kernel *kernel;
	struct processes processes;
	struct memory *memory;
	struct naming *naming;
	struct stacks *span_stacks; /* NULL: stacks of spans are not recorded */
	struct stack_numbers *stack_numbers;
	struct map woken; /* tid of a thread that an interrupt woke → flags of its switch */
};

bool details_is_private(const struct details *details, pid_t pid)
{
	return processes_is_private(&details->processes, pid);
}

bool details_wants_mappings(const struct details *details)
{
	uint32_t users = WAFFLE_WAIT_STACKS | WAFFLE_WAIT_FAULTS;

	return kernel_wait_sources(details->kernel) & users || details->span_stacks;
}

/* On failure, too, what was opened is in *details. */
static int modules_open(struct details *details, struct store_writer *writer, struct error *err)
{
	struct stack_numbers_uses uses = {
		.kernel = details->kernel, .writer = writer, .processes = &details->processes};
	int result = memory_open(&details->memory, details->kernel, writer, err)
			     ?: naming_open(&details->naming, writer, err);

	if (!result && kernel_stacks_wanted(details->kernel))
		result = stacks_open(&details->span_stacks, details->kernel, writer, err);
	uses.memory = details->memory;
	uses.python = details->span_stacks;
	return result ?: stack_numbers_open(&details->stack_numbers, &uses, err);
}

int details_open(struct details **details, struct kernel *kernel, struct store_writer *writer,
		 struct error *err)
{
	struct details *made = calloc(1, sizeof(*made));
	int result;

	*details = NULL;
	if (!made)
		return error_set(err, ENOMEM, "out of memory");
	made->kernel = kernel;
	made->processes.kernel = kernel;
	result = modules_open(made, writer, err);
	if (result) {
		details_close(made);
		return result;
	}
	*details = made;
	return 0;
}

void details_close(struct details *details)
{
	if (!details)
		return;
	stack_numbers_close(details->stack_numbers);
	memory_close(details->memory);
	naming_close(details->naming);
	stacks_free(details->span_stacks);
	processes_free(&details->processes);
	map_free(&details->woken);
	free(details);
}

uint64_t details_stacks_left_out(const struct details *details)
{
	return stack_numbers_left_out(details->stack_numbers);
}

uint64_t details_unparsed(const struct details *details)
{
	return memory_unparsed(details->memory);
}

const char *details_stack_warning(const struct details *details)
{
	return details->span_stacks ? stacks_warning(details->span_stacks) : NULL;
}

/* Writes the mappings of the program that runs since `ts` or earlier before they are requested,
 * since the process may be gone later. */
static int mappings_write(struct details *details, pid_t pid, uint64_t ts, struct error *err)
{
	bool wanted =
		details_wants_mappings(details) && !processes_is_private(&details->processes, pid);

	return wanted ? memory_need(details->memory, pid, ts, NULL, 0, err) : 0;
}

/* ---- the stages of a record ---- */

void details_process_record(struct details *details, const struct waffle_rec *rec,
			    bool gains_rights)
{
	processes_record(&details->processes, rec, gains_rights);
}

static void address_space_forget(struct details *details, pid_t pid)
{
	memory_forget(details->memory, pid);
	if (details->span_stacks)
		stacks_forget(details->span_stacks, pid);
}

static int address_space_fork(struct details *details, const struct waffle_rec_fork *fork,
			      struct error *err)
{
	pid_t parent = (pid_t)fork->tgid, child = (pid_t)fork->child_tgid;

	memory_fork(details->memory, parent, child);
	return details->span_stacks ? stacks_fork(details->span_stacks, parent, child, err) : 0;
}

int details_address_space(struct details *details, const struct waffle_rec *rec, bool gains_rights,
			  struct error *err)
{
	pid_t pid = (pid_t)((const struct waffle_rec_exit *)rec)->tgid;
	int result;

	if (rec->kind == WAFFLE_REC_FORK)
		return address_space_fork(details, (const struct waffle_rec_fork *)rec, err);
	if (rec->kind == WAFFLE_REC_EXIT) {
		if (rec->tid == (uint32_t)pid)
			address_space_forget(details, pid);
		return 0;
	}
	result = memory_exec(details->memory, pid, rec->ts, gains_rights, err);
	if (details->span_stacks)
		stacks_forget(details->span_stacks, pid);
	return result ?: mappings_write(details, pid, rec->ts, err);
}

/* The descriptor may be closed soon, so it is looked up first. */
static int64_t wait_object(struct details *details, struct waffle_rec_wait *wait, struct error *err)
{
	struct file_key key = {.ino = wait->ino, .dev = wait->dev};
	int fd = (int)wait->object;
	char kind[sizeof(wait->address) + 1] = "";
	uint32_t pid;
	int64_t object;

	wait->object = 0;
	if (!wait->ino) /* a page fault */
		return 0;
	memcpy(kind, &wait->address, sizeof(wait->address));
	wait->address = 0;
	pid = processes_readable(&details->processes, wait->rec.tid);
	object = naming_file(details->naming, (pid_t)pid, fd, &key, kind, err);
	wait->object = object > 0 ? (uint32_t)object : 0;
	return object;
}

int details_object(struct details *details, struct waffle_rec *rec, struct error *err)
{
	int64_t number = 0;

	if (rec->kind == WAFFLE_REC_WAIT)
		number = wait_object(details, (struct waffle_rec_wait *)rec, err);
	else if (rec->kind == WAFFLE_REC_IO)
		number = naming_device(details->naming, ((const struct waffle_rec_io *)rec)->dev,
				       err);
	else if (rec->kind == WAFFLE_REC_QUOTA)
		number = naming_cgroup(details->naming, (pid_t)rec->tid,
				       ((const struct waffle_rec_quota *)rec)->cgroup, err);
	return number < 0 ? (int)number : 0;
}

int details_addresses(struct details *details, const struct waffle_rec *rec, struct error *err)
{
	const struct waffle_rec_wait *wait = (const struct waffle_rec_wait *)rec;
	const struct waffle_rec_fault *fault = (const struct waffle_rec_fault *)rec;
	uint64_t addresses[2];
	uint32_t count, pid;

	if (rec->kind == WAFFLE_REC_FAULT) {
		addresses[0] = fault->address;
		addresses[1] = fault->ip;
		count = 2;
	} else {
		addresses[0] = wait->address;
		count = wait->address != 0;
	}
	pid = count ? processes_readable(&details->processes, rec->tid) : 0;
	return pid ? memory_need(details->memory, (pid_t)pid, rec->ts, addresses, count, err) : 0;
}

int details_stacks(struct details *details, struct waffle_rec *rec, struct error *err)
{
	struct stack_numbers *numbers = details->stack_numbers;
	struct waffle_rec_wait *wait = (struct waffle_rec_wait *)rec;
	struct waffle_rec_wake *wake = (struct waffle_rec_wake *)rec;

	switch (rec->kind) {
	case WAFFLE_REC_TRACE:
		return stack_numbers_trace(numbers, rec, err);
	case WAFFLE_REC_FRAMES:
		return stack_numbers_frames(numbers, rec, err);
	case WAFFLE_REC_CODE:
		return details->span_stacks ? stacks_code(details->span_stacks,
							  (const struct waffle_rec_code *)rec)
					    : 0;
	case WAFFLE_REC_WAIT:
		stack_numbers_replace(numbers, rec->tid, wait->from_ts, &wait->kernel_stack,
				      &wait->user_stack);
		return 0;
	case WAFFLE_REC_WAKE:
		stack_numbers_replace(numbers, rec->tid, rec->ts, &wake->kernel_stack,
				      &wake->user_stack);
		return 0;
	case WAFFLE_REC_EXIT:
		stack_numbers_forget(numbers, rec->tid);
		return 0;
	default: /* STACK is made here, of FRAMES: it never comes from the kernel */
		return -EINVAL;
	}
}

static void interrupt_wakes(struct details *details, struct waffle_rec_wake *wake)
{
	if (!stack_numbers_is_interrupt(details->stack_numbers, wake->kernel_stack))
		return;
	/* The interrupt came during a system call, which the BPF program cannot detect. So the user
	 * stack does not belong to the waker. */
	wake->user_stack = 0;
	if (!(wake->flags & WAFFLE_SWITCH_WAKER_HARDIRQ) && details->woken.len < WOKEN_MAX)
		map_set(&details->woken, wake->woken_tid, WAFFLE_SWITCH_WAKER_HARDIRQ);
	wake->flags |= WAFFLE_SWITCH_WAKER_HARDIRQ;
}

void details_interrupt(struct details *details, struct waffle_rec *rec)
{
	struct waffle_rec_switch *to = (struct waffle_rec_switch *)rec;
	uint32_t flags;

	if (rec->kind == WAFFLE_REC_WAKE) {
		interrupt_wakes(details, (struct waffle_rec_wake *)rec);
	} else if (details->woken.len) {
		flags = map_remove(&details->woken, to->next_tid);
		if (flags != MAP_NONE && to->flags & WAFFLE_SWITCH_WOKEN)
			to->flags |= (uint8_t)flags;
	}
}

void details_forget(struct details *details, pid_t pid)
{
	processes_forget(&details->processes, pid);
	address_space_forget(details, pid);
	stack_numbers_forget(details->stack_numbers, (uint32_t)pid);
}

/* ---- mapping events, files and processes ---- */

int details_told(struct details *details, const struct told_event *told, struct error *err)
{
	uint32_t pid = (uint32_t)told->event.pid;
	bool may_get_rights;

	/* The previous program, which may have been privileged, is gone. */
	if (told->event.kind == MMAP_EXEC)
		processes_begin(&details->processes, (pid_t)pid);
	else if (pid && processes_is_private(&details->processes, (pid_t)pid))
		return 0;
	/* Processes that are not targets have no exec record for which their mappings could wait.
	 */
	if (!details_wants_mappings(details) ||
	    (!told->traced && pid && processes_of_thread(&details->processes, pid) != pid))
		return 0;
	may_get_rights = kernel_program_since(details->kernel, (pid_t)pid) != UINT64_MAX;
	return memory_told(details->memory, &told->event, may_get_rights, err);
}

int details_round(struct details *details, struct error *err)
{
	int result = details->span_stacks ? stacks_round(details->span_stacks, err) : 0;

	return result ?: memory_late(details->memory, false, err);
}

int details_finish(struct details *details, struct error *err)
{
	return memory_late(details->memory, true, err);
}

static void file_needed(int fd, const char *path, bool ours, void *arg)
{
	(void)ours;
	stacks_file(arg, fd, path);
}

void details_file(struct details *details, int fd, const char *path)
{
	if (details->span_stacks)
		stacks_file(details->span_stacks, fd, path);
}

void details_needed(struct details *details, pid_t pid)
{
	if (details->span_stacks)
		needed_each(pid, file_needed, details->span_stacks);
}

int details_process(struct details *details, pid_t pid, struct error *err)
{
	int result = details->span_stacks ? stacks_process(details->span_stacks, pid, err) : 0;

	return result ?: mappings_write(details, pid, clock_monotonic_ns(), err);
}

int details_tables(struct details *details, bool traced, struct error *err)
{
	return details->span_stacks ? stacks_ready(details->span_stacks, traced, err) : 0;
}
