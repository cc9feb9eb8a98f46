/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backtraces of the calling thread: the frames that it pushed, its spans, machine frames where it
 * pushed none, and then the spans and frames that its context was extracted from.
 *
 *	struct backtrace trace;
 *	backtrace_take(&trace, backtrace_caller(), NULL);
 *	backtrace_walk(&trace, each, arg);
 *
 * Everything here is async-signal-safe.
 */
#ifndef WAFFLE_USDT_FRAME_BACKTRACE_H
#define WAFFLE_USDT_FRAME_BACKTRACE_H

#include "usdt/frame/machine.h"
#include "waffle/frame.h"

#define BACKTRACE_MACHINE 64
#define BACKTRACE_SPANS 32

/* A span of the chain of parents. */
struct backtrace_span {
	unsigned long long id;
	const char *meta;
	uintptr_t place;
	unsigned line, frame_depth;
	bool own; /* it is open on this stack */
};

struct backtrace_frame {
	const struct waffle_frame_site_ *site;
	uintptr_t place;
	unsigned depth;
};

/* What there is, before it is put in order. All innermost first. */
struct backtrace {
	struct machine_frame machine[BACKTRACE_MACHINE];
	size_t machine_count;
	bool machine_cut; /* there are more machine frames, which are not known */
	struct backtrace_frame frames[WAFFLE_FRAMES_];
	size_t frame_count;
	struct backtrace_span spans[BACKTRACE_SPANS];
	size_t span_count;
	uintptr_t thread; /* the address of its struct waffle_thread_ */
};

/* The lowest address of the stack of the function that called the one where this is used. */
#define backtrace_caller() ((uintptr_t)__builtin_dwarf_cfa())

/* `context` as for machine_unwind(). */
void backtrace_take(struct backtrace *trace, uintptr_t from, const void *context);

/* Calls `each` until it returns something else than 0. Returns the number of calls. */
int backtrace_walk(const struct backtrace *trace, int (*each)(const waffle_entry_t *, void *),
		   void *arg);

/* On one line, as much as there is room for, with files without folders, and machine frames only
 * inside of others. Returns the length; the text has no NUL. */
size_t backtrace_line(const struct backtrace *trace, char *text, size_t size);

/* A line for each entry. Returns their number or a negative errno. */
int backtrace_write(const struct backtrace *trace, int fd);

/* In the handler of a fault: writes the backtrace to standard error if the code is in full mode.
 * Only the first fault of the process is told, since the program may handle it and go on. */
void backtrace_tell(int signo, const void *context);

/* A span of this thread begins (struct waffle_full_). */
void backtrace_span_opened(const char *meta, const unsigned long long *words,
			   const struct waffle_scope_ *scope);
/* The context of this thread was extracted. */
void backtrace_extracted(void);

#endif
