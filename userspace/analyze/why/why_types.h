/* SPDX-License-Identifier: Apache-2.0 */
/* An explanation: its instances, parts, steps and records (why.h says what these are). */
#ifndef WAFFLE_ANALYZE_WHY_WHY_TYPES_H
#define WAFFLE_ANALYZE_WHY_WHY_TYPES_H

#include "analyze/why/lookup/why_samples.h"
#include "analyze/why/why_causes_internal.h"
#include "model/model.h"
#include "util/strtab.h"

enum why_cause {
#define CAUSE(id, ...) WHY_##id,
	WHY_CAUSES(CAUSE) WHY_CAUSE_COUNT
#undef CAUSE
};

/* Whether the cause is what was waited for, and does not say what the culprit did meanwhile. */
static inline bool why_is_of_wait(enum why_cause cause)
{
	return cause == WHY_SOCKET || cause == WHY_PIPE || cause == WHY_PROCESS_EXIT ||
	       cause == WHY_LOCK || cause == WHY_GIL || cause == WHY_COLLECTIVE;
}

/* Whether the culprits of such a cause ran for at least nine tenths of it. */
static inline bool why_has_run(enum why_cause cause, uint64_t ran_ns, uint64_t ns)
{
	return why_is_of_wait(cause) && ran_ns >= ns - ns / 10;
}

static inline bool why_is_lock(enum why_cause cause)
{
	return cause == WHY_LOCK || cause == WHY_GIL;
}

/*
 * Confidence in a part. Certain: records prove each step. Likely: a step follows from a rule that
 * can be wrong (a futex taken for a mutex), or records were dropped nearby. Unknown: we know only
 * how long it took.
 */
enum why_grade { WHY_GRADE_UNKNOWN, WHY_GRADE_LIKELY, WHY_GRADE_CERTAIN };
extern const char *const why_grade_names[];

/* The grade that at least 90 % of total_ns has: a few less certain stretches do not matter.
 * `grade_ns` is the time of each grade. */
static inline enum why_grade why_grade_of(const uint64_t *grade_ns, uint64_t total_ns)
{
	uint64_t most = total_ns - total_ns / 10, ns = grade_ns[WHY_GRADE_CERTAIN];

	if (ns >= most)
		return WHY_GRADE_CERTAIN;
	return ns + grade_ns[WHY_GRADE_LIKELY] >= most ? WHY_GRADE_LIKELY : WHY_GRADE_UNKNOWN;
}

/* How the process of a culprit is related to that of the explained thread. */
enum why_relation {
	WHY_RELATION_NONE,     /* it is the same, or no relation is known */
	WHY_RELATION_CHILDREN, /* that one has started it */
	WHY_RELATION_SIBLINGS, /* the same recorded process has started both */
	WHY_RELATIONS,
};

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
	bool interrupt; /* an interrupt ended the wait, and `by` is only what it interrupted */
	/* Text in why.texts: "futex 0x… (queue_lock)", "/data/shard-7", …; 0: none. */
	uint32_t object;
	/* Text in why.texts: what the kernel stack or the GPU calls say of the wait, such as "waits
	 * for the GPU: kernel gemm on stream 0x7f01"; 0: none. */
	uint32_t meaning;
	/* Text in why.texts: the lock that it waits for, and that `by` holds; 0: none. */
	uint32_t lock;
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
	/* Blocked: it is the wait of a server for whoever asks it next. Set only if the query has
	 * `through_tid`. */
	bool serves;
	/* The wait goes on when the capture ends, and `by` holds the lock, or has to end. */
	bool owned;
	/* The same, but `by` is only the one thread of the process that could end the wait, and
	 * waits itself for something else. */
	bool left;
	/* It sleeps to try to lock a file again, which `by` had locked. */
	bool locked;
	/* The span moved to `by`, the thread that ended it; then `state` is 0. */
	bool handed;
	/* Go's runtime had nothing to run on the thread, and the program waited for the answer of
	 * `by` at the connection `object`. */
	bool answer;
	/* The time before `by` started the thread; then `state` is 0. */
	bool not_started;
	/* Blocked: the switch-in after the last wait of the series, which shows who `by` is. */
	uint64_t later_ts;
	/*
	 * Blocked: the series of waits for the same thing (why_series.c), as intervals of the
	 * thread; series_last 0: no series. `wakes` counts its wake-ups. Of those before the last
	 * one, `woken_by` caused the most, that is woken_count. MODEL_NONE: interrupts did.
	 */
	uint32_t series_first, series_last;
	uint32_t wakes, woken_by, woken_count;
	uint32_t behind; /* runnable: index of the model_switch that gave `by` the CPU */
	bool gpu;        /* in a call that waits for a GPU or for other ranks */
	bool last_rank;  /* `by` is the last rank to arrive in a collective */
	bool host;       /* `by` runs a host function, for which the call may wait */
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
	WHY_ROLE_BEHIND,  /* the switch that gave the CPU to the thread that it waited for */
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
	uint64_t ts;     /* we find the record by it */
	uint64_t number; /* in the file, from 1; 0: not found */
	uint32_t tid;
	uint8_t role;
};

/* Sleeps of a thread that polls: between them it runs only for as long as a check takes. */
struct why_polls {
	uint64_t sleeps, slept_ns;
	uint64_t checks, ran_ns; /* how often and how long it ran between two of them */
	/* The system call in which samples hit it between them most often, if votes is not 0. */
	int16_t call;
	/* The other system call in which it waited after a sleep most often, if waited_votes is not
	 * 0. */
	int16_t waited;
	uint32_t votes, waited_votes;
	uint32_t wait; /* the last one whose stack is known, in model.waits; or MODEL_NONE */
};

/* A thread whose requests had a disk busy while others waited for it. Threads of its name count as
 * one, and it is the first one of them. */
struct why_neighbour {
	uint32_t thread;
	/* Of its requests that ended in the waits; 0: there is no such thread. */
	uint64_t bytes;
	uint64_t ns; /* how long any of its requests was in flight in the waits */
};

/* Limit of the neighbours' names to tell apart. Others are left out. */
#define WHY_NEIGHBOURS_MAX 16

/* Whether waits of `ns` in all were for a disk that was busy with a neighbour for at least a tenth
 * of that. */
static inline bool why_neighbour_counts(const struct why_neighbour *neighbour, uint64_t ns)
{
	return neighbour->bytes && neighbour->ns >= ns / 10;
}

/* The signal that a thread got most often. */
struct why_signals {
	uint64_t count; /* 0: too few to matter, or it is not known which thread got them */
	uint32_t signo;
	bool timer; /* all of them came from a timer of POSIX: SI_TIMER */
};

/* The time of an instance with one cause and one culprit, summed over all its stretches. */
struct why_part {
	enum why_cause cause;
	enum why_grade grade;
	uint64_t ns;
	uint64_t through_ns; /* of ns: its chain led to the thread of the query, or on from it */
	/* Of ns: the culprit waited for a CPU that another thread of its pool had. */
	uint64_t pool_wait_ns;
	uint64_t ran_ns; /* of ns: the culprit ran */
	/* Of ns: a wait that goes on at the end of the capture, and is like earlier ones. */
	uint64_t open_ns;
	uint64_t stretches;
	uint32_t thread; /* the culprit; MODEL_NONE: none, or no thread */
	/* Number of similar threads that the part stands for, and of their processes; `thread` is
	 * the one with the most time. */
	uint32_t threads, processes;
	/* Text in why.texts: what their names have in common, "loader-N"; 0: it is the same name.
	 */
	uint32_t name;
	enum why_relation relation; /* of these processes, if there are several */
	bool relation_mostly;       /* some are not, which have little of the time */
	uint32_t span;              /* the culprit's span, or MODEL_NONE */
	/* Text in why.texts: the file, lock, device, socket or cgroup; 0: none. */
	uint32_t object;
	/* Text in why.texts: the lock that the culprit holds meanwhile, so that the thread before
	 * it in the chain waits; 0: none, or not the same one in all stretches. */
	uint32_t lock;
	/* Number of objects that the part stands for; `object` names the one with the most time. 0
	 * or 1: that one. */
	uint32_t objects;
	/* Number of connections to one server that the part stands for; 0: `object` is no such. */
	uint32_t connections;
	/* Index in model.waits: where the culprit waits at the end of the chain or, if it does not,
	 * where the thread before it waits for it. It is so for at least half of those stretches
	 * for which a stack shows that, by their time. MODEL_NONE: there is no such place. */
	uint32_t wait;
	/* Index in model.open_waits: where the thread of that wait is when the capture ends, if
	 * that is like it (why_at_end.h). MODEL_NONE: it is not, or not in Java. */
	uint32_t at_end;
	/* The chain of the longest stretch. Its first step is the instance's own wait, its last one
	 * the culprit's. */
	uint32_t step, step_count; /* range in why.steps */
	/* An event loop waited for its next event until its timeout expired; in
	 * why_idle.h. */
	bool idle;
	bool capture;           /* the capture itself caused it */
	struct why_polls polls; /* of its sleeps; sleeps 0: it does not poll */
	struct why_neighbour neighbour;
	struct why_signals signals; /* of the instance's own thread, when it runs */
	/* Where the culprit ran, by its samples: a range in why.places, by falling count. */
	uint32_t place, place_count;
};

/* The time that an instance lost in waits for a lock, whatever its holder did meanwhile. If the
 * holder waited for another lock, that is not counted. */
struct why_lock_time {
	uint32_t lock; /* text in why.texts */
	uint64_t ns;
	/* The thread that held it up, as the holder of it, or of another lock that its holder
	 * waited for; the thread for which that one waited meanwhile; and the user stack of those
	 * who waited, by the index in model.waits of one that has it. Each for at least half of the
	 * time; MODEL_NONE: there is no such one. */
	uint32_t holder, awaited, wait;
	/* For at least half of the time, the holder was a session of PostgreSQL that waited in its
	 * transaction for the next command of its client. */
	bool idle;
};

/* How many locks of an instance are listed; others are left out. */
#define WHY_LOCKS_LISTED 8

struct why_instance {
	uint32_t span; /* MODEL_NONE: a thread in a window */
	uint32_t thread;
	bool program; /* a Go program as a whole, in a window; `thread` is its main thread */
	/* Text in why.texts: what keeps the thread from a CPU, such as its affinity, if it waits
	 * for one for much of the time; 0: nothing, or that is not known. */
	uint32_t cpus;
	uint64_t from_ts, to_ts;
	uint64_t running_ns, runnable_ns, blocked_ns, unknown_ns; /* sum: to_ts - from_ts */
	uint64_t own_ns;           /* of the parts that the capture itself caused */
	uint32_t part, part_count; /* range in why.parts, the longest first */
	uint32_t lock, lock_count; /* range in why.locks, the longest first */
	bool loss;                 /* records were dropped during it */
	/* Text in why.texts: the limit of memory that its cgroup had reached, if page faults or
	 * reads of files take much of the time; 0: none. A fault that the thread runs through has
	 * no wait that would show it, and a read does not show that the page had been there. */
	uint32_t memory;
	/* Text in why.texts: a pool of which all threads are always busy, and to one of which a
	 * chain of at least a tenth of the time leads; 0: none. */
	uint32_t full_pool;
	/* Text in why.texts: a thread to which a chain of at least a tenth of the time leads serves
	 * a client of a multiprocessing manager, whose name it may have; 0: none is known. */
	uint32_t manager;
	bool begun_before, unfinished;
	bool left;         /* a call that did not return: it was over by to_ts */
	bool ranks_behind; /* unknown duration: sorts last; see model_span_ranks() */
	bool once;         /* the start or end of a library: sorts behind what is repeated */
	/* The thread that the span ended on, if not its own; else MODEL_NONE. */
	uint32_t ended_by;
	/* It is here for comparison, as the median of so many whole spans of its name; 0: it is
	 * not. */
	uint64_t median_of;
};

struct why {
	const struct model *model;
	struct strtab *texts;               /* index 0 is the empty text */
	VEC(struct why_instance) instances; /* slowest first */
	VEC(struct why_part) parts;
	VEC(struct why_step) steps;
	VEC(struct why_lock_time) locks;
	VEC(struct why_record) records; /* empty until why_records_find() */
	VEC(struct sample_count) places;
	struct sample_places *sample_places; /* NULL: no part has samples */
	/* Indexes: signals that stop a process, by its pid, then by time; requests, by thread, then
	 * by done_ts. */
	VEC(uint32_t) stops;
	VEC(uint32_t) ios;
	uint64_t searched; /* number of entries that look-ups examined; tests bound this work */
};

/* The name of the threads of a part. */
static inline const char *why_part_name(const struct why *why, const struct why_part *part)
{
	if (part->name)
		return strtab_get(why->texts, part->name);
	return part->threads < 2 ? model_thread_name(why->model, part->thread)
				 : model_thread_kind_name(why->model, part->thread);
}

/* The process whose main thread waited for the CPU that others had, if its nice value is above 0.
 * If those are recorded, theirs is lower. NULL: it is not so, or not known. */
static inline const struct model_process *why_part_nice(const struct why *why,
							const struct why_part *part)
{
	const struct model *model = why->model;
	const struct model_process *process, *other;
	uint32_t thread;

	if (part->cause != WHY_CPU_CONTENTION || !part->threads || !part->step_count)
		return NULL;
	thread = why->steps.data[part->step + part->step_count - 1].thread;
	process = model_process_of(model, thread);
	if (!process || process->main_thread != thread || process->nice <= 0)
		return NULL;
	other = model_is_traced(model, part->thread) ? model_process_of(model, part->thread) : NULL;
	return other && other->nice >= process->nice ? NULL : process;
}

/* The places of a part's range; NULL: it has none. */
static inline const struct sample_count *why_part_places(const struct why *why,
							 const struct why_part *part)
{
	return part->place_count ? &why->places.data[part->place] : NULL;
}

#endif
