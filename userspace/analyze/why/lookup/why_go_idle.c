// SPDX-License-Identifier: Apache-2.0
/*
 * Waits in which Go's runtime has nothing to run on a thread. The functions on the stack of a wait
 * show it. Many waits have no stack. Those are for the same thing as others that have one: each
 * thread waits for work at a futex of its own, the timers and files of all goroutines are in one
 * epoll instance, and one thread of the runtime sleeps again and again.
 */
#include "analyze/why/lookup/why_go_idle.h"

#include <string.h>

#include "analyze/why/lookup/why_go.h"
#include "analyze/why/why_walk_types.h"
#include "util/hash.h"
#include "util/memory.h"
#include "util/text.h"

/* Functions of the runtime that wait for work, or for what only the runtime does. */
static const char *const idle_functions[] = {
	"runtime.stopm",         "runtime.findRunnable",
	"runtime.findrunnable", /* up to Go 1.18 */
	"runtime.netpoll",      /* where a stack is cut off */
	"runtime.sysmon",        "runtime.templateThread",
	"runtime.timerproc", /* up to Go 1.13 */
	"os/signal.signal_recv",
};

/* Waits for a lock of the runtime, which these functions may do as well. */
static bool is_runtime_lock(const char *function)
{
	return text_begins(function, "runtime.lock");
}

static bool is_idle_function(const char *function)
{
	for (size_t i = 0; i < sizeof(idle_functions) / sizeof(idle_functions[0]); i++)
		if (!strcmp(function, idle_functions[i]))
			return true;
	return false;
}

static bool is_idle_stack(struct why_walk *walk, uint32_t stack, uint64_t ts)
{
	const char *functions[STACK_NAMES_FUNCTIONS];
	uint32_t count =
		stack_names_functions(walk->names, stack, ts, functions, STACK_NAMES_FUNCTIONS);

	for (uint32_t i = 0; i < count; i++) {
		if (functions[i] && is_runtime_lock(functions[i]))
			return false;
		if (functions[i] && is_idle_function(functions[i]))
			return true;
	}
	return false;
}

/* Whether the stack of a wait shows that the thread was idle; MAP_NONE: the wait has no stack. */
static uint32_t idle_by_stack(struct why_walk *walk, const struct model_wait *wait)
{
	uint32_t known;

	if (!wait || !store_reader_stack(walk->model->reader, wait->user_stack))
		return MAP_NONE;
	known = map_get(&walk->go_idle_stacks, wait->user_stack);
	if (known == MAP_NONE) {
		known = is_idle_stack(walk, wait->user_stack, wait->from_ts);
		map_put(&walk->go_idle_stacks, wait->user_stack, known);
	}
	return known;
}

/* What a thread waits for in a system call: waits with the same key are for the same thing. 0: it
 * is not known. */
static uint64_t key_of(const struct why_walk *walk, uint32_t thread, int16_t syscall, uint32_t args)
{
	const struct model *model = walk->model;
	uint64_t process = hash_number(model->threads.data[thread].pid);

	if (syscall < 0 || syscall >= WHY_SYSCALLS)
		return 0;
	switch (walk->calls[syscall]) {
	case WAIT_CALL_FUTEX:
		return args < model->syscall_args.len ? process ^ model->syscall_args.data[args]
						      : 0;
	case WAIT_CALL_POLL:
		return args < model->syscall_args.len
			       ? process ^ hash_number(1 + model->syscall_args.data[args])
			       : 0;
	case WAIT_CALL_SLEEP:
		return process ^ hash_number(hash_number(1 + thread));
	default:
		return 0;
	}
}

void why_go_idle_init(struct why_walk *walk)
{
	const struct model *model = walk->model;

	for (size_t i = 0; walk->has_go && walk->names && i < model->switches.len; i++) {
		const struct model_switch *sw = &model->switches.data[i];
		uint64_t key;
		uint32_t idle;

		if (sw->prev == MODEL_NONE || !(sw->prev_state & 0xff) ||
		    !model_is_traced(model, sw->prev) || !why_is_go(walk, sw->prev))
			continue;
		key = key_of(walk, sw->prev, sw->syscall, sw->args);
		idle = key ? idle_by_stack(walk, model_wait_at(model, sw->prev, sw->ts)) : MAP_NONE;
		/* If a goroutine waits for it as well, its waits without a stack are unclear. */
		if (idle != MAP_NONE && map_get(&walk->go_idle, key) != 0)
			map_put(&walk->go_idle, key, idle);
	}
}

bool why_go_is_idle(struct why_walk *walk, uint32_t thread, const struct why_interval *interval)
{
	uint32_t idle;
	uint64_t key;

	if (!walk->has_go || !walk->names || !why_is_go(walk, thread))
		return false;
	idle = idle_by_stack(walk, model_wait_at(walk->model, thread, interval->from_ts));
	if (idle != MAP_NONE)
		return idle;
	key = key_of(walk, thread, interval->syscall, interval->args);
	return key && map_get(&walk->go_idle, key) == 1;
}
