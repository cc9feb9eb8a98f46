/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains why a span, or a thread in a time window, took so long. Its time is split into parts,
 * each with a cause. For a wait we follow the wake-ups backwards across threads and processes to
 * what ended it. That may be code that ran, a device, a timer, something outside, or "not
 * recorded".
 *
 *	instance   a span, or a thread in a window
 *	  part     its time with one cause and one culprit, summed over stretches
 *	    chain  of the longest stretch: steps from the instance's thread to the culprit
 *
 * The parts of an instance sum to its duration exactly. A chain never leaves the time of the wait
 * that it explains, so it never goes forward in time.
 */
#ifndef WAFFLE_ANALYZE_WHY_WHY_H
#define WAFFLE_ANALYZE_WHY_WHY_H

#include "analyze/why/why_causes_internal.h"
#include "model/model.h"
#include "symbolize/stack_names.h"
#include "util/strtab.h"

enum why_cause {
#define CAUSE(id, ...) WHY_##id,
	WHY_CAUSES(CAUSE) WHY_CAUSE_COUNT
#undef CAUSE
};

/*
 * Confidence in a part. Certain: records prove each step. Likely: a step follows from a rule that
 * can be wrong (a futex taken for a mutex), or records were dropped nearby. Unknown: we know only
 * how long it took.
 */
enum why_grade { WHY_GRADE_UNKNOWN, WHY_GRADE_LIKELY, WHY_GRADE_CERTAIN };
extern const char *const why_grade_names[];

/* A stretch of a thread's time on the chain from a wait to its cause. */
struct why_step {
	uint64_t from_ts, to_ts;
	uint32_t thread;
	enum waffle_thread_state state;
	int16_t syscall; /* blocked: -1 if none */
	uint32_t args;   /* index in model.syscall_args, or MODEL_NONE */
	uint16_t task_state;
	uint32_t span; /* the thread's innermost span then, or MODEL_NONE */
	/* Blocked: who ended the wait. Runnable: who had the CPU. Or MODEL_NONE. */
	uint32_t by;
	bool interrupt; /* the interrupt only happened to come while `by` ran */
	/* Text in why.texts: "futex 0x… (queue_lock)", "/data/shard-7", …; 0: none. */
	uint32_t object;
	/* Text in why.texts: what the kernel stack or the GPU calls say of the wait, such as "waits
	 * for the GPU: kernel gemm on stream 0x7f01"; 0: none. */
	uint32_t meaning;
	uint32_t wait; /* index in model.waits, or MODEL_NONE */
	uint32_t dev;  /* blocked: of the file system of the awaited file; 0: unknown */
	/* Running: average frequency of the CPU; 0: unknown. */
	uint32_t cpu_khz, cpu_max_khz;
	/* Running: the CPU. Runnable: the CPU that it waited for, and its previous CPU if that was
	 * another one. MODEL_CPU_NONE: unknown. */
	uint16_t cpu, from_cpu;
	/* Runnable: who preempted it; MODEL_NONE: it was woken, or the stretch began later. */
	uint32_t preemptor;
	/* Times of the switches and wake-up at the ends of the thread's interval. They may lie
	 * outside the step if that is only a part of the interval. 0: none. */
	uint64_t out_ts, in_ts, wake_ts;
	/* The span was handed over to `by`, the thread that ended it; then `state` is 0. */
	bool handed;
	/* Blocked: the switch-in after the last wait of the series, which shows who `by` is. */
	uint64_t later_ts;
	/*
	 * Blocked: the series of waits for the same thing (why_series.c), as intervals of the
	 * thread; series_last 0: no series. `wakes` counts its wake-ups. Of those before the last,
	 * `woken_by` caused woken_count, the most; MODEL_NONE: interrupts did.
	 */
	uint32_t series_first, series_last;
	uint32_t wakes, woken_by, woken_count;
	uint32_t behind; /* runnable: index of the model_switch that brought `by` in */
	bool gpu;        /* in a call that waits for a GPU or for other ranks */
	bool last_rank;  /* `by` is the last rank to arrive in a collective */
	/* last_rank: its arrival. Otherwise gpu: the call that put the awaited work on the stream.
	 * 0: unknown. */
	uint64_t call_ts;
	uint32_t call_thread, call_span; /* thread of that call, and the span around it */
	uint32_t record, count;          /* range in why.records, after why_records_find() */
};

/* What a record proves about a step. */
enum why_role {
	WHY_ROLE_OUT, /* the switch that took the thread off its CPU */
	WHY_ROLE_IN,  /* the switch that brought it in, with its wake-up */
	/* The switch-in after a later wait of the series, whose waker counts. */
	WHY_ROLE_LATER,
	WHY_ROLE_BEHIND,  /* the switch that brought in the thread that it waited for */
	WHY_ROLE_SPAN,    /* the begin of its span */
	WHY_ROLE_LAUNCH,  /* the call that put the awaited work on a stream */
	WHY_ROLE_ARRIVAL, /* the call of the last rank of a collective */
	WHY_ROLE_WAIT,
	WHY_ROLE_WAKE,
	WHY_ROLE_FAULT,
	WHY_ROLE_IO,
	WHY_ROLE_SIGNAL,
	WHY_ROLE_QUOTA,
	WHY_ROLE_STOLEN,
	WHY_ROLE_FREQUENCY,
	WHY_ROLE_LOSS,
	WHY_ROLE_COUNT
};
extern const char *const why_role_names[WHY_ROLE_COUNT]; /* "switch-out", … */

/* Which end of a long object is shown: files differ at the end, kernels at the beginning. */
enum why_object_shown { WHY_OBJECT_BEGIN, WHY_OBJECT_END };

struct why_cause_row {
	const char *name;   /* "cpu-contention" */
	const char *text;   /* for people: "a device was read" */
	const char *colour; /* SGR sequence of util/terminal.h */
	/* Documentation: the source that shows it besides sched, or "". */
	const char *source;
	/* Role of the records that prove it besides the switches; WHY_ROLE_COUNT: none. */
	enum why_role proof;
	enum why_object_shown shown;
	const char *spent, *culprit; /* documentation */
};
extern const struct why_cause_row why_causes[WHY_CAUSE_COUNT];

/* A record that proves a step. */
struct why_record {
	uint64_t ts;     /* time by which we find it */
	uint64_t number; /* in the file, from 1; 0: not found */
	uint32_t tid;
	uint8_t role;
};

/* The time of an instance with one cause and one culprit, summed over all its stretches. */
struct why_part {
	enum why_cause cause;
	enum why_grade grade;
	uint64_t ns;
	uint64_t stretches;
	uint32_t thread; /* the culprit; MODEL_NONE: none, or no thread */
	/* Number of similar threads that the part stands for; `thread` is the one with the most
	 * time. */
	uint32_t threads;
	uint32_t span; /* the culprit's span, or MODEL_NONE */
	/* Text in why.texts: the file, lock, device, socket or cgroup; 0: none. */
	uint32_t object;
	/* The chain of the longest stretch. Its first step is the instance's own wait, its last one
	 * the culprit's. */
	uint32_t step, step_count; /* range in why.steps */
};

struct why_instance {
	uint32_t span; /* MODEL_NONE: a thread in a window */
	uint32_t thread;
	uint64_t from_ts, to_ts;
	uint64_t running_ns, runnable_ns, blocked_ns, unknown_ns; /* sum: to_ts - from_ts */
	uint64_t own_ns;           /* time of the parts that waffle-bpf's capture itself caused */
	uint32_t part, part_count; /* range in why.parts, the longest first */
	bool loss;                 /* records were dropped during it */
	bool begun_before, unfinished;
	bool left;         /* a call that did not return: it was over by to_ts */
	bool ranks_behind; /* unknown duration: sorts last; see model_span_ranks() */
	/* The thread that the span ended on, if not its own; else MODEL_NONE. */
	uint32_t ended_by;
};

struct why {
	const struct model *model;
	struct strtab *texts;               /* index 0 is the empty text */
	VEC(struct why_instance) instances; /* slowest first */
	VEC(struct why_part) parts;
	VEC(struct why_step) steps;
	VEC(struct why_record) records; /* empty until why_records_find() */
	/* Indexes: signals that stop a process, by its pid, then by time; requests, by thread, then
	 * by done_ts. */
	VEC(uint32_t) stops;
	VEC(uint32_t) ios;
	uint64_t searched; /* number of entries that searches looked at: the work, for tests */
};

/* Selects the instances: spans by name, one span, given spans, or a thread in a window. */
struct why_query {
	const char *name; /* NULL: spans of any name */
	uint64_t span_id; /* 0: spans of any id */
	uint32_t tid;     /* 0: spans; otherwise this thread from from_ts to to_ts */
	uint64_t from_ts, to_ts;
	/* If set, only these span indexes; the selectors above are ignored. */
	const uint32_t *spans;
	size_t span_count;
	uint32_t slowest;          /* maximum number of instances, the slowest; 0: all */
	struct stack_names *names; /* symbolizer; NULL: none */
};

int why_new(struct why **why, const struct model *model, const struct why_query *query,
	    struct error *err);
void why_free(struct why *why);

/*
 * The parts of the instance are in why.parts only during the call, unsorted and without chains. A
 * non-zero return stops the iteration, and why_each() returns it. A positive value is no failure.
 */
typedef int (*why_each_fn)(const struct why *why, const struct why_instance *instance, void *arg);

/*
 * Explains every whole span (one that begins and ends in the capture) in order of start_ts. To
 * bound memory, it loads the threads' intervals for a part of the capture at a time. A part covers
 * WHY_EACH_SWITCHES switches, or one WHY_EACH_PARTS-th of all if that is more, and longer if a span
 * reaches beyond. Afterwards *why holds only the texts that the `object` of the parts refers to.
 */
#define WHY_EACH_SWITCHES (1u << 20)
#define WHY_EACH_PARTS 8
int why_each(struct why **why, const struct model *model, struct stack_names *names,
	     why_each_fn each, void *arg, struct error *err);

/* Finds the numbers of the records that prove the steps, by reading the capture again. Returns 0 or
 * a negative errno with a message. */
int why_records_find(struct why *why, struct error *err);
/* The same for any records: finds their numbers by ts, tid and role. Adds the number of steps to
 * *searched, unless NULL. */
int why_records_number(struct store_reader *reader, struct why_record *records, size_t count,
		       uint64_t *searched, struct error *err);

#endif
