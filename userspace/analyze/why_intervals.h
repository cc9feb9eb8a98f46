/* SPDX-License-Identifier: Apache-2.0 */
/* States and innermost spans of threads over time, to be looked up by time. */
#ifndef WAFFLE_ANALYZE_WHY_INTERVALS_H
#define WAFFLE_ANALYZE_WHY_INTERVALS_H

#include "analyze/why_wait.h"
#include "model/model.h"
#include "model/windows.h"

/* A model_interval, without its thread. */
struct why_interval {
	uint64_t from_ts, to_ts;
	uint32_t by, args;
	uint16_t cpu, task_state;
	int16_t syscall;
	uint8_t state;
	bool woken : 1, interrupt : 1, open : 1;
	bool continued : 1; /* the kernel goes on with the call that a signal interrupted */
};

/* From `ts` on this span is the innermost one; MODEL_NONE: none. */
struct why_mark {
	uint64_t ts;
	uint32_t span;
};

/* What ended a wait. */
struct why_ender {
	uint32_t thread; /* MODEL_NONE: not known */
	bool interrupt;  /* the thread only happened to run there */
	bool has_stack;  /* of the kernel: hints are all that it tells */
	uint32_t hints;  /* enum why_hint */
};

/* Successive waits for the same thing, which are one wait. In why_series.c. */
struct why_series {
	size_t first, last; /* intervals */
	uint64_t until_ts;  /* searched up to this time; 0: there is no series */
	enum wait_kind kind;
	struct why_ender ender; /* of the last one */
	bool by_signal;         /* a signal ended the last one */
	bool repeated;          /* the program, not the kernel, called again */
};

/* All waits for the same thing in a time. */
struct why_again {
	size_t first, last;         /* intervals */
	size_t mixed_end;           /* up to there others follow */
	uint64_t from_ts, until_ts; /* 0: nothing here yet */
	enum wait_kind kind;
};
#define WHY_AGAIN 4

/* More than any machine has system calls. */
#define WHY_SYSCALLS 512

struct why_thread {
	VEC(struct why_interval) intervals;
	VEC(struct why_mark) marks;
	struct why_series series; /* the last one that was computed */
	struct why_again again[WHY_AGAIN];
	bool spins;                        /* it has waited for a lock that the kernel spins for */
	size_t interval_found, mark_found; /* last: times that are asked for are often near */
};

struct why_intervals {
	struct why_thread *threads; /* one for each of the model's */
	size_t count;
	/* While loading. */
	const struct windows *windows; /* merged; intervals outside are not kept */
	const struct model *model;
	int16_t restart, futex, waitid; /* numbers of system calls; -1: not known */
};

/* `intervals` is all zero, or has those of other windows of the same model, whose room is used
 * again. Returns 0 or -ENOMEM. */
int why_intervals_load(struct why_intervals *intervals, const struct model *model,
		       const struct windows *windows);
void why_intervals_free(struct why_intervals *intervals);

/* The first interval of a thread that ends after ts; its number, or how many there are. */
size_t why_intervals_after(const struct why_intervals *intervals, uint32_t thread, uint64_t ts);
/* Whether a span has no end although the one around it has: whether it was still open is not known.
 */
bool why_intervals_left(const struct model *model, uint32_t span);
/* The innermost span at ts, and until when (at most) it stays so. */
uint32_t why_intervals_span(const struct why_intervals *intervals, uint32_t thread, uint64_t ts,
			    uint64_t *until);

#endif
