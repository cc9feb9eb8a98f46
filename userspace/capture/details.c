// SPDX-License-Identifier: Apache-2.0
#include "capture/details.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/memory.h"
#include "capture/naming.h"
#include "capture/stacks.h"
#include "capture/told.h"
#include "target/needed.h"
#include "util/map.h"
#include "util/vec.h"

#define THREADS_MAX (1u << 19) /* per map of threads */
#define STACKS_MAX (1u << 20)
#define WALKS_MAX (1u << 16)
#define TRACES_MAX (1u << 18) /* a power of two */
#define TRACE_LATE_NS 1000000000ull
#define SYMBOLS_MAX (1u << 20)

/* A stack with the kernel's number, to which records refer. */
struct trace {
	uint64_t ts;
	uint32_t number; /* the kernel's number; 0: unused */
	uint32_t stack;  /* number in the file */
};

/* The user stack of a thread's wait or wake-up. */
struct walk {
	uint64_t ts;
	uint32_t number; /* number in the file */
};

struct details {
	struct kernel *kernel;
	struct store_writer *writer;
	struct memory *memory;
	struct naming *naming;
	struct told *told;          /* NULL: mappings are not recorded */
	struct stacks *span_stacks; /* NULL: stacks of spans are not recorded */
	struct map tgids;           /* tid → tgid of the most recent threads */
	struct map old_tgids;       /* the previous generation; see thread_is_of() */
	struct trace *traces;       /* the last TRACES_MAX, by the kernel's number */
	uint64_t stacks_left_out;   /* see details_stacks_left_out() */
	/* tid → index in `walks`: the user stack of a wait that was unwound by tables. It precedes
	 * the record of the wait. */
	struct map waits;
	VEC(struct walk) walks;
	VEC(uint32_t) unused_walks;
	struct map frames; /* hash of a process (0: the kernel) and a stack → number in the file */
	uint32_t stack_count;
	struct map private; /* pids whose program was privileged at the last record */
	struct map symbols; /* kernel addresses that were named */
	VEC(bool)
	interrupts; /* indexed by the file's number of a stack, minus 1: it is an interrupt's */
	struct map woken; /* tid of a thread that an interrupt woke → flags of its switch */
};

static bool mappings_wanted(const struct details *details)
{
	uint32_t users = WAFFLE_WAIT_STACKS | WAFFLE_WAIT_FAULTS;

	return kernel_wait_sources(details->kernel) & users || details->span_stacks;
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
	made->writer = writer;
	made->traces = calloc(TRACES_MAX, sizeof(*made->traces));
	if (!made->traces) {
		free(made);
		return error_set(err, ENOMEM, "out of memory");
	}
	result = memory_open(&made->memory, kernel, writer, err)
			 ?: naming_open(&made->naming, writer, err);
	if (!result && kernel_stacks_wanted(kernel))
		result = stacks_open(&made->span_stacks, kernel, writer, err);
	if (!result && mappings_wanted(made))
		result = told_open(&made->told, err);
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
	memory_close(details->memory);
	naming_close(details->naming);
	told_close(details->told);
	stacks_free(details->span_stacks);
	map_free(&details->tgids);
	free(details->traces);
	map_free(&details->frames);
	map_free(&details->waits);
	vec_free(&details->walks);
	vec_free(&details->unused_walks);
	map_free(&details->old_tgids);
	map_free(&details->private);
	map_free(&details->symbols);
	map_free(&details->woken);
	vec_free(&details->interrupts);
	free(details);
}

uint64_t details_stacks_left_out(const struct details *details)
{
	return details->stacks_left_out;
}

const char *details_stack_warning(const struct details *details)
{
	return details->span_stacks ? stacks_warning(details->span_stacks) : NULL;
}

/* ---- threads ---- */

/* The exit of an untraced thread is not reported, so the map needs a bound. A full map becomes the
 * old one, and the previous old one is dropped. */
static void thread_is_of(struct details *details, uint32_t tid, uint32_t tgid)
{
	if (details->tgids.len >= THREADS_MAX) {
		map_free(&details->old_tgids);
		details->old_tgids = details->tgids;
		details->tgids = (struct map){0};
	}
	map_set(&details->tgids, tid, tgid);
}

/* 0: unknown. */
static uint32_t process_of(struct details *details, uint32_t tid)
{
	uint32_t tgid = map_get(&details->tgids, tid);

	if (tgid != MAP_NONE || !details->old_tgids.len)
		return tgid == MAP_NONE ? 0 : tgid;
	tgid = map_get(&details->old_tgids, tid);
	if (tgid == MAP_NONE)
		return 0;
	thread_is_of(details, tid, tgid);
	return tgid;
}

/* Whether a process runs a privileged program now, or did at the last record. The kernel knows the
 * current state; the records are some milliseconds old. */
static bool is_private(const struct details *details, pid_t pid)
{
	return map_get(&details->private, (uint64_t)pid) != MAP_NONE ||
	       kernel_program_is_private(details->kernel, pid);
}

/* The process of a thread if we may read its memory and files. 0: unknown, or private. */
static uint32_t readable_process_of(struct details *details, uint32_t tid)
{
	uint32_t pid = process_of(details, tid);

	return pid && !is_private(details, (pid_t)pid) ? pid : 0;
}

static void walk_forget(struct details *details, uint32_t tid)
{
	uint32_t index = map_remove(&details->waits, tid);

	if (index != MAP_NONE)
		(void)vec_push(&details->unused_walks, index);
}

static void thread_forget(struct details *details, uint32_t tid)
{
	map_remove(&details->tgids, tid);
	map_remove(&details->old_tgids, tid);
	walk_forget(details, tid);
}

/* ---- stacks ---- */

/* What a kernel function on a stack tells about that stack. */
enum symbol_role { SYMBOL_UNKNOWN, SYMBOL_PLAIN, SYMBOL_TRACING, SYMBOL_INTERRUPT };

static enum symbol_role symbol_role(const char *name)
{
	static const struct {
		const char *beginning;
		enum symbol_role role;
	} rows[] = {
		/* Our own program on the stack, and the tracepoint that called it. */
		{"bpf_prog_", SYMBOL_TRACING},
		{"bpf_trace_run", SYMBOL_TRACING},
		{"__bpf_trace_", SYMBOL_TRACING},
		{"__traceiter_", SYMBOL_TRACING},
		{"bpf_trampoline_", SYMBOL_TRACING},
		/* Entry points of interrupts: arch/x86/include/asm/idtentry.h and
		 * arch/arm64/kernel/entry.S. */
		{"asm_sysvec_", SYMBOL_INTERRUPT},
		{"asm_common_interrupt", SYMBOL_INTERRUPT},
		{"asm_spurious_interrupt", SYMBOL_INTERRUPT},
		{"el1h_64_irq", SYMBOL_INTERRUPT},
		{"el0t_64_irq", SYMBOL_INTERRUPT},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strncmp(name, rows[i].beginning, strlen(rows[i].beginning)))
			return rows[i].role;
	return SYMBOL_PLAIN;
}

/* Adds the name of a kernel address to the file, once. */
static int symbol_add(struct details *details, uint64_t address, enum symbol_role *role,
		      struct error *err)
{
	uint32_t known = map_get(&details->symbols, address);
	struct kernel_symbol found;

	*role = known != MAP_NONE ? known : SYMBOL_UNKNOWN;
	if (known != MAP_NONE || details->symbols.len >= SYMBOLS_MAX)
		return 0;
	if (kernel_symbol_find(details->kernel, address, &found))
		*role = symbol_role(found.name);
	if (!map_set(&details->symbols, address, *role) || *role == SYMBOL_UNKNOWN)
		return 0;
	return store_writer_add_symbol(details->writer,
				       &(struct store_symbol){.address = address,
							      .offset = found.offset,
							      .name = found.name},
				       err);
}

/* Names the functions of a kernel stack. Removes the innermost frames of our own BPF programs, and
 * the outermost frames that belong to interrupted code. */
static int kernel_stack_finish(struct details *details, struct store_stack *stack, bool *interrupt,
			       struct error *err)
{
	uint32_t made = 0;

	for (uint32_t i = 0; i < stack->count; i++) {
		enum symbol_role role;
		int result = symbol_add(details, stack->addresses[i], &role, err);

		if (result)
			return result;
		if (role == SYMBOL_TRACING && made == i && i + 1 < stack->count)
			made++;
		if (role == SYMBOL_INTERRUPT) { /* the interrupted code is not the cause */
			*interrupt = true;
			stack->count = i + 1;
			stack->cut = false;
		}
	}
	stack->addresses += made;
	stack->count -= made;
	return 0;
}

static int user_stack_finish(struct details *details, struct store_stack *stack, struct error *err)
{
	pid_t pid = (pid_t)stack->pid;
	int result = memory_need(details->memory, pid, stack->addresses, stack->count, err);
	uint32_t count = memory_code(details->memory, pid, stack->addresses, stack->count);

	stack->cut |= count < stack->count;
	stack->count = count;
	return result;
}

static bool stack_has_room(struct details *details)
{
	return details->stack_count < STACKS_MAX && store_writer_has_room(details->writer);
}

/* Adds a stack to the file, unless it is there, and returns its number. 0: it is empty or private.
 * -ENOSPC: the file has no room. Frames of Python are numbers rather than addresses, so they need
 * no mapping. */
static int stack_add(struct details *details, uint32_t *number, struct store_stack *stack,
		     struct error *err)
{
	uint64_t key = (uint64_t)stack->cut << 32 | stack->pid;
	bool interrupt = false;
	uint32_t known;
	int result;

	*number = 0;
	if (stack->pid && is_private(details, (pid_t)stack->pid))
		return 0;
	for (uint32_t i = 0; i < stack->count; i++) {
		key = (key ^ stack->addresses[i]) * 0x9e3779b97f4a7c15ull;
		key ^= key >> 29;
	}
	known = map_get(&details->frames, key);
	if (known != MAP_NONE) {
		*number = known;
		return 0;
	}
	if (!stack->count)
		return 0;
	if (!stack_has_room(details))
		return -ENOSPC;
	if (!map_set(&details->frames, key, details->stack_count + 1))
		return -ENOMEM;
	if (!stack->pid)
		result = kernel_stack_finish(details, stack, &interrupt, err);
	else
		result = stack->addresses[0] & STORE_PYTHON
				 ? 0
				 : user_stack_finish(details, stack, err);
	result = result ?: store_writer_add_stack(details->writer, stack, err);
	if (result)
		return result;
	*number = ++details->stack_count;
	return vec_push(&details->interrupts, interrupt) ? 0 : -ENOMEM;
}

/* The same, but if there is no room, the record gets no stack and the stack counts as left out. */
static int frames_number(struct details *details, uint32_t *number, struct store_stack *stack,
			 struct error *err)
{
	int result = stack_add(details, number, stack, err);

	if (result != -ENOSPC)
		return result;
	details->stacks_left_out++;
	return 0;
}

/* Replaces the kernel's number of a stack, in a record of `ts`, by the file's. The result is 0 if
 * the number is unknown, or if the kernel has reused it for another stack. */
static void trace_replace(struct details *details, uint32_t *number, uint64_t ts)
{
	const struct trace *trace = &details->traces[*number & (TRACES_MAX - 1)];

	if (!*number)
		return;
	if (trace->number == *number && trace->ts <= ts + TRACE_LATE_NS) {
		*number = trace->stack;
		return;
	}
	*number = 0;
	details->stacks_left_out++;
}

/* The same for a wait or wake-up whose stacks were taken at `ts`. A user stack unwound by tables
 * came earlier, in a record of its own. */
static void stacks_replace(struct details *details, uint32_t tid, uint64_t ts,
			   uint32_t *kernel_number, uint32_t *user_number)
{
	uint32_t walked = map_get(&details->waits, tid);

	trace_replace(details, kernel_number, ts);
	if (*user_number != WAFFLE_STACK_BY_FRAMES) {
		trace_replace(details, user_number, ts);
	} else if (walked != MAP_NONE && details->walks.data[walked].ts == ts) {
		*user_number = details->walks.data[walked].number;
		walk_forget(details, tid);
	} else {
		*user_number = 0;
	}
}

/* ---- records ---- */

static int see_wait(struct details *details, struct waffle_rec *rec, struct error *err)
{
	struct waffle_rec_wait *wait = (struct waffle_rec_wait *)rec;
	struct file_key key = {.ino = wait->ino, .dev = wait->dev};
	uint32_t pid = readable_process_of(details, rec->tid);
	int fd = (int)wait->object;
	int64_t object = 0;
	uint64_t address = wait->address;
	char kind[sizeof(address) + 1] = "";
	int result = 0;

	if (wait->ino) { /* not a page fault */
		memcpy(kind, &address, sizeof(address));
		wait->address = 0;
	}
	/* The descriptor may be closed soon, so look it up first. */
	if (wait->ino)
		object = naming_file(details->naming, (pid_t)pid, fd, &key, kind, err);
	wait->object = object > 0 ? (uint32_t)object : 0;
	if (object < 0)
		return (int)object;
	if (wait->address && pid)
		result = memory_need(details->memory, (pid_t)pid, &address, 1, err);
	stacks_replace(details, rec->tid, wait->from_ts, &wait->kernel_stack, &wait->user_stack);
	return result;
}

static int see_wake(struct details *details, struct waffle_rec *rec, struct error *err)
{
	struct waffle_rec_wake *wake = (struct waffle_rec_wake *)rec;

	(void)err;
	stacks_replace(details, rec->tid, rec->ts, &wake->kernel_stack, &wake->user_stack);
	if (!wake->kernel_stack || !details->interrupts.data[wake->kernel_stack - 1])
		return 0;
	/* The interrupt came during a system call, which the BPF program cannot detect. So the user
	 * stack does not belong to the waker. */
	wake->user_stack = 0;
	if (!(wake->flags & WAFFLE_SWITCH_WAKER_HARDIRQ) && details->woken.len < THREADS_MAX)
		map_set(&details->woken, wake->woken_tid, WAFFLE_SWITCH_WAKER_HARDIRQ);
	wake->flags |= WAFFLE_SWITCH_WAKER_HARDIRQ;
	return 0;
}

/* Keeps the user stack of a wait until the record of the wait arrives. */
static int see_walk(struct details *details, const struct waffle_rec *rec, struct store_stack stack,
		    const uint64_t *from, struct error *err)
{
	uint32_t index = map_get(&details->waits, rec->tid);
	uint64_t addresses[WAFFLE_FRAMES_USER_MAX];
	struct walk walk = {.ts = rec->ts};
	int result;

	memcpy(addresses, from, stack.count * sizeof(*from));
	stack.addresses = addresses;
	result = frames_number(details, &walk.number, &stack, err);
	stack.addresses = NULL;
	if (result)
		return result;
	if (index != MAP_NONE) {
		details->walks.data[index] = walk;
		return 0;
	}
	if (details->waits.len >= WALKS_MAX) { /* most belong to threads that are gone */
		map_free(&details->waits);
		details->walks.len = details->unused_walks.len = 0;
	}
	if (details->unused_walks.len)
		index = details->unused_walks.data[--details->unused_walks.len];
	else if (vec_push(&details->walks, walk))
		index = (uint32_t)details->walks.len - 1;
	else
		return -ENOMEM;
	details->walks.data[index] = walk;
	return map_set(&details->waits, rec->tid, index) ? 0 : -ENOMEM;
}

/* Converts the kernel's record to the file's in place, since the file's is shorter. */
static int see_frames(struct details *details, struct waffle_rec *rec, struct error *err)
{
	struct waffle_rec_frames frames = *(const struct waffle_rec_frames *)rec;
	struct waffle_rec_stack *stack = (struct waffle_rec_stack *)rec;
	uint64_t addresses[WAFFLE_FRAMES_USER_MAX], pairs[2 * WAFFLE_FRAMES_PYTHON_MAX];
	uint32_t words = frames.frame_bytes / 8, python = frames.python_count;
	struct store_stack user = {
		.addresses = addresses, .pid = frames.tgid, .cut = frames.cut & WAFFLE_CUT_USER};
	const uint64_t *from =
		(const uint64_t *)(const void *)((const struct waffle_rec_frames *)rec + 1);
	int result, count;

	_Static_assert(sizeof(frames) >= sizeof(*stack), "a STACK fits where FRAMES were");
	if (python > WAFFLE_FRAMES_PYTHON_MAX || 2 * python > words ||
	    words - 2 * python > WAFFLE_FRAMES_USER_MAX)
		return -EINVAL;
	user.count = words - 2 * python;
	if (!frames.id)
		return see_walk(details, rec, user, from, err);
	memcpy(addresses, from, user.count * sizeof(*from));
	memcpy(pairs, from + user.count, 2 * python * sizeof(*from));
	*stack = (struct waffle_rec_stack){
		.rec = frames.rec, .id = frames.id, .kernel_stack = frames.kernel_stack};
	stack->rec.kind = WAFFLE_REC_STACK;
	trace_replace(details, &stack->kernel_stack, stack->rec.ts);
	result = frames_number(details, &stack->user_stack, &user, err);
	if (result || !python || !details->span_stacks)
		return result;
	count = stacks_python(details->span_stacks, &frames, pairs, addresses, err);
	if (count < 0)
		return count;
	user.count = (uint32_t)count;
	user.cut = frames.cut & WAFFLE_CUT_PYTHON;
	return frames_number(details, &stack->python_stack, &user, err);
}

/* If the file has no room for the stack, the record counts as lost (-EINVAL). */
static int see_trace(struct details *details, struct waffle_rec *rec, struct error *err)
{
	const struct waffle_rec_trace *told = (const struct waffle_rec_trace *)rec;
	uint64_t addresses[WAFFLE_STACK_DEPTH];
	struct store_stack stack = {
		.addresses = addresses, .pid = told->tgid, .count = told->frame_bytes / 8};
	struct trace *trace = &details->traces[told->number & (TRACES_MAX - 1)];
	int result;

	if (stack.count > WAFFLE_STACK_DEPTH)
		return -EINVAL;
	stack.cut = stack.count == WAFFLE_STACK_DEPTH;
	memcpy(addresses, told + 1, stack.count * sizeof(*addresses));
	*trace = (struct trace){.ts = rec->ts, .number = told->number};
	result = stack_add(details, &trace->stack, &stack, err);
	return result == -ENOSPC ? -EINVAL : result;
}

static int see_code(struct details *details, struct waffle_rec *rec, struct error *err)
{
	(void)err;
	return details->span_stacks
		       ? stacks_code(details->span_stacks, (const struct waffle_rec_code *)rec)
		       : 0;
}

/* The switch repeats the flags of the wake-up, so an interrupt detected there is added here,
 * too. */
static int see_switch(struct details *details, struct waffle_rec *rec, struct error *err)
{
	struct waffle_rec_switch *to = (struct waffle_rec_switch *)rec;
	uint32_t flags;

	(void)err;
	if (!details->woken.len)
		return 0;
	flags = map_remove(&details->woken, to->next_tid);
	if (flags != MAP_NONE && to->flags & WAFFLE_SWITCH_WOKEN)
		to->flags |= (uint8_t)flags;
	return 0;
}

static int see_fault(struct details *details, struct waffle_rec *rec, struct error *err)
{
	const struct waffle_rec_fault *fault = (const struct waffle_rec_fault *)rec;
	const uint64_t addresses[] = {fault->address, fault->ip};
	uint32_t pid = readable_process_of(details, rec->tid);

	return pid ? memory_need(details->memory, (pid_t)pid, addresses, 2, err) : 0;
}

static int see_io(struct details *details, struct waffle_rec *rec, struct error *err)
{
	int64_t number =
		naming_device(details->naming, ((const struct waffle_rec_io *)rec)->dev, err);

	return number < 0 ? (int)number : 0;
}

static int see_quota(struct details *details, struct waffle_rec *rec, struct error *err)
{
	int64_t number = naming_cgroup(details->naming, (pid_t)rec->tid,
				       ((const struct waffle_rec_quota *)rec)->cgroup, err);

	return number < 0 ? (int)number : 0;
}

static int see_task(struct details *details, struct waffle_rec *rec, struct error *err)
{
	(void)err;
	thread_is_of(details, rec->tid, ((const struct waffle_rec_task *)rec)->tgid);
	return 0;
}

static int see_state(struct details *details, struct waffle_rec *rec, struct error *err)
{
	(void)err;
	thread_is_of(details, rec->tid, ((const struct waffle_rec_state *)rec)->tgid);
	return 0;
}

static void private_set(struct details *details, uint32_t pid, bool is)
{
	if (!is)
		map_remove(&details->private, pid);
	else if (details->private.len < THREADS_MAX)
		map_set(&details->private, pid, 1);
}

static int see_fork(struct details *details, struct waffle_rec *rec, struct error *err)
{
	const struct waffle_rec_fork *fork = (const struct waffle_rec_fork *)rec;

	thread_is_of(details, fork->child_tgid, fork->child_tgid);
	private_set(details, fork->child_tgid, map_get(&details->private, fork->tgid) != MAP_NONE);
	memory_fork(details->memory, (pid_t)fork->tgid, (pid_t)fork->child_tgid);
	return details->span_stacks ? stacks_fork(details->span_stacks, (pid_t)fork->tgid,
						  (pid_t)fork->child_tgid, err)
				    : 0;
}

/* Writes the mappings before they are requested, since the process may be gone later. */
static int mappings_write(struct details *details, pid_t pid, struct error *err)
{
	bool wanted = mappings_wanted(details) && !is_private(details, pid);

	return wanted ? memory_need(details->memory, pid, NULL, 0, err) : 0;
}

static int see_exec(struct details *details, struct waffle_rec *rec, struct error *err)
{
	const struct waffle_rec_exit *exec = (const struct waffle_rec_exit *)rec;
	bool has_rights = exec->code & WAFFLE_EXEC_RIGHTS;
	uint32_t tgid = exec->tgid;
	int result;

	thread_is_of(details, rec->tid, tgid);
	private_set(details, tgid, has_rights);
	result = memory_exec(details->memory, (pid_t)tgid, rec->ts, has_rights, err);
	if (details->span_stacks)
		stacks_forget(details->span_stacks, (pid_t)tgid);
	return result ?: mappings_write(details, (pid_t)tgid, err);
}

void details_forget(struct details *details, pid_t pid)
{
	memory_forget(details->memory, pid);
	private_set(details, (uint32_t)pid, false);
	if (details->span_stacks)
		stacks_forget(details->span_stacks, pid);
	thread_forget(details, (uint32_t)pid);
}

static int see_exit(struct details *details, struct waffle_rec *rec, struct error *err)
{
	(void)err;
	if (rec->tid == ((const struct waffle_rec_exit *)rec)->tgid)
		details_forget(details, (pid_t)rec->tid);
	else
		thread_forget(details, rec->tid);
	return 0;
}

void details_told(struct details *details, const struct mmap_event *event, bool traced)
{
	told_add(details->told, event, traced);
}

static int told_see(struct details *details, uint64_t ts, struct error *err)
{
	const struct told_event *told;
	int result = 0;

	while (!result && (told = told_next(details->told, ts))) {
		uint32_t pid = (uint32_t)told->event.pid;

		/* The previous program, which may have been privileged, is gone. */
		if (told->event.kind == MMAP_EXEC)
			private_set(details, pid, false);
		else if (pid && is_private(details, (pid_t)pid))
			continue;
		/* Processes that are not targets have no exec record for which their mappings could
		 * wait. */
		if (told->traced || !pid || process_of(details, pid) == pid)
			result = memory_told(details->memory, &told->event,
					     kernel_program_since(details->kernel, (pid_t)pid) !=
						     UINT64_MAX,
					     err);
	}
	return result;
}

int details_round(struct details *details, uint64_t before_ts, struct error *err)
{
	int result = details->span_stacks ? stacks_round(details->span_stacks, err) : 0;

	result = result ?: memory_late(details->memory, false, err);
	return result ?: told_see(details, told_round(details->told, before_ts), err);
}

/* Made here, of the addresses that the kernel records: it never comes from there. */
static int see_stack(struct details *details, struct waffle_rec *rec, struct error *err)
{
	(void)details, (void)rec, (void)err;
	return -EINVAL;
}

int details_record(struct details *details, struct waffle_rec *rec, struct error *err)
{
	static int (*const seen[WAFFLE_REC_RING_COUNT])(struct details *, struct waffle_rec *,
							struct error *) = {
		[WAFFLE_REC_SWITCH] = see_switch, [WAFFLE_REC_TASK] = see_task,
		[WAFFLE_REC_STATE] = see_state,   [WAFFLE_REC_FORK] = see_fork,
		[WAFFLE_REC_EXEC] = see_exec,     [WAFFLE_REC_EXIT] = see_exit,
		[WAFFLE_REC_WAIT] = see_wait,     [WAFFLE_REC_WAKE] = see_wake,
		[WAFFLE_REC_FAULT] = see_fault,   [WAFFLE_REC_IO] = see_io,
		[WAFFLE_REC_QUOTA] = see_quota,   [WAFFLE_REC_FRAMES] = see_frames,
		[WAFFLE_REC_CODE] = see_code,     [WAFFLE_REC_TRACE] = see_trace,
		[WAFFLE_REC_STACK] = see_stack,
	};

	int result = told_see(details, rec->ts, err);

	if (result || rec->kind >= WAFFLE_REC_RING_COUNT || !seen[rec->kind])
		return result;
	return seen[rec->kind](details, rec, err);
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

	return result ?: mappings_write(details, pid, err);
}

int details_tables(struct details *details, bool traced, struct error *err)
{
	return details->span_stacks ? stacks_ready(details->span_stacks, traced, err) : 0;
}
