/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture's stacks as names. A user address is looked up in what its process had mapped there at
 * the time, and the place in that file is named from the file or its debug file, found by build-id;
 * a kernel address has the name that the kernel gave it during the capture. What is not known is
 * shown as module+0xoffset.
 *
 *	struct stack_names *names;
 *
 *	stack_names_open(&names, reader, true);
 *	stack_names_each(names, wait->user_stack, wait->from_ts, print_frame, out);
 *	stack_names_close(names);
 *
 * Strings stay valid until stack_names_close() and may hold any bytes.
 */
#ifndef WAFFLE_EXPORT_STACK_TEXT_H
#define WAFFLE_EXPORT_STACK_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "analyze/why.h"
#include "store/store.h"

struct stack_names;

struct stack_frame {
	const char *function; /* NULL: not known */
	const char *module;   /* path of the file, "[kernel]"; NULL: nothing was mapped there */
	const char *file;     /* source; NULL: not known */
	uint32_t line;        /* 0: not known */
	uint64_t offset;      /* in the function, or else in the module; without both the address */
	bool inlined;         /* into the next frame */
	bool kernel;
	bool cut; /* no frame: the stack goes on, nobody knows how; `function` is "[cut]" */
};

/* `fetch`: debug files may be fetched from debuginfod servers, where some are configured. The
 * reader must outlive the names. -ENOMEM. */
int stack_names_open(struct stack_names **names, const struct store_reader *reader, bool fetch);
void stack_names_close(struct stack_names *names);

typedef void (*stack_frame_fn)(const struct stack_frame *frame, void *arg);

/* Calls `each` for every frame of a stack of the capture's table, innermost first, inlined ones
 * too, and a last time if it is known to be cut; returns how many frames. `ts`: when it was taken.
 * NULL names: none. */
uint32_t stack_names_each(struct stack_names *names, uint32_t stack, uint64_t ts,
			  stack_frame_fn each, void *arg);

/* The same for a stack that was not walked by frame pointers alone: no frame of it is doubted. */
uint32_t stack_names_all(struct stack_names *names, uint32_t stack, uint64_t ts,
			 stack_frame_fn each, void *arg);

/* The innermost frame with a name that says something of the program: not one of the C library, the
 * dynamic linker or the language's run-time. False: there is none. */
bool stack_names_inner(struct stack_names *names, uint32_t stack, uint64_t ts,
		       struct stack_frame *inner);

/* The variable at an address of a process, "table_lock", "pool+0x40", or NULL. */
const char *stack_names_variable(struct stack_names *names, uint32_t pid, uint64_t ts,
				 uint64_t address);

/* What `why` asks for names. */
struct why_names stack_names_for_why(struct stack_names *names);

/* "queue_pop (shop.c:41) [inlined]", "libfoo.so+0x1f20"; characters that would move a terminal's
 * cursor are replaced. */
void stack_put_frame(FILE *out, const struct stack_frame *frame);

#endif
