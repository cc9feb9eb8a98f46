/* SPDX-License-Identifier: Apache-2.0 */
/* What a Go program does as a whole. */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_GO_PROGRAM_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_GO_PROGRAM_H

#include "analyze/why/why_walk_types.h"

/* Limit of the threads to examine that have intervals in the time. */
#define WHY_PROGRAM_THREADS 256

/* How well a thread explains what the program does, from worst to best: a thread without work is
 * woken by others of the program, but its poller and goroutines in system calls are not. */
enum why_program_rank {
	WHY_PROGRAM_NOT_KNOWN,
	WHY_PROGRAM_MONITOR,
	WHY_PROGRAM_PARKED,
	WHY_PROGRAM_WAITS,
	WHY_PROGRAM_CALL,
	WHY_PROGRAM_RUNNABLE,
	WHY_PROGRAM_RUNNING
};

struct why_program {
	struct why_walk *walk;
	uint32_t count;
	bool left_out; /* there are more threads than the limit; one of them may run */
	uint32_t threads[WHY_PROGRAM_THREADS];
	size_t at[WHY_PROGRAM_THREADS];     /* of each, the interval that was looked at last */
	size_t ranked[WHY_PROGRAM_THREADS]; /* the interval whose rank is known, plus 1 */
	enum why_program_rank ranks[WHY_PROGRAM_THREADS];
};

/* A time in which no thread of the program changes its state. */
struct why_program_part {
	uint32_t thread; /* the one that explains it; MODEL_NONE: no thread is known */
	enum why_program_rank rank;
	uint64_t until, thread_until;
	bool unsure; /* a thread that is left out may explain it better */
};

/* Begins to look at a program from `from` to `to`. */
void why_program_open(struct why_program *program, struct why_walk *walk, uint32_t pid,
		      uint64_t from, uint64_t to);
/* The state of the program from ts on. Successive calls have rising times. */
struct why_program_part why_program_at(struct why_program *program, uint64_t ts, uint64_t to);

#endif
