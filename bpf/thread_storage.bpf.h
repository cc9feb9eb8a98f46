/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The storage of a thread besides its state (shared.h): its open calls and stack walks. Most
 * threads have none, so it is created on first use. Where a program may not allocate memory
 * (scheduler_allocates()), it is created when the thread is forked. Defined in task.bpf.c.
 */
#ifndef WAFFLE_THREAD_STORAGE_BPF_H
#define WAFFLE_THREAD_STORAGE_BPF_H

#include "call.h"
#include "shared.h"
#include "unwind.h"
#include "stack.h"

extern struct call_threads_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct waffle_call_thread);
} call_threads SEC(".maps");

#define WORDS 256 /* a power of two; 64 addresses and 48 frames of Python fit */

/* A walk in progress. It belongs to the thread, since another one may interrupt it on its CPU. */
struct storage_walk {
	struct waffle_stack_process process;
	struct waffle_unwind_regs regs;
	struct waffle_unwind_mapping mapping; /* of the last frame */
	struct waffle_unwind_row row;         /* that applies to it */
	/* address that return probes have put in place of return addresses; 0: none */
	__u64 trampoline;
	/* the innermost one of the kernel's list that the walk has not reached */
	__u64 return_probe;
	__u64 return_stack; /* the stack address to find in that list */
	__u64 ts;           /* of the span or event */
	__u64 frame;        /* address of the _PyInterpreterFrame to begin at */
	__u32 zero;
	__u32 waits;   /* this is walks.of_wait */
	__u32 count;   /* addresses */
	__u32 python;  /* frames of Python */
	__u32 cut;     /* WAFFLE_CUT_* */
	__u32 at_call; /* WAFFLE_STACK_CALL */
	__u64 words[WORDS];
};

struct walks {
	struct storage_walk of_span;
	struct storage_walk of_wait; /* the thread may be switched out while of_span is in use */
};

extern struct stack_walks_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct walks);
} stack_walks SEC(".maps");

#endif
