/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of why: what is kept of a model to follow waits through the windows that were asked for,
 * and how a wait is told.
 */
#ifndef WAFFLE_ANALYZE_WHY_INTERNAL_H
#define WAFFLE_ANALYZE_WHY_INTERNAL_H

#include "analyze/wait_names.h"
#include "analyze/why.h"
#include "util/map.h"

/* ---- why_windows.c: windows of time that neither touch nor overlap, in order ---- */

struct why_window {
	uint64_t from_ts, to_ts;
};

struct why_windows {
	VEC(struct why_window) list;
};

/* Puts what was pushed to the list in order and together. */
void windows_merge(struct why_windows *windows);
/* Whether one has time in common with [from_ts, to_ts]; a moment counts. */
bool windows_overlap(const struct why_windows *windows, uint64_t from_ts, uint64_t to_ts);

/* ---- why_data.c ---- */

enum why_interval_flags {
	WHY_INTERVAL_WOKEN = 1,
	WHY_INTERVAL_INTERRUPT = 2,
	WHY_INTERVAL_OPEN = 4,
};

/* struct model_interval in 32 bytes. */
struct why_interval {
	uint64_t from_ts, to_ts;
	uint32_t by, args;
	uint16_t cpu;
	uint16_t task_state : 12, flags : 4;
	int16_t syscall;
	uint16_t state;
};

/* A span of a thread and the one that was open around it when it began. */
struct why_nested {
	uint32_t span;
	uint32_t outer; /* index in the same list, or MODEL_NONE */
};

struct why_thread {
	VEC(struct why_interval) intervals; /* in order, without overlaps */
	VEC(struct why_nested) spans;       /* by start */
	bool kept;                          /* the last interval was kept */
};

struct why_cpu {
	VEC(uint32_t) switches; /* in order */
	uint32_t last;          /* before last_window, or MODEL_NONE */
	const struct why_window *last_window;
};

/* What a stack tells. */
struct why_told {
	enum wait_kind kind;
	const char *text; /* may be NULL */
	bool network;     /* in a call that sends to or takes from the network */
};

struct why_data {
	const struct model *model;
	const struct why_names *names; /* may be NULL */
	struct why_windows windows;    /* what is kept below belongs to these */
	struct why_thread *threads;
	struct why_cpu *cpus;
	uint32_t cpu_count;
	struct why_windows losses;       /* of the scheduler and of waits */
	struct why_windows sched_losses; /* of the scheduler */
	struct map symbols;              /* address → index of the reader's symbols */
	VEC(uint32_t) mapping_order;     /* by pid, then start */
	struct map stacks;               /* of each role, index in told */
	VEC(struct why_told) told;
};

/* The model must outlive it. -ENOMEM. */
int why_data_init(struct why_data *data, const struct model *model, const struct why_names *names);
/* Reads what belongs to `windows`, which it takes over; what was there goes. */
int why_data_load(struct why_data *data, struct why_windows *windows);
void why_data_free(struct why_data *data);

/* The first interval of a thread that ends after ts, as an index, perhaps behind the last one. */
size_t why_interval_after(const struct why_data *data, uint32_t thread, uint64_t ts);
/* The interval at an index, or NULL. */
const struct why_interval *why_interval_get(const struct why_data *data, uint32_t thread,
					    size_t index);
/* The innermost span of a thread at ts, or MODEL_NONE; *until_ts: when that may change. */
uint32_t why_span_at(const struct why_data *data, uint32_t thread, uint64_t ts, uint64_t *until_ts);
/* The first switch on a CPU at ts or later, as an index of cpus[cpu].switches. */
size_t why_switch_after(const struct why_data *data, uint32_t cpu, uint64_t ts);
/* What a process has mapped at an address; NULL: nothing is known. */
const struct store_mapping *why_mapping_at(const struct why_data *data, uint32_t pid,
					   uint64_t address);
/* Name of a kernel function that a stack has, or NULL. */
const char *why_symbol(const struct why_data *data, uint64_t address);

/* ---- why_wait.c ---- */

/* What is told of a stretch in which a thread was blocked. */
struct why_wait {
	enum wait_kind kind;
	enum wait_kind waker_kind; /* what the waker's stack tells; WAIT_OTHER: nothing */
	bool write;                /* to a disk */
	bool evidence;             /* of a disk: a request or a file is recorded */
	bool certain;              /* the kind is not told by a rule that can be wrong */
	bool interrupt;
	bool soft;       /* interrupt: a soft one */
	bool own;        /* interrupt: it was the doing of `by` all the same */
	uint32_t by;     /* MODEL_NONE: not known */
	uint32_t object; /* text */
	uint32_t wait;   /* index in model.waits, or MODEL_NONE */
	uint64_t wake_ts;
};

/* `index`: of the blocked interval. False: out of memory. */
bool why_wait_of(struct why *why, struct why_data *data, uint32_t thread, size_t index,
		 struct why_wait *wait);

/* Text in why.texts; STRTAB_NONE: out of memory. */
uint32_t why_text(struct why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- why_stack.c ---- */

enum why_stack_role { WHY_STACK_WAIT, WHY_STACK_WAKE, WHY_STACK_USER };

/* What a stack of the reader's table tells in its role. False: out of memory. */
bool why_stack_told(struct why_data *data, enum why_stack_role role, uint32_t stack, uint64_t ts,
		    struct why_told *told);

/* ---- why_cpu.c ---- */

/* How long a runnable interval was throttled at its end; *quota: by what, or NULL. */
uint64_t why_throttled_ns(const struct why_data *data, uint32_t thread,
			  const struct why_interval *interval, const struct model_quota **quota);

/* A thread, or nobody (MODEL_NONE), had a CPU. */
struct why_occupant {
	uint64_t from_ts, to_ts;
	uint32_t thread;
	bool certain;
};

/*
 * Who had the CPU that `thread` waited for from `ts` on, within its runnable interval `index`:
 * the next stretch, which ends at to_ts or before.
 */
struct why_occupant why_occupant_at(const struct why_data *data, uint32_t thread, size_t index,
				    uint64_t ts, uint64_t to_ts);

/* ---- why_part.c: parts of an instance while it is explained ---- */

struct why_weight {
	uint64_t longest_ns;
	uint64_t by_grade[WHY_GRADE_CERTAIN + 1];
};

/* The grade of a sum: a lower one counts once more than a tenth of the time has no better. */
enum why_grade why_weight_grade(const struct why_weight *weight);

struct why_parts {
	struct why *why;
	VEC(struct why_part) list;
	VEC(struct why_step) steps;
	VEC(struct why_weight) weights; /* of each part */
	struct map found;
};

struct why_stretch {
	enum why_cause cause;
	enum why_grade grade;
	uint64_t ns;
	uint32_t thread, span, object;
	const struct why_step *steps;
	uint32_t step_count;
};

void parts_reset(struct why_parts *parts);
void parts_free(struct why_parts *parts);
/* Adds a stretch to the part of its cause, culprit and object. */
bool parts_add(struct why_parts *parts, const struct why_stretch *stretch);
/* Moves up to `ns` of a thread's own running to another cause. */
bool parts_move_running(struct why_parts *parts, uint32_t thread,
			const struct why_stretch *stretch);
/* Appends them to why's, the longest first. */
bool parts_finish(struct why_parts *parts, struct why_instance *instance);

/* ---- why_walk.c ---- */

struct why_walker {
	struct why *why;
	struct why_data *data;
	struct why_parts parts;
	VEC(struct why_step) path;
	struct why_instance *instance;
	uint64_t work;
	uint64_t fault_wait_ns; /* of the instance: in page faults, but not running */
	bool after_fault;       /* the last stretch of its own was a wait in a page fault */
	bool failed;            /* out of memory */
};

int why_walker_new(struct why_walker **walker, struct why *why, struct why_data *data);
void why_walker_free(struct why_walker *walker);
/*
 * Explains an instance whose span, thread, times and marks are set, whose windows are loaded: its
 * parts and their steps come at the end of why's, its sums and their place are set. -ENOMEM.
 */
int why_explain(struct why_walker *walker, struct why_instance *instance);

/* ---- why_fault.c ---- */

/* Moves what page faults took from the running time of the walker's instance. */
void why_explain_faults(struct why_walker *walker);

/* ---- why.c ---- */

/* NULL: out of memory. */
struct why *why_alloc(const struct model *model);
/* The instance of a span, not yet explained. */
struct why_instance why_instance_of(const struct model *model, uint32_t span);

#endif
