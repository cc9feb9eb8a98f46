// SPDX-License-Identifier: Apache-2.0
/* What the records show about a wait: who ended it, its file, and requests to devices. */
#include "analyze/why/lookup/why_evidence.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/lookup/why_cpus.h"
#include "analyze/why/lookup/why_go.h"
#include "analyze/why/lookup/why_go_idle.h"
#include "analyze/why/lookup/why_lookup.h"
#include "analyze/why/lookup/why_peers.h"
#include "analyze/why/lookup/why_quota.h"
#include "analyze/why/lookup/why_switches.h"
#include "analyze/why/lookup/why_worker.h"
#include "analyze/why/why_walk_types.h"
#include "target/process/descriptors.h"
#include "util/memory.h"
#include "util/path.h"
#include "util/search.h"
#include "util/syscall_names.h"
#include "util/text.h"

static const struct {
	const char *prefix;
	uint32_t hints;
} symbol_hints[] = {
	{"asm_sysvec_", WHY_HINT_INTERRUPT},
	{"asm_common_interrupt", WHY_HINT_INTERRUPT},
	{"common_interrupt", WHY_HINT_INTERRUPT},
	{"sysvec_", WHY_HINT_INTERRUPT},
	{"irq_exit_rcu", WHY_HINT_INTERRUPT},
	{"el0_interrupt", WHY_HINT_INTERRUPT},
	{"el1_interrupt", WHY_HINT_INTERRUPT},
	{"gic_handle_irq", WHY_HINT_INTERRUPT},
	{"timerfd_tmrproc", WHY_HINT_TIMER},
	{"timerfd_alarmproc", WHY_HINT_TIMER},
	{"io_timeout_fn", WHY_HINT_TIMER},
	{"io_link_timeout_fn", WHY_HINT_TIMER},
	{"io_cqring_timer_wakeup", WHY_HINT_TIMER},
	{"hrtimer_wakeup", WHY_HINT_TIMER},
	{"process_timeout", WHY_HINT_TIMER},
	{"call_timer_fn", WHY_HINT_TIMERS},
	{"it_real_fn", WHY_HINT_ALARM},
	{"posix_timer_fn", WHY_HINT_ALARM},
	{"sock_def_readable", WHY_HINT_SOCKET},
	{"sock_def_wakeup", WHY_HINT_SOCKET},
	{"sock_def_error_report", WHY_HINT_SOCKET},
	{"sock_def_write_space", WHY_HINT_SOCKET},
	{"sk_stream_write_space", WHY_HINT_SOCKET},
	{"unix_stream_sendmsg", WHY_HINT_SOCKET},
	{"pipe_write", WHY_HINT_PIPE},
	{"pipe_read", WHY_HINT_PIPE},
	{"anon_pipe_write", WHY_HINT_PIPE},
	{"anon_pipe_read", WHY_HINT_PIPE},
	{"fifo_pipe_write", WHY_HINT_PIPE},
	{"fifo_pipe_read", WHY_HINT_PIPE},
	{"flush_to_ldisc", WHY_HINT_TERMINAL},
	{"n_tty_", WHY_HINT_TERMINAL},
	{"tty_", WHY_HINT_TERMINAL},
	{"complete_signal", WHY_HINT_SIGNAL},
	{"signal_wake_up", WHY_HINT_SIGNAL},
	{"do_notify_parent", WHY_HINT_CHILD},
	{"__wake_up_parent", WHY_HINT_CHILD},
	{"blk_mq_end_request", WHY_HINT_DISK},
	{"blk_mq_complete_request", WHY_HINT_DISK},
	{"blk_update_request", WHY_HINT_DISK},
	{"bio_endio", WHY_HINT_DISK},
	{"net_rx_action", WHY_HINT_RECEIVE},
	{"process_backlog", WHY_HINT_BACKLOG},
	{"tcp_rcv_established", WHY_HINT_TCP},
	{"__dev_queue_xmit", WHY_HINT_TRANSMIT},
	{"up_read", WHY_HINT_READERS},
	{"rwsem_down_write", WHY_HINT_WRITER},
	/* The write lock of a part of the address space waits for readers only. */
	{"__vma_start_write", WHY_HINT_READERS},
	{"__vma_enter_locked", WHY_HINT_READERS},
	{"thaw_task", WHY_HINT_THAW},
	{"__thaw_task", WHY_HINT_THAW},
	{"asm_exc_page_fault", WHY_HINT_FAULT},
	{"exc_page_fault", WHY_HINT_FAULT},
	{"do_user_addr_fault", WHY_HINT_FAULT},
	{"do_page_fault", WHY_HINT_FAULT},
	{"handle_mm_fault", WHY_HINT_FAULT},
};

static uint32_t hints_of(const char *symbol)
{
	for (size_t i = 0; i < sizeof(symbol_hints) / sizeof(symbol_hints[0]); i++)
		if (!strncmp(symbol, symbol_hints[i].prefix, strlen(symbol_hints[i].prefix)))
			return symbol_hints[i].hints;
	return 0;
}

static bool is_python(const char *path)
{
	const char *base = path_base(path);

	return !strncmp(base, "python3", 7) || !strncmp(base, "libpython3", 10);
}

/* The interpreter's state is in the program or in its library. */
static void add_python(struct why_walk *walk, const struct store_mapping *mapping)
{
	enum wait_python python = WAIT_PYTHON;

	if (map_get(&walk->python_of, mapping->pid) == WAIT_PYTHON_KNOWN)
		return;
	if (stack_names_has_variable(walk->names, mapping, WAIT_PYTHON_STATE))
		python = WAIT_PYTHON_KNOWN;
	map_put(&walk->python_of, mapping->pid, python);
}

static int by_pid(const void *left, const void *right, void *arg)
{
	const struct model_thread *threads = arg;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (threads[a].pid != threads[b].pid)
		return threads[a].pid < threads[b].pid ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void order_threads(struct why_walk *walk)
{
	const struct model *model = walk->model;
	size_t count = model->threads.len;

	walk->by_pid = memory_get((count + 1) * sizeof(*walk->by_pid));
	for (uint32_t i = 0; i < count; i++)
		walk->by_pid[i] = i;
	if (count)
		qsort_r(walk->by_pid, count, sizeof(*walk->by_pid), by_pid, model->threads.data);
	for (size_t i = 0; i < count; i++)
		if (model->threads.data[walk->by_pid[i]].traced)
			vec_add(&walk->traced, walk->by_pid[i]);
}

static size_t first_of(const struct why_walk *walk, const uint32_t *list, size_t count,
		       uint32_t pid)
{
	const struct model_thread *threads = walk->model->threads.data;

	return lower_bound(count, i, threads[list[i]].pid < pid);
}

size_t why_threads_of(const struct why_walk *walk, uint32_t pid)
{
	return first_of(walk, walk->by_pid, walk->model->threads.len, pid);
}

bool why_is_only_thread(const struct why_walk *walk, uint32_t thread)
{
	const struct model *model = walk->model;
	uint32_t pid = model->threads.data[thread].pid;
	size_t next = why_threads_of(walk, pid) + 1;

	return next >= model->threads.len || model->threads.data[walk->by_pid[next]].pid != pid;
}

uint32_t why_only_other_thread(const struct why_walk *walk, uint32_t thread)
{
	const struct model *model = walk->model;
	uint32_t pid = model->threads.data[thread].pid, found = MODEL_NONE;

	for (size_t at = why_threads_of(walk, pid); at < model->threads.len; at++) {
		uint32_t other = walk->by_pid[at];

		if (model->threads.data[other].pid != pid)
			break;
		walk->why->searched++;
		if (other == thread || model->threads.data[other].exit_ts ||
		    model->threads.data[other].gone)
			continue;
		if (found != MODEL_NONE)
			return MODEL_NONE;
		found = other;
	}
	return found;
}

size_t why_traced_of(const struct why_walk *walk, uint32_t pid)
{
	return first_of(walk, walk->traced.data, walk->traced.len, pid);
}

/* ---- set-up ---- */

/* The key of a cgroup in walk->cgroups. `detail`: that of its object, such as "cgroup cpu". */
static size_t cgroup_key(char key[64], uint64_t ino, const char *detail)
{
	return (size_t)snprintf(key, 64, "%" PRIu64 " %.32s", ino, detail);
}

/* The names of the cgroups; the first name of each counts. */
static void find_cgroups(struct why_walk *walk)
{
	const struct store_object *object;
	char key[64];
	uint32_t text;
	size_t len;

	for (uint32_t i = 1; (object = store_reader_object(walk->model->reader, i)); i++) {
		walk->why->searched++;
		if (object->dev || !text_begins(object->detail, DESCRIPTOR_CGROUP))
			continue;
		len = cgroup_key(key, object->ino, object->detail);
		if (keymap_get(&walk->cgroups, key, len) != MAP_NONE)
			continue;
		text = strtab_put(walk->why->texts, object->name, strlen(object->name));
		keymap_put(&walk->cgroups, key, len, text);
	}
}

static uint64_t file_key(const struct store_object *object)
{
	return object->ino ^ (uint64_t)object->dev << 40;
}

/* Finds the names of files of which only the inode was known at first. */
static void find_files(struct why_walk *walk)
{
	const struct store_object *object;

	for (uint32_t i = 1; (object = store_reader_object(walk->model->reader, i)); i++)
		if (!strcmp(object->detail, DESCRIPTOR_EARLIER))
			map_put(&walk->files, file_key(object), i);
}

void why_facts_object(const struct why_walk *walk, struct wait_facts *facts, uint32_t number)
{
	const struct store_object *object = store_reader_object(walk->model->reader, number);
	const struct store_object *named;

	facts->object = object;
	if (!object || !text_begins(object->name, DESCRIPTOR_INODE))
		return;
	named = store_reader_object(walk->model->reader, map_get(&walk->files, file_key(object)));
	if (named && named->ino == object->ino && named->dev == object->dev)
		facts->name = named->name;
}

#define OWN_TEXT "this capture"
#define HELD_TEXT "held by waffle-bpf (this capture)"

void why_evidence_init(struct why_walk *walk, const struct why_walk *like)
{
	const struct store_reader *reader = walk->model->reader;

	walk->own_cpu_text = strtab_put(walk->why->texts, OWN_TEXT, strlen(OWN_TEXT));
	walk->own_hold_text = strtab_put(walk->why->texts, HELD_TEXT, strlen(HELD_TEXT));
	for (int i = 0; i < WHY_SYSCALLS; i++)
		walk->calls[i] = (uint8_t)wait_call_of(syscall_name(walk->model->meta->machine, i));
	model_losses(&walk->losses, walk->model, true);
	model_losses(&walk->all_losses, walk->model, false);
	walk->mappings = stack_mappings_open(reader);
	order_threads(walk);
	why_cpus_init(walk, like);
	why_quota_init(walk);
	find_cgroups(walk);
	find_files(walk);
	why_peers_init(walk);
	why_go_init(walk);
	why_go_idle_init(walk);
	why_lookup_init(walk->why);
	for (uint32_t i = 0; i < store_reader_symbol_count(reader); i++) {
		const struct store_symbol *symbol = store_reader_symbol(reader, i);
		uint32_t hints = hints_of(symbol->name);

		map_put(&walk->kernel_symbols, symbol->address, i);
		if (hints)
			map_put(&walk->kernel_hints, symbol->address, hints);
	}
	for (uint32_t i = 0; i < store_reader_mapping_count(reader); i++) {
		const struct store_mapping *mapping = store_reader_mapping(reader, i);

		if (is_python(mapping->path))
			add_python(walk, mapping);
	}
}

/* All hints of the functions in a kernel stack. */
static uint32_t hints_in(const struct why_walk *walk, uint32_t number)
{
	const struct store_stack *stack = store_reader_stack(walk->model->reader, number);
	uint32_t hints = 0;

	for (uint32_t i = 0; stack && i < stack->count; i++) {
		uint32_t found = map_get(&walk->kernel_hints, stack->addresses[i]);

		if (found != MAP_NONE)
			hints |= found;
	}
	return hints;
}

static uint32_t stack_hints(const struct why_walk *walk, uint32_t number)
{
	return hints_in(walk, number) & ~WHY_HINT_FAULT;
}

bool why_stack_is_fault(const struct why_walk *walk, uint32_t number)
{
	return hints_in(walk, number) & WHY_HINT_FAULT;
}

/* Limit of kernel frames per stack; the kernel takes at most 127. */
#define FRAMES_MAX 128

/* The names of a kernel stack's functions, innermost first; NULL for unknown ones. Returns their
 * number. */
static uint32_t functions_of(const struct why_walk *walk, const struct store_stack *stack,
			     const char *functions[FRAMES_MAX])
{
	uint32_t count = stack->count < FRAMES_MAX ? stack->count : FRAMES_MAX;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = map_get(&walk->kernel_symbols, stack->addresses[i]);
		const struct store_symbol *symbol = store_reader_symbol(walk->model->reader, index);

		functions[i] = symbol ? symbol->name : NULL;
	}
	return count;
}

static struct meaning stack_meaning(const struct why_walk *walk, const struct store_stack *stack)
{
	const char *functions[FRAMES_MAX];

	return meaning_of(functions, functions_of(walk, stack, functions));
}

/* Texts such as "kernel: write-back of dirty pages". */
#define WORKER_TEXT "kernel: %.100s"

static uint32_t worker_text(struct why_walk *walk, const char *what)
{
	char text[128];
	int len = snprintf(text, sizeof(text), WORKER_TEXT, what);

	return strtab_put(walk->why->texts, text, (size_t)len);
}

uint32_t why_worker_text(struct why_walk *walk, uint32_t thread)
{
	const struct worker_row *row;

	if (!model_may_be_kernel(walk->model, thread))
		return 0;
	if (!walk->worker_texts)
		walk->worker_texts =
			memory_zeroed(walk->model->threads.len, sizeof(*walk->worker_texts));
	/* The index plus 1, so that 0 is a thread that was not looked up. */
	if (!walk->worker_texts[thread]) {
		row = worker_find(model_thread_name(walk->model, thread), NULL, 0);
		walk->worker_texts[thread] = (row ? worker_text(walk, row->text) : 0) + 1;
	}
	return walk->worker_texts[thread] - 1;
}

uint32_t why_worker_of_wake(struct why_walk *walk, uint32_t thread, uint64_t ts,
			    enum worker_for *what)
{
	const struct model *model = walk->model;
	const struct model_wake *wake = model_wake_at(model, thread, ts);
	const char *functions[FRAMES_MAX], *comm, *function;
	const struct store_stack *stack;
	const struct worker_row *row;
	uint32_t count = 0;

	*what = WORKER_OTHER;
	if (!wake || !model_may_be_kernel(model, wake->waker))
		return 0;
	comm = model_thread_name(model, wake->waker);
	stack = store_reader_stack(model->reader, wake->kernel_stack);
	if (stack)
		count = functions_of(walk, stack, functions);
	row = worker_find(comm, functions, count);
	function = worker_function(comm, functions, count);
	if (row)
		*what = row->what;
	if (row || function)
		return worker_text(walk, row ? row->text : function);
	return 0;
}

void why_stack_meaning(struct why_walk *walk, uint32_t number, struct why_stack *result)
{
	const struct store_stack *stack = store_reader_stack(walk->model->reader, number);
	uint32_t known = map_get(&walk->stack_at, number);
	char text[MEANING_TEXT];

	*result = (struct why_stack){0};
	if (!stack)
		return;
	if (known != MAP_NONE) {
		*result = walk->stacks.data[known];
		return;
	}
	result->meaning = stack_meaning(walk, stack);
	meaning_text(text, &result->meaning);
	result->text = strtab_put(walk->why->texts, text, strlen(text));
	map_put(&walk->stack_at, number, (uint32_t)walk->stacks.len);
	vec_add(&walk->stacks, *result);
}

/* Kernel threads that run deferred interrupt work. */
static bool is_softirq_thread(const struct model *model, uint32_t thread)
{
	return model_may_be_kernel(model, thread) &&
	       text_begins(model_thread_name(model, thread), "ksoftirqd/");
}

static void waker_set(struct why_waker *waker, const struct model_switch *in)
{
	waker->thread = in->waker;
	waker->reported = true;
	waker->interrupt = in->flags & WAFFLE_SWITCH_WAKER_INTERRUPT;
}

/* A thread that is switched in at the moment of its wake-up has no runnable interval, but the
 * switch names the waker. */
static void waker_at_switch(struct why_waker *waker, const struct model *model, uint32_t thread,
			    uint64_t ts)
{
	const struct model_switch *in =
		why_switch_in(model, why_switch_after(model, ts), thread, ts);

	if (in && in->flags & WAFFLE_SWITCH_WOKEN)
		waker_set(waker, in);
}

/* Whether the waker, which was sending packets, was interrupted by packets of another machine. */
static bool is_from_network(uint32_t hints)
{
	return hints & WHY_HINT_RECEIVE && !(hints & WHY_HINT_BACKLOG);
}

/*
 * Whether the waker itself sent the packet that woke the thread: the kernel receives it on this
 * machine at the end of the sender's system call, such as close(2), splice(2) and exit(2). To the
 * kernel program that looks like an interrupt, unless the call is one that sends.
 */
static bool is_own_packet(uint32_t hints)
{
	const uint32_t sent = WHY_HINT_BACKLOG | WHY_HINT_TRANSMIT;

	return (hints & sent) == sent && !(hints & WHY_HINT_INTERRUPT);
}

/*
 * A child that a signal ends outside of a system call looks like an interrupt to the kernel program
 * of earlier versions. The kernel tells its parent with interrupts disabled, so no interrupt does.
 */
static bool is_end_of_child(uint32_t hints)
{
	return hints & WHY_HINT_CHILD;
}

/* Adds what the record of the wake-up of a thread at ts says. */
static void waker_complete(const struct why_walk *walk, struct why_waker *waker, uint32_t thread,
			   uint64_t ts)
{
	const struct model *model = walk->model;
	const struct model_wake *wake = model_wake_at(model, thread, ts);

	if (wake) {
		waker->thread = wake->waker;
		waker->reported = true;
		waker->hints = stack_hints(walk, wake->kernel_stack);
		waker->has_stack = store_reader_stack(model->reader, wake->kernel_stack) != NULL;
		waker->interrupt |= (wake->flags & WAFFLE_SWITCH_WAKER_INTERRUPT) ||
				    (waker->hints & WHY_HINT_INTERRUPT) ||
				    is_from_network(waker->hints);
		if (waker->interrupt && is_own_packet(waker->hints)) {
			waker->interrupt = false;
			waker->inferred = true;
		}
		if (is_end_of_child(waker->hints))
			waker->interrupt = false;
	}
	if (!waker->interrupt && is_softirq_thread(model, waker->thread)) {
		waker->interrupt = true;
		waker->inferred = !model_is_kernel(model, waker->thread);
	}
}

struct why_waker why_waker_in(const struct why_walk *walk, const struct model_switch *sw)
{
	struct why_waker waker = {.thread = MODEL_NONE};

	waker_set(&waker, sw);
	waker_complete(walk, &waker, sw->next, sw->wake_ts);
	return waker;
}

struct why_waker why_waker_of(const struct why_walk *walk, uint32_t thread, size_t index)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	const struct why_interval *interval = &of->intervals.data[index], *next = interval + 1;
	const struct model *model = walk->model;
	struct why_waker waker = {.thread = MODEL_NONE};

	if (interval->open)
		return waker;
	if (index + 1 < of->intervals.len && next->from_ts == interval->to_ts &&
	    next->state == WAFFLE_THREAD_RUNNABLE && next->woken) {
		waker.thread = next->by;
		waker.reported = true;
		waker.interrupt = next->interrupt;
	} else {
		waker_at_switch(&waker, model, thread, interval->to_ts);
	}
	waker_complete(walk, &waker, thread, interval->to_ts);
	return waker;
}

uint64_t why_switched_in(const struct why_walk *walk, uint32_t thread, size_t index)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	const struct why_interval *wait = &of->intervals.data[index], *next = wait + 1;

	if (wait->open)
		return 0;
	if (index + 1 < of->intervals.len && next->from_ts == wait->to_ts &&
	    next->state == WAFFLE_THREAD_RUNNABLE)
		return next->open ? 0 : next->to_ts;
	return wait->to_ts;
}

/* Whether the thread waits for another file than that of the call's first argument: that of a
 * request of io_uring, and not the ring, or the one that sendfile() reads, and not the socket. */
static bool is_for_other_file(const struct why_walk *walk, const struct why_interval *interval)
{
	return interval->syscall >= 0 && interval->task_state & WAFFLE_TASK_UNINTERRUPTIBLE &&
	       (interval->syscall == walk->intervals.uring ||
		interval->syscall == walk->intervals.sendfile);
}

/* Whether a wait was in the same call on the same descriptor as `interval`, or in the same call for
 * such another file. False if its own interval was not kept. */
static bool is_alike(const struct why_walk *walk, const struct model_wait *wait,
		     const struct why_interval *interval)
{
	const struct why_thread *of = &walk->intervals.threads[wait->thread];
	const uint64_t *args = walk->model->syscall_args.data;
	size_t i = why_intervals_after(&walk->intervals, wait->thread, wait->from_ts);
	const struct why_interval *other = of->intervals.data + i;

	if (i >= of->intervals.len || other->from_ts != wait->from_ts)
		return false;
	if (is_for_other_file(walk, interval) || is_for_other_file(walk, other))
		return is_for_other_file(walk, interval) && is_for_other_file(walk, other) &&
		       other->syscall == interval->syscall;
	return other->syscall == interval->syscall && other->args < walk->model->syscall_args.len &&
	       args[other->args] == args[interval->args];
}

/* Number of the thread's waits to search, before and after. */
#define NEIGHBOURS 16

/* The tracer does not find the name of every descriptor in time. Takes the name from the thread's
 * nearest wait for the same descriptor. Requests of io_uring may be for different files: then it
 * takes none. */
static uint32_t object_nearby(const struct why_walk *walk, uint32_t thread,
			      const struct why_interval *interval)
{
	const struct model *model = walk->model;
	const struct model_wait *waits = model->waits.data;
	bool request = is_for_other_file(walk, interval);
	uint32_t found = 0;
	size_t first =
		lower_bound(model->waits.len, i,
			    waits[i].thread < thread || (waits[i].thread == thread &&
							 waits[i].from_ts < interval->from_ts));

	for (size_t i = 0; i < 2 * NEIGHBOURS; i++) {
		/* The subtraction may wrap around to an invalid index. */
		size_t at = i % 2 ? first + i / 2 : first - 1 - i / 2;
		const struct model_wait *wait;

		if (at >= model->waits.len)
			continue;
		wait = &waits[at];
		if (wait->thread != thread || !wait->object || !is_alike(walk, wait, interval))
			continue;
		if (!request)
			return wait->object;
		if (found && wait->object != found)
			return 0;
		found = wait->object;
	}
	return found;
}

const struct store_object *why_wait_object(const struct why_walk *walk, uint32_t thread,
					   const struct why_interval *interval)
{
	return model_wait_object(walk->model,
				 model_wait_at(walk->model, thread, interval->from_ts));
}

struct wait_facts why_facts_of(const struct why_walk *walk, uint32_t thread,
			       const struct why_interval *interval, const struct model_wait **wait)
{
	const struct model *model = walk->model;
	struct wait_facts facts = {.task_state = interval->task_state};
	const struct model_fault *fault;
	uint32_t python;

	*wait = model_wait_at(model, thread, interval->from_ts);
	if (interval->syscall >= 0 && interval->syscall < WHY_SYSCALLS) {
		facts.syscall = syscall_name(model->meta->machine, interval->syscall);
		facts.call = walk->calls[interval->syscall];
	}
	if (interval->args < model->syscall_args.len)
		facts.args = &model->syscall_args.data[interval->args];
	if (*wait)
		why_facts_object(walk, &facts, (*wait)->object);
	facts.other_request = !facts.object && is_for_other_file(walk, interval);
	if (!facts.object && ((facts.args && wait_has_descriptor(&facts)) || facts.other_request))
		why_facts_object(walk, &facts, object_nearby(walk, thread, interval));
	python = map_get(&walk->python_of, model->threads.data[thread].pid);
	facts.python = python == MAP_NONE ? WAIT_NO_PYTHON : (enum wait_python)python;
	if (*wait && wait_has_descriptor(&facts))
		facts.pipe = stack_hints(walk, (*wait)->kernel_stack) & WHY_HINT_PIPE;
	if (*wait)
		facts.lock_hints = stack_hints(walk, (*wait)->kernel_stack) &
				   (WHY_HINT_READERS | WHY_HINT_WRITER);
	fault = why_fault_during(model, thread, interval->from_ts, interval->to_ts);
	facts.fault = (*wait && (*wait)->address) ||
		      (fault && fault->major && fault->from_ts <= interval->from_ts);
	return facts;
}

uint32_t why_cgroup(struct why_walk *walk, uint64_t ino, const char *controller)
{
	char key[64], detail[32], unnamed[48];
	size_t key_len = cgroup_key(key, ino, DESCRIPTOR_CGROUP);
	uint32_t text = keymap_get(&walk->cgroups, key, key_len);
	int len;

	if (text != MAP_NONE) /* of an older version of waffle-bpf */
		return text;
	snprintf(detail, sizeof(detail), DESCRIPTOR_CGROUP " %s", controller);
	key_len = cgroup_key(key, ino, detail);
	text = keymap_get(&walk->cgroups, key, key_len);
	if (text != MAP_NONE)
		return text;
	len = snprintf(unnamed, sizeof(unnamed), "cgroup %" PRIu64,
		       model_ino_real(walk->model, ino));
	text = strtab_put(walk->why->texts, unnamed, (size_t)len);
	keymap_put(&walk->cgroups, key, key_len, text);
	return text;
}

uint32_t why_mapped_file(struct why_walk *walk, uint32_t pid, uint64_t address, uint64_t ts)
{
	const struct store_mapping *mapping = stack_mappings_find(walk->mappings, pid, address, ts);

	return mapping ? strtab_put(walk->why->texts, mapping->path, strlen(mapping->path)) : 0;
}
