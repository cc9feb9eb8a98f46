/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a capture says, built from its records: threads and processes, spans, events, links, thread
 * switches and losses. All of it is in arrays and refers to each other by index. It knows nothing
 * of BPF or of files' bytes. MODEL_NONE stands for "none" in every index.
 */
#ifndef WAFFLE_MODEL_MODEL_H
#define WAFFLE_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "filter/filter.h"
#include "model/windows.h"
#include "store/store.h"
#include "util/error.h"
#include "util/map.h"
#include "util/strtab.h"
#include "util/vec.h"

#define MODEL_NONE UINT32_MAX
#define MODEL_CPU_NONE UINT16_MAX

/* One incarnation of a thread: a tid that is used again after an exit is another thread. */
struct model_thread {
	uint32_t tid, pid;
	uint32_t comm;              /* last known name, in model.strings */
	bool traced;                /* one of the target's; else a waker or a neighbour on a CPU */
	bool own;                   /* the tracer's, or of one of its processes */
	bool has_sched;             /* its times below are known */
	bool gone;                  /* its last switch off a CPU is in the capture */
	uint64_t born_ts;           /* 0: not known */
	uint64_t first_ts, last_ts; /* first and last record that names it */
	uint64_t exit_ts;           /* 0: still there at the end */
	/* Totals over the capture, from the switches. */
	uint64_t running_ns, runnable_ns, blocked_ns;
};

struct model_process {
	uint32_t pid, ppid;   /* ppid 0: unknown */
	uint32_t cmdline;     /* in model.strings; empty: unknown */
	uint32_t main_thread; /* index, or MODEL_NONE */
};

enum model_span_flags {
	MODEL_SPAN_BEGUN_BEFORE =
		1u,                 /* its begin is not in the capture: start_ts is the capture's */
	MODEL_SPAN_UNFINISHED = 2u, /* its end is not in the capture: end_ts is the capture's (or
				       its thread's) end */
	MODEL_SPAN_MOVED = 4u,      /* ended on another thread than it began on */
	MODEL_SPAN_HAS_SCHED = 8u,  /* running_ns … are known, and sum to end_ts - start_ts */
	MODEL_SPAN_LOSS = 16u,      /* records were lost while it was open */
	MODEL_SPAN_LEFT = 32u,      /* a call that did not return: it was over at end_ts, and may
				       have been before */
	MODEL_SPAN_MAY_BE_LOST = 64u, /* begun before or unfinished, but what tells of its begin or
					 end may be among the records that were lost */
};
/* How long it was is not known. */
#define MODEL_SPAN_CUT (MODEL_SPAN_BEGUN_BEFORE | MODEL_SPAN_UNFINISHED | MODEL_SPAN_LEFT)

struct model_span {
	uint64_t id, parent_id;
	uint64_t trace_hi, trace_lo;
	uint64_t start_ts, end_ts;
	uint64_t running_ns, runnable_ns; /* of its begin's thread; blocked_ns is the rest */
	uint32_t site;                    /* MODEL_NONE: not known */
	uint32_t thread;                  /* of the begin; of the end if begun before */
	uint32_t end_thread;
	uint32_t parent; /* index of the parent span, less than its own; MODEL_NONE: not there */
	uint16_t flags;
	uint16_t cpu;   /* of the begin; MODEL_CPU_NONE if begun before */
	uint32_t frame; /* its values, for model_values(); MODEL_NONE: none */
};

/*
 * Whether a span may be told among the slowest in front of others. One whose begin or end may be
 * what was lost was not as long as it looks; nor was one that was left at some time.
 */
static inline bool model_span_ranks(const struct model_span *span)
{
	return !(span->flags & (MODEL_SPAN_LEFT | MODEL_SPAN_MAY_BE_LOST));
}

/* An event, a log message or a counter's value, as its site's kind says. */
struct model_event {
	uint64_t id; /* 0 for counters */
	uint64_t parent_id;
	uint64_t trace_hi, trace_lo;
	uint64_t ts;
	uint32_t site;
	uint32_t thread;
	uint32_t parent; /* index of the enclosing span, or MODEL_NONE */
	uint32_t frame;
	uint16_t cpu;
};

enum model_node_kind { MODEL_NODE_SPAN, MODEL_NODE_EVENT };

/* Where and when a node of a link is. */
struct model_node {
	uint64_t ts; /* of a span: its begin */
	uint32_t site, thread;
};

/* "from was caused by to". An index is MODEL_NONE if the id is not in the capture. */
struct model_link {
	uint8_t from_kind, to_kind; /* enum model_node_kind */
	uint32_t from, to;
	uint64_t to_id;
};

/* A CPU's switch from a thread to the next one; times are known as in struct waffle_rec_switch. */
struct model_switch {
	uint64_t ts, wake_ts;
	uint32_t prev, next, waker; /* thread indexes; MODEL_NONE: idle, or no waker */
	uint16_t cpu, prev_state;
	uint8_t flags; /* WAFFLE_SWITCH_* */
	int16_t syscall;
	uint32_t args; /* index of the first of 3 words in model.syscall_args, or MODEL_NONE */
};

/* State of a thread at the begin or end of the capture. */
struct model_state {
	uint64_t ts;
	uint32_t thread;
	uint8_t state; /* enum waffle_thread_state */
	bool at_end;
	uint16_t cpu, task_state;
	int16_t syscall;
	uint32_t args;
	uint64_t exec_ns, run_delay_ns;
};

/*
 * What is known of a wait beyond its switch: of those of at least wait_min_ns. Stacks and objects
 * are numbers in the reader's tables, 0: none.
 */
struct model_wait {
	uint64_t from_ts, to_ts; /* of the switches out and in */
	uint64_t address;        /* page fault; 0: not one */
	uint32_t thread;
	uint32_t kernel_stack, user_stack;
	uint32_t object;
	uint64_t record; /* its number in the file, for evidence */
};

struct model_wake {
	uint64_t ts;
	uint32_t waker, woken; /* threads */
	uint32_t kernel_stack, user_stack;
	uint32_t flags; /* WAFFLE_SWITCH_WAKER_* */
};

struct model_fault {
	uint64_t from_ts, to_ts, total_ns, address, ip;
	uint32_t thread, count;
	bool major;
};

struct model_io {
	uint64_t issue_ts, done_ts, sector;
	uint32_t bytes, dev;
	uint32_t thread; /* issuer */
	uint32_t flags;  /* WAFFLE_IO_* */
	int32_t error;
};

struct model_signal {
	uint64_t ts;
	uint32_t sender, target; /* threads */
	int32_t signo, code;
};

/* Of the runnable time before `ts`, throttled_ns were quota. */
struct model_quota {
	uint64_t ts, throttled_ns, cgroup, quota_ns, period_ns;
	uint32_t thread;
};

/* The thread had a CPU, but a hypervisor took it for stolen_ns of that time. */
struct model_stolen {
	uint64_t from_ts, to_ts, stolen_ns;
	uint32_t thread;
	bool by_tick; /* some of it may be of the time before from_ts */
};

/* From ts on; `read` when the capture began, not told by the kernel. */
struct model_frequency {
	uint64_t ts;
	uint32_t khz, max_khz; /* max_khz 0: not known */
	uint16_t cpu;
	bool read;
};

/* Where in the program a span or event began: numbers in the reader's tables, 0: none. */
struct model_stack {
	uint64_t id; /* of the span or event */
	uint64_t ts;
	uint32_t kernel_stack, user_stack, python_stack;
};

struct model_loss {
	uint64_t from_ts, to_ts, count;
	uint32_t source;
	uint16_t cpu;
};

struct model_fork {
	uint64_t ts;
	uint32_t parent_pid, child_pid;
};

/* A thread runs a new program. */
struct model_exec {
	uint64_t ts;
	uint32_t thread;
};

/* What of a capture a model is made of. */
struct model_keep {
	const struct filter_expr *filter; /* NULL: all */
	bool keep_children;               /* what is inside a span that passes is kept as well */
};

/* What a model_keep has left out. Accounts and losses are those of the whole capture. */
struct model_filtered {
	const char *expression; /* in model.strings; NULL: nothing was asked for */
	uint64_t spans, events;
};

struct model {
	const struct store_meta *meta; /* belongs to the reader, which must outlive the model */
	struct store_reader *reader;   /* likewise */
	uint64_t start_ts, end_ts;     /* of the capture or of the window, whichever is shorter */
	bool sched;                    /* the scheduler was recorded, and is wanted */
	struct model_filtered filtered;
	struct strtab *strings;
	/* Those of the reader, in which names stand for addresses of code (SITE_KEY_TEXT), and
	 * behind them those that were made of templates ("read {fd}") for their spans. */
	VEC(struct site_info) sites;
	VEC(struct model_thread) threads;
	VEC(struct model_process) processes;
	VEC(struct model_span) spans;      /* by start_ts */
	VEC(struct model_event) events;    /* by ts */
	VEC(struct model_link) links;      /* by from_kind, then from */
	VEC(struct model_switch) switches; /* by ts */
	VEC(struct model_state) states;
	VEC(struct model_wait) waits;            /* by thread, then from_ts */
	VEC(struct model_wake) wakes;            /* by woken, then ts */
	VEC(struct model_fault) faults;          /* by thread, then from_ts */
	VEC(struct model_io) ios;                /* by done_ts */
	VEC(struct model_signal) signals;        /* by ts */
	VEC(struct model_quota) quotas;          /* by thread, then ts */
	VEC(struct model_stolen) stolen;         /* by thread, then from_ts */
	VEC(struct model_frequency) frequencies; /* by cpu, then ts */
	VEC(struct model_stack) stacks;          /* by id */
	VEC(struct model_loss) losses;
	VEC(struct model_fork) forks;
	VEC(struct model_exec) execs; /* by thread, then ts */
	VEC(uint64_t) frames;         /* only for model/: {bytes, and room behind them; values} */
	VEC(uint64_t) syscall_args;
	struct map span_ids;  /* id → index */
	struct map event_ids; /* id → index, of the events that the program's links lead to */
	uint64_t unaligned_collectives; /* calls of which it is not certain which calls of other
					   ranks are the same collective */
	uint64_t bad_records;           /* records that made no sense and were left out */
	/* A capture that was cut off counts as delivered what is in the file, and no more as
	 * produced than that and the known losses: what was on its way is not known. */
	struct store_counts sources[WAFFLE_SOURCE_COUNT];
	struct store_counts counts; /* all sources */
};

/* `keep` NULL: all. A parent that was left out is no index any more, its id stays. */
int model_load(struct model **model, struct store_reader *reader, struct store_window window,
	       const struct model_keep *keep, struct error *err);
void model_free(struct model *model);

/* The wait of a thread that began at from_ts; NULL: it was short, or its record was lost. */
const struct model_wait *model_wait_at(const struct model *model, uint32_t thread,
				       uint64_t from_ts);
/* The wake-up of a thread at ts; NULL: not recorded. */
const struct model_wake *model_wake_at(const struct model *model, uint32_t woken, uint64_t ts);

/* What was stolen of a thread, from the first one that reaches beyond ts; as an index of
 * model.stolen, which may be another thread's. */
size_t model_stolen_after(const struct model *model, uint32_t thread, uint64_t ts);

/*
 * The frequency that a CPU had on average from from_ts to to_ts; false: not known. What was read at
 * the capture's begin counts if a change was told later: drivers that never tell leave it unknown.
 */
bool model_frequency(const struct model *model, uint16_t cpu, uint64_t from_ts, uint64_t to_ts,
		     uint32_t *khz, uint32_t *max_khz);

/* The site of an index; a site named "(unknown)" for MODEL_NONE. */
const struct site_info *model_site(const struct model *model, uint32_t site);
/* Whether any call in it went to a stand-in of CUDA or NCCL, so that no GPU did the work. */
bool model_simulated(const struct model *model);
/* Sites that spans and events can have: [0, count), and MODEL_NONE. */
uint32_t model_site_count(const struct model *model);
/* A walk through the values of a span or event; through none for frame MODEL_NONE. */
struct value_walk model_values(const struct model *model, uint32_t site, uint32_t frame);
/* The stacks of a span or event; NULL: none were taken. */
const struct model_stack *model_stack_of(const struct model *model, uint64_t id);
const char *model_comm(const struct model *model, uint32_t thread);
/* Whether it is a thread of the target; not so MODEL_NONE. */
static inline bool model_is_traced(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len && model->threads.data[thread].traced;
}
/* Whether the thread belongs to the waffle-bpf that made the capture, which reports leave out. */
bool model_is_own(const struct model *model, uint32_t thread);
/* The links from a span or event: model.links.data[*first] and `count` in all. */
size_t model_links_from(const struct model *model, uint8_t kind, uint32_t index, size_t *first);
/* False: it is not in the capture. */
bool model_node_find(const struct model *model, uint8_t kind, uint32_t index,
		     struct model_node *node);

/*
 * An interval of a traced thread, without gaps from its first known state to its last but where
 * scheduler records were lost. Blocked: state and system call at switch-out. Runnable: since it was
 * woken (waker) or preempted (preemptor). Intervals of no length are left out.
 */
struct model_interval {
	uint32_t thread;
	enum waffle_thread_state state;
	uint64_t from_ts, to_ts;
	uint16_t cpu; /* running: where. Else: where it ran last. MODEL_CPU_NONE: not known */
	uint16_t task_state; /* blocked: enum waffle_task_state */
	int16_t syscall;     /* blocked: -1 none */
	uint32_t args;       /* blocked: into model.syscall_args */
	uint32_t by;    /* runnable: waker or preemptor (thread index); MODEL_NONE: not known */
	bool woken;     /* runnable: by is a waker, not a preemptor */
	bool interrupt; /* woken by an interrupt, such as a timer, while `by` happened to run there
			 */
	bool open;      /* cut by the end of the capture */
};

/* When records were lost, merged; those of all sources, or the scheduler's. Free it after. False:
 * out of memory. */
bool model_losses(struct windows *losses, const struct model *model, bool only_sched);

typedef int (*model_interval_fn)(const struct model_interval *interval, void *arg);

/* Calls `each` for every interval of every traced thread, ordered by to_ts; stops at the first
 * non-zero return and returns it. */
int model_each_interval(const struct model *model, model_interval_fn each, void *arg);

#endif
