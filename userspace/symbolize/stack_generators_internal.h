/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The run-times that generate code while a program runs, such as the JVM. Such code is in no file,
 * so that its functions have no names; that it may be such code can be told by the files that the
 * process has mapped.
 */
#ifndef WAFFLE_SYMBOLIZE_STACK_GENERATORS_INTERNAL_H
#define WAFFLE_SYMBOLIZE_STACK_GENERATORS_INTERNAL_H

#include "symbolize/stack_mappings.h"
#include "util/map.h"
#include "util/vec.h"

struct stack_generator {
	const char *name;  /* "the JVM"; NULL: the process has none */
	bool jvm;          /* it has the JVM, perhaps beside another one */
	uint64_t files_to; /* the end of the highest mapping of a file */
};

/* Those of the processes that were looked up; {0} is empty. */
struct stack_generators {
	VEC(struct stack_generator) list;
	struct map at; /* pid → index in `list` */
};

/* stack_names_generator(), without its lock. */
const char *stack_generators_find(struct stack_generators *generators,
				  struct stack_mappings *mappings, uint32_t pid, uint64_t address,
				  uint64_t ts);
/* stack_names_has_jvm(), without its lock. */
bool stack_generators_has_jvm(struct stack_generators *generators, struct stack_mappings *mappings,
			      uint32_t pid);
void stack_generators_free(struct stack_generators *generators);

#endif
