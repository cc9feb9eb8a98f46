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

#include "analyze/why/why_types.h"
#include "symbolize/stack_names.h"

/* A part of a thread's time. */
struct why_window {
	uint64_t from_ts, to_ts;
	uint32_t thread; /* in model.threads; those that are not traced are left out */
};

struct gpu_timeline;

/* Selects the instances: spans by name, one span, given spans, threads in a window, or given
 * windows of threads. */
struct why_query {
	const char *name; /* NULL: spans of any name */
	uint64_t span_id; /* 0: spans of any id */
	uint32_t tid;     /* 0: spans; otherwise this thread from from_ts to to_ts */
	/* why_pick() found spans to explain if the user chose nothing. Not set if it chose a
	 * thread, because there are no spans, or only small ones (why_small_spans_internal.h), nor
	 * with --thread. */
	bool has_spans;
	bool stuck;       /* why_pick() chose `tid`, because it hangs and no thread does much */
	bool waited;      /* why_pick() chose `tid`, which never ran */
	bool held;        /* why_pick() chose `tid`, as the busiest thread only lets time pass */
	bool asks;        /* why_pick() chose `tid`, which asks for what the spans answer */
	bool first;       /* why_pick() chose `tid` or `program`, of the first process named */
	const char *comm; /* all threads of this name, from from_ts to to_ts; NULL: see `tid` */
	uint32_t program; /* the pid of a Go program, explained as a whole; 0: none */
	bool quiet;       /* why_pick() chose `program`, whose goroutines hardly ran */
	uint64_t from_ts, to_ts; /* of tid, comm or program */
	/* With tid or comm: the instances are this number of the longest waits (blocked or
	 * runnable) of these threads. 0: the instances are the threads. */
	uint32_t waits;
	/* If set, only these span indexes; the selectors above are ignored. */
	const uint32_t *spans;
	size_t span_count;
	/* Also the median span of each name among the instances, by duration and selected or not:
	 * behind the others, with `median_of`. */
	bool median;
	/* The same for these parts of threads' time. */
	const struct why_window *windows;
	size_t window_count;
	/* If not 0, the parts also say for how long the chain led to this thread, or on from it. */
	uint32_t through_tid;
	uint32_t slowest; /* maximum number of instances, the slowest; 0: all */
	/* Choose slow spans of several causes (why_varied_internal.h); not with `median`. */
	bool varied;
	struct stack_names *names; /* symbolizer; NULL: none */
	/* A timeline that was already made of the model, as by gpu_timeline_of_calls() for several
	 * queries; NULL: `why` makes its own if it needs one. */
	const struct gpu_timeline *timeline;
};

int why_new(struct why **why, const struct model *model, const struct why_query *query,
	    struct error *err);
void why_free(struct why *why);

/* The time of an instance with one cause, summed over all culprits. Idle time is apart. */
struct why_by_cause {
	enum why_cause cause;
	bool idle;           /* as in struct why_part */
	bool capture;        /* all of it, as in struct why_part */
	uint64_t ns, ran_ns; /* ran_ns as in struct why_part */
	uint32_t culprits;   /* their number, at least 1 */
	uint32_t largest;    /* its largest part: why.parts.data[instance->part + largest] */
};
/* A timer may have idle time and other time. */
#define WHY_BY_CAUSE_MAX (WHY_CAUSE_COUNT + 1)
/* Fills in the sums, the largest first; `sums` has room for WHY_BY_CAUSE_MAX. Returns their number.
 * What delays an event loop comes before its idle time. The times add up to the duration of the
 * instance. */
uint32_t why_by_cause(const struct why *why, const struct why_instance *instance,
		      struct why_by_cause *sums);

/* The time of an instance for which a process of the target is to blame, whatever the causes. */
struct why_by_process {
	uint32_t process; /* index in model.processes */
	uint64_t ns;
	const struct why_part *largest;
	uint64_t largest_ns; /* of the culprit of that part with its cause, for all objects */
};
#define WHY_BY_PROCESS_MAX 4
#define WHY_BY_PROCESS_PARTS 10 /* a process with a smaller part of the time is left out */
/* Fills in the largest ones, the first one first; `sums` has room for WHY_BY_PROCESS_MAX. Returns
 * their number; 0 if no other process than that of the instance is to blame for that part of the
 * time more than its largest cause shows. Parts that stand for several processes do not count. */
uint32_t why_by_process(const struct why *why, const struct why_instance *instance,
			struct why_by_process *sums);

/* Processes that live for a small part of an instance, as a script starts them. */
struct why_short_processes {
	uint64_t ns; /* of the instance, for which they are to blame */
	/* All recorded ones that began in it, also if no part is theirs, and how long they lived
	 * together. */
	uint64_t count, lived_ns;
	uint32_t thread; /* one of those with the most time; MODEL_NONE: there is none */
};
struct why_short_processes why_short_processes(const struct why *why,
					       const struct why_instance *instance);

/*
 * The parts of the instance are in why.parts only during the call, unsorted and without chains. A
 * non-zero return stops the iteration, and why_each() returns it. A positive value is no failure.
 */
typedef int (*why_each_fn)(const struct why *why, const struct why_instance *instance, void *arg);

/*
 * Explains every span that is whole (it begins and ends in the capture) and selected, in order of
 * start_ts. To bound memory, it loads the threads' intervals for one slice of the capture at a
 * time. A slice has WHY_EACH_SWITCHES switches, and is longer if one of its spans ends later. The
 * intervals around it are loaded, too, because a wait may be explained by similar ones around it.
 * Afterwards *why holds only the texts that the `object` of the parts refers to.
 */
#define WHY_EACH_SWITCHES (1u << 18)
int why_each(struct why **why, const struct model *model, struct stack_names *names,
	     why_each_fn each, void *arg, struct error *err);

/* What is done with the slices of why_slices(). */
struct why_slice_fns {
	void *(*begin)(void *arg);
	/* As in why_each(), for the spans of one slice; `arg` is what begin() returned. A non-zero
	 * return ends the slice. */
	why_each_fn each;
	/* Called in order of time. `why` has the places of the slice, and the texts of all slices
	 * that its thread has explained so far. A non-zero return ends the iteration, and
	 * why_slices() returns it. */
	int (*end)(const struct why *why, void *slice, void *arg);
	void (*free)(void *slice);
};

/* Does the same as why_each(), on several threads; `timeline` as in a query. Only each() is called
 * on several threads at once, for different slices. Numbers of texts depend on the number of
 * threads, except in the first slice. */
int why_slices(const struct model *model, struct stack_names *names,
	       const struct gpu_timeline *timeline, const struct why_slice_fns *fns, void *arg,
	       struct error *err);

/* Finds the numbers of the records that prove the steps, by reading the capture again. Returns 0 or
 * a negative errno with a message. */
int why_records_find(struct why *why, struct error *err);
/* The same for any records: finds their numbers by ts, tid and role. Adds the number of steps to
 * *searched, unless NULL. */
int why_records_number(struct store_reader *reader, struct why_record *records, size_t count,
		       uint64_t *searched, struct error *err);

#endif
