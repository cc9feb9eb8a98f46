// SPDX-License-Identifier: Apache-2.0
/* Finds what open waits without a recorded owner are for, by the functions on their stacks: a lock
 * of Python or Java, the end of a thread, or perhaps just work. */
#include <string.h>

#include "analyze/why/hang/why_hang_internal.h"
#include "analyze/why/lookup/why_lock_names.h"
#include "analyze/why/lookup/why_wait.h"

/* The innermost functions of the program, without those of Python, and the innermost one of these.
 */
struct stack_functions {
	const char *functions[STACK_NAMES_FUNCTIONS];
	uint32_t count;
	const char *python, *python_file;
	/* PyThread_acquire_lock_timed() was called by a function without a name: the interpreter
	 * has no symbol table, as Debian's. */
	bool nameless_lock;
	bool after_lock; /* the frame before was that function */
};

static void function_add(const struct stack_frame *frame, void *arg)
{
	struct stack_functions *stack = arg;

	if (frame->cut)
		return;
	stack->nameless_lock |= stack->after_lock && !frame->function;
	stack->after_lock =
		frame->function && !strcmp(frame->function, "PyThread_acquire_lock_timed");
	if (!frame->function)
		return;
	if (!stack_frame_is_python(frame)) {
		if (stack->count < STACK_NAMES_FUNCTIONS)
			stack->functions[stack->count++] = frame->function;
	} else if (!stack->python) {
		stack->python = frame->function;
		stack->python_file = frame->file ?: "";
	}
}

/* Whether the name of a function on the stack begins with one of these. */
static bool has_function(const struct stack_functions *stack, const char *const *begins,
			 size_t begin_count)
{
	for (uint32_t i = 0; i < stack->count; i++)
		for (size_t k = 0; k < begin_count; k++)
			if (!strncmp(stack->functions[i], begins[k], strlen(begins[k])))
				return true;
	return false;
}

#define HAS_FUNCTION(stack, ...)                                                                   \
	has_function(stack, (const char *const[]){__VA_ARGS__},                                    \
		     sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* glibc stops a thread for ever, in a wait for a word of its stack that is 0, if the kernel refuses
 * a priority-inheriting mutex: to wait for it would be a deadlock (EDEADLK), or its owner has ended
 * (ESRCH). Which of them it was is not recorded. The other waits in that function expect a word
 * that is not 0. */
static bool is_refused(const struct model *model, const struct model_open_wait *wait,
		       const struct stack_functions *stack)
{
	const uint64_t *args;
	uint32_t command;

	if (wait->args >= model->syscall_args.len)
		return false;
	args = &model->syscall_args.data[wait->args];
	command = (uint32_t)args[1] & WAIT_FUTEX_COMMAND;
	return (command == WAIT_FUTEX_WAIT || command == WAIT_FUTEX_WAIT_BITSET) &&
	       !(uint32_t)args[2] &&
	       HAS_FUNCTION(stack, "__pthread_mutex_lock_full", "pthread_mutex_lock_full");
}

/* The word of any futex, and those behind it, may look like a mutex. */
static bool is_orphan(const struct model_open_wait *wait, const struct stack_functions *stack)
{
	return wait->ended && HAS_FUNCTION(stack, "pthread_mutex_", "__pthread_mutex_",
					   "___pthread_mutex_", "__GI___pthread_mutex_");
}

/* A lock of Python serves for its condition variables and joins, too. */
static enum why_awaited python_awaited(const struct stack_functions *stack)
{
	const char *base = strrchr(stack->python_file, '/');
	const char *function = strrchr(stack->python, '.');

	base = base ? base + 1 : stack->python_file;
	function = function ? function + 1 : stack->python;
	if (strcmp(base, "threading.py") != 0)
		return WHY_AWAITS_LOCK;
	if (!strcmp(function, "wait"))
		return WHY_AWAITS_UNKNOWN;
	if (!strcmp(function, "join") || !strcmp(function, "_wait_for_tstate_lock") ||
	    !strcmp(function, "_shutdown"))
		return WHY_AWAITS_END;
	return WHY_AWAITS_LOCK;
}

/* What the functions show, to which that of Python is added. */
static const char *awaited_of(const struct stack_functions *stack,
			      const char *(*awaited)(const char *const *, uint32_t))
{
	const char *functions[STACK_NAMES_FUNCTIONS + 1];

	memcpy(functions, stack->functions, stack->count * sizeof(*functions));
	functions[stack->count] = stack->python;
	return awaited(functions, stack->count + 1);
}

enum why_awaited why_awaited_by(const struct model *model, struct stack_names *names,
				const struct model_open_wait *wait)
{
	struct stack_functions stack = {.count = 0};
	const char *lock;
	enum futex_use use;

	if (!names || !wait->user_stack)
		return WHY_AWAITS_UNKNOWN;
	stack_names_each(names, wait->user_stack, wait->ts, function_add, &stack);
	lock = awaited_of(&stack, why_lock_awaited);
	if (lock)
		return why_lock_is_shared(lock)   ? WHY_AWAITS_SHARED
		       : why_lock_is_answer(lock) ? WHY_AWAITS_ANSWER
						  : WHY_AWAITS_PROGRAM;
	if (awaited_of(&stack, why_ranks_awaited))
		return WHY_AWAITS_RANKS;
	if (!wait->lock)
		return WHY_AWAITS_UNKNOWN;
	if (is_refused(model, wait, &stack))
		return WHY_AWAITS_NOTHING;
	if (is_orphan(wait, &stack))
		return WHY_AWAITS_ENDED;
	if (stack_names_has_jvm(names, model->threads.data[wait->thread].pid) &&
	    why_lock_of_java(stack.functions, stack.count))
		return WHY_AWAITS_MONITOR;
	if (stack.python &&
	    HAS_FUNCTION(&stack, "lock_PyThread_acquire_lock", "_thread_lock_acquire",
			 "rlock_acquire", "_thread_RLock_acquire"))
		return python_awaited(&stack);
	if (stack.python && stack.nameless_lock && python_awaited(&stack) == WHY_AWAITS_LOCK)
		return WHY_AWAITS_PERHAPS_LOCK;
	if (HAS_FUNCTION(&stack, "ThreadHandle_join"))
		return WHY_AWAITS_END;
	use = futex_use_by(stack.functions, stack.count);
	if (use == FUTEX_USE_ENDS)
		return WHY_AWAITS_END;
	return futex_use_is_lock(use) ? WHY_AWAITS_PASSED_LOCK : WHY_AWAITS_UNKNOWN;
}
