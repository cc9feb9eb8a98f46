/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a span, or a thread in a window, took so long: its time taken apart, and each wait followed
 * backwards along the wake-ups to what ended it, over threads and processes, to code that ran, a
 * device, a timer, somebody outside, or "not recorded".
 *
 * All parts of an instance sum to its duration exactly. A chain never leaves the time of the wait
 * that it explains, so it never goes forward in time.
 */
#ifndef WAFFLE_ANALYZE_WHY_H
#define WAFFLE_ANALYZE_WHY_H

#include "model/model.h"
#include "util/strtab.h"

enum why_cause {
	WHY_RUNNING,        /* it computed itself */
	WHY_CPU_CONTENTION, /* runnable without a CPU */
	WHY_LOCK,           /* the holder of a lock computed */
	WHY_GIL,            /* the holder of Python's interpreter lock computed */
	WHY_DISK_READ,
	WHY_DISK_WRITE,
	WHY_PAGE_FAULT_MAJOR,
	WHY_PAGE_FAULT_MINOR,
	WHY_CPU_QUOTA, /* runnable, but its cgroup's CPU time was used up */
	WHY_STOPPED,   /* by a signal, or a tracer; or waffle-bpf held it */
	WHY_SLEEP,     /* it asked to sleep */
	WHY_TIMER,     /* a timeout or timer that somebody waited for ran out */
	WHY_PIPE,      /* the other end of a pipe, which is not recorded */
	WHY_SOCKET,    /* the peer of a socket, which is not recorded */
	WHY_PROCESS_EXIT,
	WHY_GPU,
	WHY_COLLECTIVE,
	WHY_INTERRUPT,    /* an interrupt of which no more is known */
	WHY_USER_WORK,    /* another thread computed what was waited for */
	WHY_NOT_RECORDED, /* the chain leaves what was recorded */
	WHY_UNKNOWN,      /* records are lost or contradict each other */
	WHY_CAUSE_COUNT
};
/* "running", "cpu-contention", …; one line for people, "a device was read". */
extern const char *const why_cause_names[WHY_CAUSE_COUNT];
extern const char *const why_cause_texts[WHY_CAUSE_COUNT];

/*
 * Certain: each step is told by records. Likely: a step is told by a rule that can be wrong (a
 * futex taken for a mutex), or records were lost nearby. Unknown: no more than the time is known.
 */
enum why_grade { WHY_GRADE_UNKNOWN, WHY_GRADE_LIKELY, WHY_GRADE_CERTAIN };
extern const char *const why_grade_names[];

/* A stretch of time of a thread on the way from a wait to its cause. */
struct why_step {
	uint64_t from_ts, to_ts;
	uint32_t thread;
	enum waffle_thread_state state;
	int16_t syscall; /* blocked: -1 none */
	uint32_t args;   /* into model.syscall_args, or MODEL_NONE */
	uint16_t task_state;
	uint32_t span;  /* innermost span of the thread then, or MODEL_NONE */
	uint32_t by;    /* blocked: who ended it; runnable: who was on the CPU; MODEL_NONE */
	bool interrupt; /* `by` only happened to run where the interrupt came */
	uint32_t object; /* text in why.texts: "futex 0x… (queue_lock)", "/data/shard-7", … ; 0 */
	uint32_t
		meaning; /* text in why.texts: what the kernel's stack says of the wait, or the
			    calls around it: "waits for the GPU: kernel gemm on stream 0x7f01"; 0 */
	uint32_t wait;   /* index of the model_wait, or MODEL_NONE */
	uint32_t cpu_khz, cpu_max_khz; /* running: the CPU's frequency on average; 0: not known */
	/* Runnable: the CPU that it had to wait for, and where it ran before, if that was another
	 * one. Running: where. MODEL_CPU_NONE: not known. */
	uint16_t cpu, from_cpu;
	uint32_t
		preemptor; /* runnable: who took its CPU then; MODEL_NONE: it was woken, or later */
	/* Switches that say so, which may lie outside of the step where that was cut; 0: none. */
	uint64_t out_ts, in_ts, wake_ts;
	bool handed;       /* neither: the span was handed over to the thread that ended it */
	uint64_t later_ts; /* blocked: the switch-in after the last wait of a series, which tells
			      who `by` is */
	/* Blocked: intervals of the waits for the same that it is one of; series_last 0: it is
	 * alone. Then of their wake-ups: how many, who of the others woke it most (MODEL_NONE:
	 * interrupts) and how often. */
	uint32_t series_first, series_last;
	uint32_t wakes, woken_by, woken_count;
	uint32_t behind;  /* runnable: index of the model_switch that brought `by` in */
	bool gpu;         /* in a call that waits for a GPU or for other ranks */
	bool last_rank;   /* `by` is the thread of the rank that arrived last in a collective */
	uint64_t call_ts; /* last_rank: of its arrival. Else gpu: of the call that put on the
			     stream what is waited for. 0: not known */
	uint32_t call_thread, call_span; /* that made that call, and the span that it was in */
	uint32_t record, count;          /* in why.records, once why_records_find() was called */
};

/* What a record says of a step. */
enum why_role {
	WHY_ROLE_OUT,     /* the switch that took the thread off its CPU */
	WHY_ROLE_IN,      /* the one that brought it in, with its wake-up */
	WHY_ROLE_LATER,   /* the one after a later wait of the same kind, whose waker was taken */
	WHY_ROLE_BEHIND,  /* the one that brought in the thread that it had to wait for */
	WHY_ROLE_SPAN,    /* the begin of its span */
	WHY_ROLE_LAUNCH,  /* the call that put on a stream what it waits for */
	WHY_ROLE_ARRIVAL, /* that of the last rank of a collective */
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

/* A record that a step rests on. */
struct why_record {
	uint64_t ts;     /* by which it is found */
	uint64_t number; /* in the file, from 1 on; 0: it is not there */
	uint32_t tid;
	uint8_t role;
};

/* Time of an instance with one cause and culprit; stretches of the same are put together. */
struct why_part {
	enum why_cause cause;
	enum why_grade grade;
	uint64_t ns;
	uint64_t stretches;
	uint32_t thread;  /* the culprit; MODEL_NONE: none, or not a thread */
	uint32_t threads; /* that it stands for: more than one are alike, and this the largest */
	uint32_t span;    /* its span then, or MODEL_NONE */
	uint32_t object;  /* text in why.texts: the file, lock, device, socket or cgroup; 0: none */
	/* The chain of the longest stretch, from the instance's own thread to the cause: the first
	 * step is the instance's own wait, the last one the culprit's. */
	uint32_t step, step_count; /* in why.steps */
};

struct why_instance {
	uint32_t span; /* MODEL_NONE: a thread in a window */
	uint32_t thread;
	uint64_t from_ts, to_ts;
	uint64_t running_ns, runnable_ns, blocked_ns, unknown_ns; /* sum: to_ts - from_ts */
	uint64_t own_ns;           /* of parts: what waffle-bpf took for this capture */
	uint32_t part, part_count; /* in why.parts, the longest first */
	bool loss;                 /* records were lost in it */
	bool begun_before, unfinished;
	bool left;         /* a call that did not return: it was over at to_ts at the latest */
	bool ranks_behind; /* as its length is not known; see model_span_ranks() */
	uint32_t ended_by; /* the thread that the span ended on, if that is another; MODEL_NONE */
};

struct why {
	const struct model *model;
	struct strtab *texts;               /* 0 is the empty text */
	VEC(struct why_instance) instances; /* slowest first */
	VEC(struct why_part) parts;
	VEC(struct why_step) steps;
	VEC(struct why_record) records; /* empty before why_records_find() */
};

/* Names of what lies at user addresses, from whoever has a symbolizer: locks get theirs. */
struct why_names {
	void *arg;
	/* The variable at an address of a process, or NULL. */
	const char *(*variable)(void *arg, uint32_t pid, uint64_t ts, uint64_t address);
	/* Whether a mapped file has a variable of that name, whose addresses are then told. NULL:
	 * not known of any. */
	bool (*has_variable)(void *arg, const struct store_mapping *mapping, const char *name);
	/* Functions of a stack, the innermost first, at most `max` of them; how many. NULL: not
	 * known of any. */
	uint32_t (*functions)(void *arg, uint32_t stack, uint64_t ts, const char **functions,
			      uint32_t max);
};

/* Which instances: of a span name, one span, or a thread in a window. */
struct why_query {
	const char *name; /* all spans of this name; NULL: of any */
	uint64_t span_id; /* 0: not asked */
	uint32_t tid;     /* 0: spans; else this thread from from_ts to to_ts */
	uint64_t from_ts, to_ts;
	const uint32_t *spans; /* these span indexes, and nothing else that is asked for; or NULL */
	size_t span_count;
	uint32_t slowest;              /* at most so many, 0: all */
	const struct why_names *names; /* NULL: not at hand */
};

int why_new(struct why **why, const struct model *model, const struct why_query *query,
	    struct error *err);
void why_free(struct why *why);

/* Parts of the instance are in why.parts for the time of the call, in no order and without chains.
 * Stops at the first non-zero return, which why_each() returns; a positive one is no failure. */
typedef int (*why_each_fn)(const struct why *why, const struct why_instance *instance, void *arg);

/*
 * Explains every whole span, those that begin and end in the capture, by start_ts. Of the threads'
 * intervals only those of a part of the capture are in memory at a time, the part that
 * WHY_EACH_SWITCHES (or a WHY_EACH_PARTS-th of all, if that is more) switches make, longer where a
 * span is. Of what is made, *why keeps the texts that objects of parts are numbers of.
 */
#define WHY_EACH_SWITCHES (1u << 20)
#define WHY_EACH_PARTS 8
int why_each(struct why **why, const struct model *model, const struct why_names *names,
	     why_each_fn each, void *arg, struct error *err);

/* Finds the numbers of the records that the steps rest on, by reading the capture once more. */
int why_records_find(struct why *why, struct error *err);
/* The same of any records: finds their numbers by ts, tid and role. */
int why_records_number(struct store_reader *reader, struct why_record *records, size_t count,
		       struct error *err);

#endif
