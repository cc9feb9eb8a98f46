/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A symbolizer whose answers a test chooses. The Makefile links the programs that include this
 * header with the linker's --wrap, so that the library calls the functions here. Without an answer
 * nothing is known.
 */
#ifndef WAFFLE_TESTS_UNIT_FAKE_NAMES_H
#define WAFFLE_TESTS_UNIT_FAKE_NAMES_H

#include "symbolize/stack_names.h"

struct stack_names {
	void *arg;
	const char *(*variable)(void *arg, uint32_t pid, uint64_t ts, uint64_t address);
	bool (*has_variable)(void *arg, const struct store_mapping *mapping, const char *name);
	bool (*is_go)(void *arg, const struct store_mapping *mapping);
	bool has_jvm; /* of each process */
	uint32_t (*functions)(void *arg, uint32_t stack, uint64_t ts, const char **functions,
			      uint32_t max);
	/* NULL: the frames have the functions, and nothing else. */
	void (*frames)(void *arg, uint32_t stack, stack_frame_fn each, void *each_arg);
};

const char *__wrap_stack_names_variable(struct stack_names *names, uint32_t pid, uint64_t ts,
					uint64_t address);
bool __wrap_stack_names_has_variable(struct stack_names *names, const struct store_mapping *mapping,
				     const char *name);
bool __wrap_stack_names_is_go(struct stack_names *names, const struct store_mapping *mapping);
bool __wrap_stack_names_has_jvm(struct stack_names *names, uint32_t pid);
uint32_t __wrap_stack_names_functions(struct stack_names *names, uint32_t stack, uint64_t ts,
				      const char **functions, uint32_t max);
uint32_t __wrap_stack_names_each(struct stack_names *names, uint32_t stack, uint64_t ts,
				 stack_frame_fn each, void *arg);

const char *__wrap_stack_names_variable(struct stack_names *names, uint32_t pid, uint64_t ts,
					uint64_t address)
{
	return names && names->variable ? names->variable(names->arg, pid, ts, address) : NULL;
}

bool __wrap_stack_names_has_variable(struct stack_names *names, const struct store_mapping *mapping,
				     const char *name)
{
	return names && names->has_variable && names->has_variable(names->arg, mapping, name);
}

bool __wrap_stack_names_is_go(struct stack_names *names, const struct store_mapping *mapping)
{
	return names && names->is_go && names->is_go(names->arg, mapping);
}

bool __wrap_stack_names_has_jvm(struct stack_names *names, uint32_t pid)
{
	(void)pid;
	return names && names->has_jvm;
}

uint32_t __wrap_stack_names_functions(struct stack_names *names, uint32_t stack, uint64_t ts,
				      const char **functions, uint32_t max)
{
	return names && names->functions ? names->functions(names->arg, stack, ts, functions, max)
					 : 0;
}

uint32_t __wrap_stack_names_each(struct stack_names *names, uint32_t stack, uint64_t ts,
				 stack_frame_fn each, void *arg)
{
	const char *functions[STACK_NAMES_FUNCTIONS];
	uint32_t count;

	if (names && names->frames) {
		names->frames(names->arg, stack, each, arg);
		return 0;
	}
	count = __wrap_stack_names_functions(names, stack, ts, functions, STACK_NAMES_FUNCTIONS);
	for (uint32_t i = 0; i < count; i++)
		each(&(struct stack_frame){.function = functions[i]}, arg);
	return count;
}

#endif
