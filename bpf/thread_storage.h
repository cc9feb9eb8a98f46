/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What is kept of a thread besides its state (shared.h): calls and walks under way. Most threads
 * have none, so it is made when it is needed first; or, where the program that needs it may not
 * allocate memory (scheduler_allocates), when the thread is forked. Defined in task.bpf.c.
 */
#ifndef WAFFLE_THREAD_STORAGE_H
#define WAFFLE_THREAD_STORAGE_H

#include "call.h"
#include "shared.h"
#include "unwind.h"
#include "stack.h"

extern const volatile bool call_points; /* there may be calls at tracepoints */

extern struct call_threads_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct waffle_call_thread);
} call_threads SEC(".maps");

#define WORDS 256 /* a power of two; 64 addresses and 48 frames of Python fit */

/* Walks under way. They are the thread's own: another one may interrupt it on its CPU. */
struct walk {
	struct waffle_stack_process process;
	struct waffle_unwind_regs regs;
	struct waffle_unwind_mapping mapping; /* of the last frame */
	struct waffle_unwind_row row;         /* that holds for it */
	__u64 trampoline;   /* that return probes have put in place of return addresses; 0: none */
	__u64 return_probe; /* the kernel's innermost one that the walk has not come to */
	__u64 return_stack; /* of the one that is looked for */
	__u64 ts;           /* of the span or event */
	__u64 thread;       /* Python's: PyThreadState */
	__u64 frame;        /* _PyInterpreterFrame */
	__u32 zero;
	__u32 waits;   /* it is of_wait */
	__u32 count;   /* addresses */
	__u32 python;  /* frames of Python */
	__u32 cut;     /* WAFFLE_CUT_* */
	__u32 at_call; /* WAFFLE_STACK_CALL */
	__u64 words[WORDS];
};

struct walks {
	struct walk of_span;
	struct walk of_wait; /* the thread may lose its CPU in the midst of the other one */
};

extern struct stack_walks_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct walks);
} stack_walks SEC(".maps");

#endif
