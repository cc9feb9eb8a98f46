// SPDX-License-Identifier: Apache-2.0
/* What the records show about a wait: who ended it, its file, and requests to devices. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why_walk.h"
#include "util/syscall_names.h"

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
	{"hrtimer_wakeup", WHY_HINT_TIMER},
	{"process_timeout", WHY_HINT_TIMER},
	{"sock_def_readable", WHY_HINT_SOCKET},
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
	{"thaw_task", WHY_HINT_THAW},
	{"__thaw_task", WHY_HINT_THAW},
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
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	return !strncmp(base, "python3", 7) || !strncmp(base, "libpython3", 10);
}

/* The interpreter's state is in the program or in its library. */
static bool add_python(struct why_walk *walk, const struct store_mapping *mapping)
{
	const struct why_names *names = walk->names;
	enum wait_python python = WAIT_PYTHON;

	if (map_get(&walk->pythons, mapping->pid) == WAIT_PYTHON_KNOWN)
		return true;
	if (names && names->has_variable &&
	    names->has_variable(names->arg, mapping, WAIT_PYTHON_STATE))
		python = WAIT_PYTHON_KNOWN;
	return map_set(&walk->pythons, mapping->pid, python);
}

static int by_pid(const void *left, const void *right, void *arg)
{
	const struct model_thread *threads = arg;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (threads[a].pid != threads[b].pid)
		return threads[a].pid < threads[b].pid ? -1 : 1;
	return a < b ? -1 : a > b;
}

static bool order_threads(struct why_walk *walk)
{
	const struct model *model = walk->model;
	size_t count = model->threads.len;

	walk->by_pid = malloc((count + 1) * sizeof(*walk->by_pid));
	if (!walk->by_pid)
		return false;
	for (uint32_t i = 0; i < count; i++)
		walk->by_pid[i] = i;
	if (count)
		qsort_r(walk->by_pid, count, sizeof(*walk->by_pid), by_pid, model->threads.data);
	return true;
}

size_t why_threads_of(const struct why_walk *walk, uint32_t pid)
{
	const struct model_thread *threads = walk->model->threads.data;
	size_t low = 0, high = walk->model->threads.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (threads[walk->by_pid[middle]].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- Go ---- */

/* Limit of stacks to examine per process. */
#define GO_STACKS 32
#define GO_FUNCTIONS 12

static bool is_go_stack(const struct why_walk *walk, const struct model_wait *wait)
{
	const struct why_names *names = walk->names;
	const char *functions[GO_FUNCTIONS];
	uint32_t count = names->functions(names->arg, wait->user_stack, wait->from_ts, functions,
					  GO_FUNCTIONS);

	for (uint32_t i = 0; i < count; i++)
		if (functions[i] && !strncmp(functions[i], "runtime.", 8))
			return true;
	return false;
}

static bool find_go(struct why_walk *walk)
{
	const struct model *model = walk->model;

	if (!walk->names || !walk->names->functions)
		return true;
	for (size_t i = 0; i < model->waits.len; i++) {
		const struct model_wait *wait = &model->waits.data[i];
		uint32_t pid, seen;

		/* The first page faults of a process come from the loader. */
		if (wait->address || !store_reader_stack(model->reader, wait->user_stack))
			continue;
		pid = model->threads.data[wait->thread].pid;
		seen = map_get(&walk->goes, pid);
		if (seen == MAP_NONE)
			seen = 0;
		if (seen >= GO_STACKS)
			continue;
		seen = is_go_stack(walk, wait) ? WHY_GO : seen + 1;
		walk->has_go |= seen == WHY_GO;
		if (!map_set(&walk->goes, pid, seen))
			return false;
	}
	return true;
}

bool why_is_go(const struct why_walk *walk, uint32_t thread)
{
	return thread < walk->model->threads.len &&
	       map_get(&walk->goes, walk->model->threads.data[thread].pid) == WHY_GO;
}

/* ---- set-up ---- */

#define OWN_TEXT "this capture"
#define HELD_TEXT "held by waffle-bpf (this capture)"

int why_evidence_init(struct why_walk *walk)
{
	const struct store_reader *reader = walk->model->reader;

	walk->own_text = strtab_add(walk->why->texts, OWN_TEXT, strlen(OWN_TEXT));
	walk->held_text = strtab_add(walk->why->texts, HELD_TEXT, strlen(HELD_TEXT));
	if (walk->own_text == STRTAB_NONE || walk->held_text == STRTAB_NONE)
		return -ENOMEM;
	for (int i = 0; i < WHY_SYSCALLS; i++)
		walk->calls[i] = (uint8_t)wait_call_of(syscall_name(walk->model->meta->machine, i));
	if (!model_losses(&walk->losses, walk->model, true) || !order_threads(walk) ||
	    !find_go(walk))
		return -ENOMEM;
	for (uint32_t i = 0; i < store_reader_symbol_count(reader); i++) {
		const struct store_symbol *symbol = store_reader_symbol(reader, i);
		uint32_t hints = hints_of(symbol->name);

		if (!map_set(&walk->kernel_symbols, symbol->address, i) ||
		    (hints && !map_set(&walk->kernel_hints, symbol->address, hints)))
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < store_reader_mapping_count(reader); i++) {
		const struct store_mapping *mapping = store_reader_mapping(reader, i);

		if (is_python(mapping->path) && !add_python(walk, mapping))
			return -ENOMEM;
	}
	return 0;
}

#define NO_PEER (MODEL_NONE - 1)

static uint32_t stack_hints(const struct why_walk *walk, uint32_t number)
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

/* Limit of kernel frames per stack; the kernel takes at most 127. */
#define FRAMES_MAX 128

static struct meaning stack_meaning(const struct why_walk *walk, const struct store_stack *stack)
{
	const char *functions[FRAMES_MAX];
	uint32_t count = stack->count < FRAMES_MAX ? stack->count : FRAMES_MAX;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t index = map_get(&walk->kernel_symbols, stack->addresses[i]);
		const struct store_symbol *symbol = store_reader_symbol(walk->model->reader, index);

		functions[i] = symbol ? symbol->name : NULL;
	}
	return meaning_of(functions, count);
}

bool why_stack_meaning(struct why_walk *walk, uint32_t number, struct why_stack *result)
{
	const struct store_stack *stack = store_reader_stack(walk->model->reader, number);
	uint32_t known = map_get(&walk->stack_at, number);
	char text[MEANING_TEXT];

	*result = (struct why_stack){0};
	if (!stack)
		return true;
	if (known != MAP_NONE) {
		*result = walk->stacks.data[known];
		return true;
	}
	result->meaning = stack_meaning(walk, stack);
	meaning_text(text, &result->meaning);
	result->text = strtab_add(walk->why->texts, text, strlen(text));
	return result->text != STRTAB_NONE &&
	       map_set(&walk->stack_at, number, (uint32_t)walk->stacks.len) &&
	       vec_push(&walk->stacks, *result);
}

/* Kernel threads that run deferred interrupt work. */
static bool is_softirq_thread(const struct model *model, uint32_t thread)
{
	return !strncmp(model_comm(model, thread), "ksoftirqd/", 10);
}

/* If it was woken and switched in at once, there is no runnable interval, only the switch. */
static void ender_at_switch(struct why_ender *ender, const struct model *model, uint32_t thread,
			    uint64_t ts)
{
	const struct model_switch *in =
		why_switch_in(model, why_switch_after(model, ts), thread, ts);

	if (!in || !(in->flags & WAFFLE_SWITCH_WOKEN))
		return;
	ender->thread = in->waker;
	ender->interrupt = in->flags & (WAFFLE_SWITCH_WAKER_HARDIRQ | WAFFLE_SWITCH_WAKER_SOFTIRQ);
}

struct why_ender why_ender_of(const struct why_walk *walk, uint32_t thread, size_t index)
{
	const struct why_thread *of = &walk->intervals.threads[thread];
	const struct why_interval *interval = &of->intervals.data[index], *next = interval + 1;
	const struct model *model = walk->model;
	struct why_ender ender = {.thread = MODEL_NONE};
	const struct model_wake *wake = model_wake_at(model, thread, interval->to_ts);

	if (interval->open)
		return ender;
	if (index + 1 < of->intervals.len && next->from_ts == interval->to_ts &&
	    next->state == WAFFLE_THREAD_RUNNABLE && next->woken) {
		ender.thread = next->by;
		ender.interrupt = next->interrupt;
	} else {
		ender_at_switch(&ender, model, thread, interval->to_ts);
	}
	if (wake) {
		ender.thread = wake->waker;
		ender.hints = stack_hints(walk, wake->kernel_stack);
		ender.has_stack =
			store_reader_stack(walk->model->reader, wake->kernel_stack) != NULL;
		ender.interrupt |= (wake->flags &
				    (WAFFLE_SWITCH_WAKER_HARDIRQ | WAFFLE_SWITCH_WAKER_SOFTIRQ)) ||
				   (ender.hints & WHY_HINT_INTERRUPT);
	}
	if (ender.thread < model->threads.len && is_softirq_thread(model, ender.thread))
		ender.interrupt = true;
	return ender;
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

/* Whether a wait was in the same call on the same descriptor as `interval`. False if its own
 * interval was not kept. */
static bool same_descriptor(const struct why_walk *walk, const struct model_wait *wait,
			    const struct why_interval *interval)
{
	const struct why_thread *of = &walk->intervals.threads[wait->thread];
	const uint64_t *args = walk->model->syscall_args.data;
	size_t i = why_intervals_after(&walk->intervals, wait->thread, wait->from_ts);
	const struct why_interval *other = of->intervals.data + i;

	return i < of->intervals.len && other->from_ts == wait->from_ts &&
	       other->syscall == interval->syscall && other->args < walk->model->syscall_args.len &&
	       args[other->args] == args[interval->args];
}

/* Number of the thread's waits to search, before and after. */
#define NEIGHBOURS 16

/* The recorder does not find every name in time. Takes the name from the thread's nearest wait for
 * the same descriptor. */
static uint32_t object_nearby(const struct why_walk *walk, uint32_t thread,
			      const struct why_interval *interval)
{
	const struct model *model = walk->model;
	size_t low = 0, high = model->waits.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct model_wait *wait = &model->waits.data[middle];

		if (wait->thread < thread ||
		    (wait->thread == thread && wait->from_ts < interval->from_ts))
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = 0; i < 2 * NEIGHBOURS; i++) {
		/* The subtraction may wrap around to an invalid index. */
		size_t at = i % 2 ? low + i / 2 : low - 1 - i / 2;
		const struct model_wait *wait;

		if (at >= model->waits.len)
			continue;
		wait = &model->waits.data[at];
		if (wait->thread == thread && wait->object && same_descriptor(walk, wait, interval))
			return wait->object;
	}
	return 0;
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
		facts.object = store_reader_object(model->reader, (*wait)->object);
	if (!facts.object && facts.args && wait_has_descriptor(&facts))
		facts.object =
			store_reader_object(model->reader, object_nearby(walk, thread, interval));
	python = map_get(&walk->pythons, model->threads.data[thread].pid);
	facts.python = python == MAP_NONE ? WAIT_NO_PYTHON : (enum wait_python)python;
	if (*wait && wait_has_descriptor(&facts))
		facts.pipe = stack_hints(walk, (*wait)->kernel_stack) & WHY_HINT_PIPE;
	fault = why_fault_during(model, thread, interval->from_ts, interval->to_ts);
	facts.fault = (*wait && (*wait)->address) ||
		      (fault && fault->major && fault->from_ts <= interval->from_ts);
	return facts;
}

size_t why_signals_after(const struct model *model, uint64_t ts)
{
	size_t low = 0, high = model->signals.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (model->signals.data[middle].ts <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct model_signal *why_stopper(const struct model *model, uint32_t thread, uint64_t ts)
{
	size_t at = why_signals_after(model, ts);

	while (at--) {
		const struct model_signal *signal = &model->signals.data[at];
		bool stops = signal->signo == SIGSTOP || signal->signo == SIGTSTP ||
			     signal->signo == SIGTTIN || signal->signo == SIGTTOU;

		if (stops && signal->target < model->threads.len &&
		    model->threads.data[signal->target].pid == model->threads.data[thread].pid)
			return signal;
	}
	return NULL;
}

/* Requests are sorted by their end. Limit of those to check that end after the wait. */
#define IO_LATER 256

enum why_io why_io_list(const struct model *model, uint32_t thread, uint64_t from, uint64_t to,
			bool write, uint32_t *list, uint32_t room, uint32_t *count)
{
	enum why_io found = WHY_IO_NONE;
	size_t low = 0, high = model->ios.len, later = 0;

	*count = 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (model->ios.data[middle].done_ts <= from)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < model->ios.len; low++) {
		const struct model_io *io = &model->ios.data[low];
		enum why_io whose = io->thread == thread ? WHY_IO_OWN : WHY_IO_OTHERS;

		if (io->done_ts > to && ++later > IO_LATER)
			break;
		if (io->issue_ts >= to || whose < found ||
		    !!(io->flags & (WAFFLE_IO_WRITE | WAFFLE_IO_FLUSH)) != write)
			continue;
		if (whose > found || whose == WHY_IO_OTHERS)
			*count = 0;
		found = whose;
		list[(*count)++] = (uint32_t)low;
		if (whose == WHY_IO_OWN ? *count == room : io->done_ts > to)
			break;
	}
	return found;
}

enum why_io why_io_during(const struct model *model, uint32_t thread, uint64_t from, uint64_t to,
			  bool write)
{
	uint32_t first, count;

	return why_io_list(model, thread, from, to, write, &first, 1, &count);
}

const struct model_fault *why_fault_during(const struct model *model, uint32_t thread,
					   uint64_t from, uint64_t to)
{
	size_t low = 0, high = model->faults.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct model_fault *fault = &model->faults.data[middle];

		if (fault->thread < thread || (fault->thread == thread && fault->to_ts <= from))
			low = middle + 1;
		else
			high = middle;
	}
	if (low < model->faults.len && model->faults.data[low].thread == thread &&
	    model->faults.data[low].from_ts < to)
		return &model->faults.data[low];
	return NULL;
}

size_t why_quota_after(const struct model *model, uint32_t thread, uint64_t ts)
{
	size_t low = 0, high = model->quotas.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct model_quota *quota = &model->quotas.data[middle];

		if (quota->thread < thread || (quota->thread == thread && quota->ts <= ts))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t cgroup_find(const struct why_walk *walk, uint64_t ino)
{
	const struct store_object *object;
	char text[48];
	int len;

	for (uint32_t i = 1; (object = store_reader_object(walk->model->reader, i)); i++)
		if (object->ino == ino && !object->dev && !strcmp(object->detail, "cgroup"))
			return strtab_add(walk->why->texts, object->name, strlen(object->name));
	len = snprintf(text, sizeof(text), "cgroup %" PRIu64, ino);
	return strtab_add(walk->why->texts, text, (size_t)len);
}

uint32_t why_cgroup(struct why_walk *walk, uint64_t ino)
{
	uint32_t text = map_get(&walk->cgroups, ino);

	if (text != MAP_NONE)
		return text;
	text = cgroup_find(walk, ino);
	if (text != STRTAB_NONE && !map_set(&walk->cgroups, ino, text))
		return STRTAB_NONE;
	return text;
}

static bool maps(const struct store_mapping *mapping, uint32_t pid, uint64_t address)
{
	return mapping->pid == pid && address >= mapping->start && address < mapping->end &&
	       *mapping->path;
}

uint32_t why_mapped_file(struct why_walk *walk, uint32_t pid, uint64_t address, uint64_t ts)
{
	const struct store_reader *reader = walk->model->reader;
	const struct store_mapping *best = NULL;

	if (walk->mapping && maps(walk->mapping, pid, address) && walk->mapping->ts <= ts)
		best = walk->mapping;
	for (uint32_t i = 0; !best && i < store_reader_mapping_count(reader); i++)
		if (maps(store_reader_mapping(reader, i), pid, address))
			best = store_reader_mapping(reader, i);
	if (!best)
		return 0;
	walk->mapping = best;
	return strtab_add(walk->why->texts, best->path, strlen(best->path));
}

/* Whether two texts describe the ends of one connection: "tcp 10.0.0.1:80 <-> 10.0.0.2:5000", and
 * the same with the addresses swapped. */
static bool are_ends(const char *a, const char *b)
{
	static const char between[] = " <-> ";
	const size_t gap = sizeof(between) - 1;
	const char *a_local = strchr(a, ' '), *b_local = strchr(b, ' '), *a_end, *b_end;
	size_t a_len, b_len;

	if (!a_local++ || !b_local++ || a_local - a != b_local - b ||
	    strncmp(a, b, (size_t)(a_local - a)) != 0)
		return false;
	a_end = strstr(a_local, between);
	b_end = strstr(b_local, between);
	if (!a_end || !b_end)
		return false;
	a_len = (size_t)(a_end - a_local);
	b_len = (size_t)(b_end - b_local);
	return strlen(a_end + gap) == b_len && !strncmp(a_end + gap, b_local, b_len) &&
	       strlen(b_end + gap) == a_len && !strncmp(b_end + gap, a_local, a_len);
}

/* A thread that waited for the socket, or else the main thread of the process. */
static uint32_t socket_user(const struct model *model, uint32_t number, uint32_t pid)
{
	for (size_t i = 0; i < model->waits.len; i++)
		if (model->waits.data[i].object == number)
			return model->waits.data[i].thread;
	for (size_t i = 0; i < model->processes.len; i++)
		if (model->processes.data[i].pid == pid)
			return model->processes.data[i].main_thread;
	return MODEL_NONE;
}

static uint32_t peer_find(const struct model *model, const struct store_object *object)
{
	const struct store_object *other;

	for (uint32_t i = 1; (other = store_reader_object(model->reader, i)); i++)
		if (are_ends(object->detail, other->detail))
			return socket_user(model, i, other->pid);
	return MODEL_NONE;
}

uint32_t why_socket_peer(struct why_walk *walk, const struct store_object *object)
{
	uint32_t peer;

	if (!object || !*object->detail)
		return MODEL_NONE;
	peer = map_get(&walk->peers, (uintptr_t)object);
	if (peer == MAP_NONE) {
		peer = peer_find(walk->model, object);
		/* If out of memory, the peer is looked up again next time. */
		map_set(&walk->peers, (uintptr_t)object, peer == MODEL_NONE ? NO_PEER : peer);
	}
	return peer == NO_PEER ? MODEL_NONE : peer;
}
