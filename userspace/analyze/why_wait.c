// SPDX-License-Identifier: Apache-2.0
/* What a blocked thread waited for, and who ended it: all that is told of one wait. */
#include "analyze/why_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/syscall_names.h"

/* Requests that are looked at for one wait. */
#define IO_LOOK_MAX 4096
/* Records of faults that are looked at for one wait. */
#define FAULT_LOOK_MAX 4
/* A timeout in whole milliseconds runs out this much early at most: its thread was on its way. */
#define TIMEOUT_EARLY_NS 1000000

/* What is at hand of a wait while it is told. */
struct telling {
	struct why *why;
	struct why_data *data;
	const struct why_interval *interval;
	const struct model_wait *record; /* or NULL */
	const struct store_object *object;
	const struct wait_syscall *syscall;
	uint32_t thread;
	bool uninterruptible;
	struct why_told kernel, user;
};

uint32_t why_text(struct why *why, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return strtab_add(why->texts, text, strlen(text));
}

static uint64_t arg_of(const struct telling *telling, unsigned number)
{
	uint64_t at = (uint64_t)telling->interval->args + number;

	return telling->interval->args != MODEL_NONE && at < telling->data->model->syscall_args.len
		       ? telling->data->model->syscall_args.data[at]
		       : 0;
}

/* The record of the wait that the interval is in: it may have begun before the capture's first
 * look at the thread. */
static const struct model_wait *find_record(const struct model *model, uint32_t thread,
					    const struct why_interval *interval)
{
	size_t low = 0, high = model->waits.len;
	const struct model_wait *wait;

	/* The first one behind it. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		wait = &model->waits.data[middle];
		if (wait->thread < thread ||
		    (wait->thread == thread && wait->from_ts <= interval->from_ts))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	wait = &model->waits.data[low - 1];
	return wait->thread == thread && wait->to_ts >= interval->to_ts ? wait : NULL;
}

static uint32_t pid_of(const struct telling *telling)
{
	return telling->data->model->threads.data[telling->thread].pid;
}

/* ---- who ended it ---- */

/* The switch that brought the thread back, if that was a wake-up. */
static const struct model_switch *switch_back(const struct telling *telling, size_t index)
{
	const struct model *model = telling->data->model;
	const struct why_interval *at = why_interval_get(telling->data, telling->thread, index + 1);
	uint64_t ts = telling->interval->to_ts;
	size_t low = 0, high = model->switches.len;

	if (at && at->from_ts == ts && at->state == WAFFLE_THREAD_RUNNABLE)
		ts = at->to_ts;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (model->switches.data[middle].ts < ts)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < model->switches.len && model->switches.data[low].ts == ts; low++)
		if (model->switches.data[low].next == telling->thread)
			return model->switches.data[low].flags & WAFFLE_SWITCH_WOKEN
				       ? &model->switches.data[low]
				       : NULL;
	return NULL;
}

static bool tell_waker(const struct telling *telling, size_t index, struct why_wait *wait)
{
	const unsigned interrupts = WAFFLE_SWITCH_WAKER_HARDIRQ | WAFFLE_SWITCH_WAKER_SOFTIRQ;
	const struct why_interval *next =
		why_interval_get(telling->data, telling->thread, index + 1);
	const struct model_switch *sw = switch_back(telling, index);
	const struct model_wake *wake =
		model_wake_at(telling->data->model, telling->thread, telling->interval->to_ts);
	struct why_told told = {0};
	unsigned flags = 0;

	if (next && next->from_ts == telling->interval->to_ts && next->flags & WHY_INTERVAL_WOKEN) {
		wait->by = next->by;
		wait->interrupt = next->flags & WHY_INTERVAL_INTERRUPT;
	}
	if (sw) {
		flags = sw->flags;
		wait->by = sw->waker;
		wait->interrupt = flags & interrupts;
	} else if (wake) {
		flags = wake->flags;
		wait->by = wake->waker;
		wait->interrupt = flags & interrupts;
	}
	wait->soft = flags & WAFFLE_SWITCH_WAKER_SOFTIRQ && !(flags & WAFFLE_SWITCH_WAKER_HARDIRQ);
	if (wake &&
	    !why_stack_told(telling->data, WHY_STACK_WAKE, wake->kernel_stack, wake->ts, &told))
		return false;
	wait->waker_kind = told.kind;
	/* What a thread sends to its own machine arrives while it is still in its call. */
	wait->own = wait->soft && wait->by != MODEL_NONE &&
		    (told.network || wait_socket_is_local(telling->object)) &&
		    !wait_is_kernel_thread(model_comm(telling->data->model, wait->by));
	if (wait->own)
		wait->certain = wait->certain && told.network;
	return true;
}

/* ---- requests to devices ---- */

/* Whether the thread's own request was on its way in the wait; *flags: of the last such. */
static bool own_request(const struct telling *telling, uint32_t *flags)
{
	const struct model *model = telling->data->model;
	size_t low = 0, high = model->ios.len;
	bool found = false;

	/* The first one that was done after the begin. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (model->ios.data[middle].done_ts <= telling->interval->from_ts)
			low = middle + 1;
		else
			high = middle;
	}
	for (unsigned i = 0; i < IO_LOOK_MAX && low < model->ios.len; i++, low++) {
		const struct model_io *io = &model->ios.data[low];

		if (io->done_ts > telling->interval->to_ts)
			break;
		if (io->thread == telling->thread) {
			*flags = io->flags;
			found = true;
		}
	}
	return found;
}

/* ---- what it is ---- */

static bool is_futex(const struct telling *telling)
{
	return telling->syscall->name && !strncmp(telling->syscall->name, "futex", 5);
}

static bool tell_futex(struct telling *telling, struct why_wait *wait)
{
	const struct why_names *names = telling->data->names;
	uint64_t address = arg_of(telling, 0);
	const struct store_mapping *mapping =
		why_mapping_at(telling->data, pid_of(telling), address);
	const char *base = mapping ? strrchr(mapping->path, '/') : NULL;
	const char *variable = names && names->variable
				       ? names->variable(names->arg, pid_of(telling),
							 telling->interval->from_ts, address)
				       : NULL;
	bool python =
		variable ? !strncmp(variable, "_PyRuntime", 10) : base && strstr(base, "python");

	wait->kind = wait_futex_kind(arg_of(telling, 1), arg_of(telling, 2), &wait->certain);
	if (telling->user.kind != WAIT_OTHER) {
		/* A condition variable also has a mutex, which its value tells. */
		if (telling->user.kind != WAIT_CONDITION)
			wait->kind = telling->user.kind;
	} else if (python) {
		wait->kind = WAIT_GIL;
	}
	wait->object =
		wait->kind == WAIT_GIL ? why_text(telling->why, "GIL")
		: variable ? why_text(telling->why, "futex 0x%" PRIx64 " (%s)", address, variable)
			   : why_text(telling->why, "futex 0x%" PRIx64, address);
	return wait->object != STRTAB_NONE;
}

/* Where a major fault was that waited then, as far as sums over several tell; 0: not known. */
static uint64_t fault_address(const struct telling *telling)
{
	const struct model *model = telling->data->model;
	size_t low = 0, high = model->faults.len;

	/* The first one that begins after the wait did. */
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct model_fault *fault = &model->faults.data[middle];

		if (fault->thread < telling->thread ||
		    (fault->thread == telling->thread &&
		     fault->from_ts <= telling->interval->from_ts))
			low = middle + 1;
		else
			high = middle;
	}
	for (unsigned i = 0; i < FAULT_LOOK_MAX && low; i++) {
		const struct model_fault *fault = &model->faults.data[--low];

		if (fault->thread != telling->thread)
			break;
		if (fault->major && fault->to_ts >= telling->interval->to_ts)
			return fault->address;
	}
	return 0;
}

static bool tell_fault(const struct telling *telling, struct why_wait *wait)
{
	uint64_t address = telling->record && telling->record->address ? telling->record->address
								       : fault_address(telling);
	const struct store_mapping *mapping =
		address ? why_mapping_at(telling->data, pid_of(telling), address) : NULL;
	uint32_t flags;

	wait->kind = telling->kernel.kind == WAIT_KERNEL_LOCK ? WAIT_KERNEL_LOCK : WAIT_FAULT;
	wait->evidence = own_request(telling, &flags);
	wait->certain = address || wait->evidence;
	if (mapping && *mapping->path)
		wait->object = why_text(telling->why, "%s", mapping->path);
	else if (telling->object)
		wait->object = why_text(telling->why, "%s", telling->object->name);
	else if (telling->kernel.text)
		wait->object = why_text(telling->why, "%s", telling->kernel.text);
	return wait->object != STRTAB_NONE;
}

/* By the file that the call waits for, or by what the kernel did, or by the call alone. */
static enum wait_kind file_kind(const struct telling *telling, bool *certain)
{
	enum wait_kind kind = telling->kernel.kind;

	*certain = true;
	if (kind != WAIT_OTHER)
		return kind;
	if (telling->syscall->file || telling->syscall->kind == WAIT_POLL)
		kind = wait_object_kind(telling->object, telling->uninterruptible);
	if (telling->syscall->kind == WAIT_POLL || telling->syscall->kind == WAIT_DISK)
		kind = telling->syscall->kind;
	if (kind != WAIT_OTHER)
		return kind;
	*certain = telling->syscall->kind != WAIT_OTHER;
	if (telling->uninterruptible && (telling->syscall->file || telling->syscall->metadata))
		return WAIT_DISK;
	return telling->syscall->kind;
}

static bool tell_file(struct telling *telling, struct why_wait *wait)
{
	const struct store_object *object = telling->object;
	const char *text = telling->kernel.text;
	uint32_t flags;

	wait->kind = file_kind(telling, &wait->certain);
	if ((telling->user.kind == WAIT_GPU || telling->user.kind == WAIT_COLLECTIVE) &&
	    (wait->kind == WAIT_OTHER || wait->kind == WAIT_POLL)) {
		wait->kind = telling->user.kind;
		wait->certain = false;
	}
	if (telling->syscall->count && telling->interval->args != MODEL_NONE &&
	    !arg_of(telling, telling->syscall->count - 1))
		wait->kind = WAIT_SLEEP;
	if (object)
		text = wait->kind == WAIT_SOCKET && *object->detail ? object->detail : object->name;
	if (wait->kind == WAIT_DISK) {
		wait->write = telling->syscall->write;
		wait->evidence = own_request(telling, &flags);
		if (wait->evidence && telling->syscall->metadata)
			wait->write = flags & WAFFLE_IO_WRITE;
		if (object && *object->name == '/')
			wait->evidence = true;
	}
	if (text)
		wait->object = why_text(telling->why, "%s", text);
	return wait->object != STRTAB_NONE;
}

/* Kinds that a system call tells all by itself. */
static bool told_by_call(const struct wait_syscall *syscall)
{
	return syscall->kind == WAIT_SLEEP || syscall->kind == WAIT_EXIT ||
	       syscall->kind == WAIT_EVENT || syscall->kind == WAIT_SIGNAL;
}

static bool tell_kind(struct telling *telling, struct why_wait *wait)
{
	bool fault = telling->record && telling->record->address;

	if (telling->interval->task_state & (WAFFLE_TASK_STOPPED | WAFFLE_TASK_TRACED)) {
		wait->kind = WAIT_STOPPED;
		return true;
	}
	if (fault || (telling->interval->syscall < 0 && telling->uninterruptible))
		return tell_fault(telling, wait);
	if (is_futex(telling))
		return tell_futex(telling, wait);
	if (told_by_call(telling->syscall)) {
		wait->kind = telling->syscall->kind;
		return true;
	}
	return tell_file(telling, wait);
}

/* What only its end tells: of calls that wait for several things, or for nobody knows what. */
static void tell_by_end(const struct telling *telling, struct why_wait *wait)
{
	uint64_t length = telling->interval->to_ts - telling->interval->from_ts;
	const char *name = telling->syscall->name;
	uint32_t flags;

	if (wait->kind == WAIT_POLL && wait->waker_kind == WAIT_OTHER && name &&
	    !strcmp(name, "poll") && wait->interrupt) {
		uint64_t timeout_ms = arg_of(telling, 2);

		if (timeout_ms && timeout_ms <= INT32_MAX &&
		    length + TIMEOUT_EARLY_NS >= timeout_ms * 1000000)
			wait->waker_kind = WAIT_TIMER;
	}
	if (wait->kind != WAIT_POLL && wait->kind != WAIT_OTHER)
		return;
	if (wait->waker_kind == WAIT_OTHER && wait->interrupt && own_request(telling, &flags)) {
		wait->waker_kind = WAIT_DISK;
		wait->evidence = true;
		wait->write = flags & WAFFLE_IO_WRITE;
	}
	if (wait->waker_kind != WAIT_OTHER) {
		wait->kind = wait->waker_kind;
		wait->certain = true;
	}
}

bool why_wait_of(struct why *why, struct why_data *data, uint32_t thread, size_t index,
		 struct why_wait *wait)
{
	const struct model *model = data->model;
	struct telling telling = {.why = why, .data = data, .thread = thread};
	const struct why_interval *interval = why_interval_get(data, thread, index);

	*wait = (struct why_wait){
		.by = MODEL_NONE, .wait = MODEL_NONE, .wake_ts = interval->to_ts, .certain = true};
	telling.interval = interval;
	telling.record = find_record(model, thread, interval);
	telling.syscall = wait_syscall_of(
		interval->syscall < 0 ? NULL
				      : syscall_name(model->meta->machine, interval->syscall));
	telling.uninterruptible = interval->task_state & WAFFLE_TASK_UNINTERRUPTIBLE;
	if (telling.record) {
		const struct model_wait *record = telling.record;

		wait->wait = (uint32_t)(record - model->waits.data);
		telling.object = store_reader_object(model->reader, record->object);
		if (!why_stack_told(data, WHY_STACK_WAIT, record->kernel_stack, record->from_ts,
				    &telling.kernel) ||
		    !why_stack_told(data, WHY_STACK_USER, record->user_stack, record->from_ts,
				    &telling.user))
			return false;
	}
	if (!tell_kind(&telling, wait) || !tell_waker(&telling, index, wait))
		return false;
	tell_by_end(&telling, wait);
	return true;
}
