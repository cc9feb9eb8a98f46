/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model of a capture, built from its records: threads and processes, spans, events, links,
 * thread switches and dropped records. Everything lies in arrays, whose elements refer to each
 * other by index; MODEL_NONE means "none" in every index. The model knows nothing of BPF or of the
 * file format.
 *
 * The caller owns a model and frees it with model_free(). It keeps pointers to its reader, which
 * must outlive it. Times (_ts) are CLOCK_MONOTONIC nanoseconds.
 */
#ifndef WAFFLE_MODEL_MODEL_H
#define WAFFLE_MODEL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "filter/filter.h"
#include "model/windows.h"
#include "store/host.h"
#include "store/store.h"
#include "util/error.h"
#include "util/id_index.h"
#include "util/map.h"
#include "util/strtab.h"
#include "util/vec.h"

#define MODEL_NONE UINT32_MAX
#define MODEL_CPU_NONE UINT16_MAX

/* One incarnation of a thread: when the kernel reuses a tid after an exit, that is another
 * thread. */
struct model_thread {
	uint32_t tid, pid;
	/* Last known name, in model.strings: the one that it has in its own program, or else the
	 * kernel's. */
	uint32_t comm;
	/* Name of its kind, in model.strings, if many threads of its program whose names differ
	 * only in numbers have ended: "Thread-N (work)". 0: none. */
	uint32_t kind;
	/*
	 * 0, or a lane that the program declared, with this number in its process. It is no thread:
	 * its tid is 0, it is not `traced`, it has no scheduler, and its spans may overlap, and lie
	 * outside the capture.
	 */
	uint32_t track;
	/* Of a track, in model.strings: its own name and that of its group, which may be empty. Its
	 * `comm` is "group: name". */
	uint32_t track_name, group;
	/* The target's thread; otherwise a waker, or a thread that shared a CPU with the target. */
	bool traced;
	/* A thread of waffle-bpf, or of a process that it started for the capture. */
	bool own;
	/* A thread of the kernel, or of a process. Neither: a capture of an earlier version, or no
	 * record. Both: the tid was reused, or the kernel's thread executed a program. */
	bool kernel, user;
	bool has_sched;             /* its state was known at some time: the totals below count */
	bool gone;                  /* its last switch off a CPU is in the capture */
	uint64_t born_ts;           /* when it was started; 0: unknown */
	uint64_t first_ts, last_ts; /* of the first and last record that names it */
	uint64_t exit_ts;           /* 0: no exit was recorded */
	int32_t exit_code;          /* what wait(2) reports of a main thread that is gone */
	/* Totals over the capture, computed from the switches. */
	uint64_t running_ns, runnable_ns, blocked_ns;
};

struct model_process {
	uint32_t pid, ppid;   /* ppid 0: unknown */
	uint32_t cmdline;     /* in model.strings; empty: unknown */
	uint32_t main_thread; /* thread index, or MODEL_NONE */
	uint32_t host;        /* index in model.hosts */
	uint32_t rank;        /* in its job; MODEL_NONE: unknown */
	uint32_t world_size;  /* 0: unknown */
	uint32_t job;         /* in model.strings, such as "slurm:4711"; empty: unknown */
	uint32_t container;   /* its id, in model.strings; empty: unknown */
	uint32_t network;     /* STORE_NETWORK, in model.strings; 0: unknown */
	bool found;           /* STORE_FOUND */
	int8_t nice;          /* STORE_NICE: of the main thread when it was first seen */
	uint64_t waker_ts;    /* of STORE_WAKER; 0: it has none */
	/* By which way its hits came; NULL: through the kernel, and it has no libwaffle. */
	const struct store_transport *transport;
};

enum model_span_flags {
	/* The begin is not in the capture: start_ts is the capture's begin. */
	MODEL_SPAN_BEGUN_BEFORE = 1u,
	/* The end is not in the capture: end_ts is the thread's exec or exit, or the capture's
	 * end. */
	MODEL_SPAN_UNFINISHED = 2u,
	MODEL_SPAN_MOVED = 4u,     /* it ended on another thread than it began on */
	MODEL_SPAN_HAS_SCHED = 8u, /* the thread's states are known from begin to end */
	MODEL_SPAN_LOSS = 16u,     /* records were dropped while it was open */
	/* A call that did not return: it was over at end_ts, possibly earlier. */
	MODEL_SPAN_LEFT = 32u,
	/* Begun before or unfinished, but the record of its begin or end may have been dropped. */
	MODEL_SPAN_MAY_BE_LOST = 64u,
	/* Begun before or unfinished, and only the next call of its function would have ended it
	 * (site_info.laps). What came after the last lap counts, too, so it says nothing of laps.
	 */
	MODEL_SPAN_PART_OF_LAP = 128u,
};
/* The duration of such a span is unknown. */
#define MODEL_SPAN_CUT (MODEL_SPAN_BEGUN_BEFORE | MODEL_SPAN_UNFINISHED | MODEL_SPAN_LEFT)

struct model_span {
	uint64_t id;
	uint64_t start_ts, end_ts;
	/* Time of the begin's thread in the span; the rest of its duration is blocked time. Valid
	 * with MODEL_SPAN_HAS_SCHED. */
	uint64_t running_ns, runnable_ns;
	uint32_t site;   /* MODEL_NONE: unknown */
	uint32_t thread; /* where it began; where it ended if begun before */
	uint32_t end_thread;
	/* Index of the parent span, always less than the span's own; MODEL_NONE: not in the
	 * capture. */
	uint32_t parent;
	uint16_t flags;
	uint16_t cpu;   /* where it began; MODEL_CPU_NONE if begun before */
	uint32_t frame; /* for model_values(); MODEL_NONE: no values */
};
/* A capture may have hundreds of millions of spans. */
_Static_assert(sizeof(struct model_span) == 64, "a span fills a cache line");
_Static_assert(offsetof(struct model_span, id) == 0 && MODEL_NONE == ID_INDEX_NONE,
	       "spans are found by an id_index");

/* What a span says of the spans around it. */
struct model_context {
	uint64_t parent_id; /* 0: none */
	uint64_t trace_hi, trace_lo;
};

/* Whether a span may be ranked by its duration. The begin or end of a LEFT or MAY_BE_LOST span is
 * not certain, so its apparent duration may be too long, as is that of a PART_OF_LAP. */
static inline bool model_span_ranks(const struct model_span *span)
{
	return !(span->flags & (MODEL_SPAN_LEFT | MODEL_SPAN_MAY_BE_LOST | MODEL_SPAN_PART_OF_LAP));
}

/* An event, a log message or a value of a counter: the kind of its site says which. */
struct model_event {
	uint64_t id; /* 0: a counter */
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

/* Time and place of one end of a link. */
struct model_node {
	uint64_t ts; /* of a span: its begin */
	uint32_t site, thread;
};

/* "`from` was caused by `to`". An index is MODEL_NONE if the capture does not have the id. */
struct model_link {
	uint8_t from_kind, to_kind; /* enum model_node_kind */
	uint32_t from, to;
	uint64_t to_id;
};

/* A CPU's switch from one thread to the next. The fields are those of struct waffle_rec_switch. */
struct model_switch {
	uint64_t ts, wake_ts;
	uint32_t prev, next, waker; /* thread indexes; MODEL_NONE: idle, or no waker */
	uint16_t cpu, prev_state;
	uint8_t flags; /* WAFFLE_SWITCH_* */
	int16_t syscall;
	/* Index of the first of WAFFLE_SYSCALL_ARGS words in model.syscall_args, or MODEL_NONE. */
	uint32_t args;
};

/* Whether the thread that leaves the CPU waits for something. */
static inline bool model_switch_blocks(const struct model_switch *sw)
{
	return !(sw->flags & WAFFLE_SWITCH_PREEMPTED) && sw->prev_state & 0xff;
}

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

/* Details of a blocked interval. The capture has them only for waits of at least its wait_min_ns.
 * Stacks and objects are numbers in the reader's tables; 0: none. */
struct model_wait {
	uint64_t from_ts, to_ts; /* when it was switched out and in again */
	uint64_t address;        /* of the page fault; 0: no page fault */
	uint32_t thread;
	uint32_t kernel_stack, user_stack;
	uint32_t object;
	uint64_t record; /* record number in the file, for evidence */
};

/* A wait that goes on when the capture ends. There is also a struct model_wait of it. */
struct model_open_wait {
	uint64_t ts;      /* of the end */
	uint64_t from_ts; /* when it was switched out, or if `before`, when the capture began */
	uint64_t lock;    /* address of the futex; 0: it waits for none */
	uint32_t thread;
	uint32_t owner; /* the thread that holds the lock; MODEL_NONE: unknown */
	uint32_t ended; /* the number of the owner if that has ended; 0: it has not, or unknown */
	/* The main thread of the process that traces it and has stopped it; MODEL_NONE: none. */
	uint32_t tracer;
	uint32_t kernel_stack, user_stack;
	uint32_t object; /* as of a model_wait; 0: unknown */
	uint32_t flags;  /* WAFFLE_OPEN_WAIT_* */
	uint32_t args;   /* as in a model_switch */
	int16_t syscall; /* -1: none */
	uint16_t task_state;
	bool before; /* it began before the capture */
};

/* A wake-up, with the stacks of the waker; 0: none. */
struct model_wake {
	uint64_t ts;
	uint32_t waker, woken; /* thread indexes */
	uint32_t kernel_stack, user_stack;
	uint32_t flags; /* WAFFLE_SWITCH_WAKER_* */
};

/* `count` page faults between from_ts and to_ts took total_ns. The address and ip are those of the
 * last one. */
struct model_fault {
	uint64_t from_ts, to_ts, total_ns, address, ip;
	uint32_t thread, count;
	bool major;
};

/* A request to a block device. */
struct model_io {
	uint64_t issue_ts, done_ts, sector;
	uint32_t bytes, dev;
	uint32_t disk;   /* that `dev` is on; 0: unknown */
	uint32_t thread; /* the issuer, perhaps on behalf of others */
	uint32_t flags;  /* WAFFLE_IO_* */
	int32_t error;
};

struct model_signal {
	uint64_t ts;
	uint32_t sender, target; /* thread indexes */
	int32_t signo, code;
};

/* The thread was runnable before `ts`; for throttled_ns of that time its cgroup had no CPU quota
 * left. */
struct model_quota {
	uint64_t ts, throttled_ns, cgroup, quota_ns, period_ns;
	uint32_t thread;
};

/* The thread is back on a CPU at ts, and its cgroup uses all of its memory: struct
 * waffle_rec_memory. */
struct model_memory {
	uint64_t ts, cgroup, limit_bytes, used_bytes, user_bytes;
	uint32_t thread, user_pid, flags;
	uint32_t user_comm; /* in model.strings */
};

/* How much of a disk the cgroup of the thread's process may use, or another limit of a thread or
 * its process: struct waffle_rec_io_limit. `pid`: the thread's number, for limits of a thread. */
struct model_io_limit {
	uint64_t cgroup, limit; /* limit: bytes or requests a second, or what `kind` says */
	uint32_t pid, dev, kind;
	uint32_t thread; /* the one that has `pid` as its tid */
};

/* The thread tried to lock a file at `ts`, which a process had locked: struct
 * waffle_rec_lock_refusal. */
struct model_lock_refusal {
	uint64_t ts;
	uint32_t thread;
	uint32_t holder; /* the main thread of that process; MODEL_NONE: unknown */
	uint32_t
		former; /* the number that the process had that took the lock; 0: `holder` has it */
	uint32_t object, flags;
};

/* What the thread asked a server for at `ts` failed: struct waffle_rec_request_failure. */
struct model_request_failure {
	uint64_t ts;
	uint32_t thread;
	uint32_t object; /* the socket */
	uint32_t status; /* of HTTP; 0: the connection was refused */
};

/* A sleep that was at least twice as long as asked for: struct waffle_rec_late_sleep. */
struct model_late_sleep {
	uint64_t from_ts, asked_ns, slack_ns;
	uint32_t thread;
};

/* The thread was on a CPU, but the hypervisor took the CPU away for stolen_ns of that time. */
struct model_stolen {
	uint64_t from_ts, to_ts, stolen_ns;
	uint32_t thread;
	bool by_tick; /* some of stolen_ns may lie before from_ts */
};

/* The frequency of a CPU from `ts` on. `read`: waffle read it when the capture began; otherwise the
 * kernel reported a change. */
struct model_frequency {
	uint64_t ts;
	uint32_t khz, max_khz; /* max_khz 0: unknown */
	uint16_t cpu;
	bool read;
};

/* What a thread that had a CPU ran at `ts`. The stacks are numbers as in a wait. */
struct model_sample {
	uint64_t ts;
	uint32_t thread;
	uint32_t kernel_stack, user_stack;
	int16_t syscall; /* in the kernel; -1: none */
	bool kernel;
};

/* The stacks at the begin of a span, or at an event: numbers in the reader's tables; 0: none. */
struct model_stack {
	uint64_t id; /* of the span or event */
	uint64_t ts;
	uint32_t kernel_stack, user_stack, python_stack;
};

/* `count` records of a source were dropped on a CPU after from_ts, up to to_ts. */
struct model_loss {
	uint64_t from_ts, to_ts, count;
	uint32_t source; /* enum waffle_source */
	uint16_t cpu;
};

/* The thread executed a new program. */
struct model_exec {
	uint64_t ts;
	uint32_t thread;
};

/* When one of several captures recorded a process. */
struct model_recorded {
	uint64_t from_ts, to_ts;
	uint64_t latest_ts; /* the largest to_ts of the process up to this entry */
	uint64_t sched_ts;  /* its scheduler records begin here; UINT64_MAX: it has none */
	uint32_t pid, capture;
};

/* What a model loads from a capture. */
struct model_filter {
	const struct filter_expr *filter; /* NULL: everything */
	bool keep_children;               /* also keep all descendants of a span that passes */
	/* Only calls of CUDA, NCCL and MPI that have a role, with the threads and processes that
	 * made them. */
	bool only_roles;
	/* Only what origins need (analyze/origin/origin.h): no scheduler records, and of the links
	 * only those that the program declared. */
	bool only_declared;
	/* With only_declared: also leave out spans to which no way from an event leads: nothing
	 * happened in them, nothing refers to them, and no call of NCCL or MPI is missing that they
	 * would stand for. Ignored if there is a filter. */
	bool from_event;
	/* Keep the operations and launches of libwaffle-gpu apart, for gpu_timeline_take(). They
	 * are then not among the spans and events. Ignored if there is a filter. */
	bool gpu_apart;
	/* Leaves out what takes much memory and the causes of spans do not need: the table of ids
	 * (model.span_ids), the contexts, and, if there is no filter, the values of spans that
	 * nothing is computed from. model_values_load() reads those of chosen spans. */
	bool compact;
	/* Selects the spans that are to be shown (model.selected), and removes nothing. NULL: all
	 * are. */
	const struct filter_expr *where;
};

/* What a model_filter has left out. The counts of records and losses include it. */
struct model_filtered {
	const char *expression; /* in model.strings; NULL: no filter */
	uint64_t spans, events;
};

/* In model.frames, the word before the values of a span or event: their length in bytes, and the
 * number of free words behind them. */
#define FRAME_HEAD(bytes, room) ((uint64_t)(room) << 32 | (bytes))
#define FRAME_BYTES(head) ((uint32_t)(head))
#define FRAME_ROOM(head) ((uint32_t)((head) >> 32))

struct gpu_records;

struct model {
	const struct store_meta *meta;         /* owned by the reader */
	struct store_reader *reader;           /* likewise */
	const struct store_host *const *hosts; /* at least one; likewise */
	uint32_t host_count;
	/* Times of different hosts may be compared: there is one host, or their clocks were aligned
	 * by what they did together. */
	bool aligned;
	/* Of the capture, cut to the window, and of what lies on tracks outside it. */
	uint64_t start_ts, end_ts;
	uint64_t threads_start_ts, threads_end_ts; /* without tracks */
	bool sched;                                /* scheduler records exist and were loaded */
	struct model_filtered filtered;
	/* For each span, whether the expression model_filter.where selects it; NULL: all spans
	 * are. */
	bool *selected;
	const char *selecting; /* that expression, in `strings`; NULL: none */
	struct strtab *strings;
	/* First the reader's sites. names_resolve() turns their code addresses into names
	 * (SITE_KEY_TEXT). Behind them stand the sites made from name templates ("read {fd}"). */
	VEC(struct site_info) sites;
	VEC(struct model_thread) threads;
	VEC(struct model_process) processes;
	/* What recorded the GPU's times is a stand-in, also if a filter or a window has left out
	 * the event that says so (docs/gpu.md). */
	bool gpu_simulated;
	struct gpu_records *gpu_records;    /* NULL: there are none, or they are not kept apart */
	VEC(struct model_span) spans;       /* by start_ts */
	VEC(struct model_context) contexts; /* of each span; empty if model_filter.compact */
	VEC(struct model_event) events;     /* by ts */
	VEC(struct model_link) links;       /* by from_kind, then from */
	VEC(struct model_switch) switches;  /* by ts */
	VEC(struct model_state) states;
	VEC(struct model_wait) waits;                 /* by thread, then from_ts */
	VEC(struct model_open_wait) open_waits;       /* by thread */
	VEC(struct model_wake) wakes;                 /* by woken, then ts */
	VEC(struct model_fault) faults;               /* by thread, then from_ts */
	VEC(struct model_io) ios;                     /* by done_ts */
	VEC(struct model_signal) signals;             /* by ts */
	VEC(struct model_quota) quotas;               /* by thread, then ts */
	VEC(struct model_memory) memories;            /* by thread, then ts */
	VEC(struct model_io_limit) io_limits;         /* by pid */
	VEC(struct model_lock_refusal) lock_refusals; /* by thread, then ts */
	VEC(struct model_stolen) stolen;              /* by thread, then from_ts */
	VEC(struct model_frequency) frequencies;      /* by cpu, then ts */
	VEC(struct model_sample) samples;             /* by thread, then ts */
	VEC(struct model_stack) stacks;               /* by id */

	/* By thread, then ts. */
	VEC(struct model_request_failure) request_failures;
	VEC(struct model_late_sleep) late_sleeps; /* by thread, then from_ts */
	VEC(struct model_loss) losses;
	VEC(struct model_exec) execs; /* by thread, then ts */
	/* By pid, then from_ts. Empty if there is a single capture. Private to model/. */
	VEC(struct model_recorded) recorded;
	VEC(uint64_t) frames; /* private to model/: {FRAME_HEAD, values} of each */
	VEC(uint64_t) syscall_args;
	struct map pids;          /* pid → index of its process */
	struct id_index span_ids; /* see model_span_find() */
	struct map event_ids;     /* id → index; only of events that links lead to */
	uint32_t track_count;     /* number of tracks among the threads */
	/* Calls of a collective that could not be matched with the calls of the other ranks. */
	uint64_t unaligned_collectives;
	uint64_t bad_records; /* invalid records, which were skipped */
	/*
	 * The file of a cut-off capture does not say how many records were produced or delivered.
	 * Then `delivered` counts the records in the file, and `produced` adds only the known
	 * losses.
	 */
	struct store_counts sources[WAFFLE_SOURCE_COUNT];
	struct store_counts counts; /* sum over all sources */
};

/*
 * Builds a model from the records of a window. `keep` NULL loads everything. If a span's parent is
 * filtered out, `parent` becomes MODEL_NONE and parent_id stays. Returns 0 or a negative errno with
 * a message.
 */
int model_load(struct model **model, struct store_reader *reader, struct store_window window,
	       const struct model_filter *keep, struct error *err);
void model_free(struct model *model);
/* -EINVAL with a message: the capture had ended at `ts`, and nothing in the model is later. */
int model_reaches(const struct model *model, uint64_t ts, struct error *err);

/* The wait of a thread that began at from_ts. NULL: it was too short to have a record, or the
 * record was dropped. */
const struct model_wait *model_wait_at(const struct model *model, uint32_t thread,
				       uint64_t from_ts);
/* The object of a wait. NULL: it is unknown, or `wait` is NULL. */
const struct store_object *model_wait_object(const struct model *model,
					     const struct model_wait *wait);
/* The wait in which a thread is when the capture ends; NULL: it is in none, or it has no record. */
const struct model_open_wait *model_open_wait_of(const struct model *model, uint32_t thread);
/* The last try of a thread to lock a file up to ts that was refused; NULL: there is none. */
const struct model_lock_refusal *model_lock_refusal_before(const struct model *model,
							   uint32_t thread, uint64_t ts);
/* The last request of a thread up to ts that failed; NULL: there is none. */
const struct model_request_failure *model_request_failure_before(const struct model *model,
								 uint32_t thread, uint64_t ts);
/* The late sleep of a thread that began at from_ts; NULL: there is none. */
const struct model_late_sleep *model_late_sleep_at(const struct model *model, uint32_t thread,
						   uint64_t from_ts);
/* The wake-up of a thread at ts; NULL: not recorded. */
const struct model_wake *model_wake_at(const struct model *model, uint32_t woken, uint64_t ts);

/* Index in model.stolen of the thread's first stolen time that ends after ts. If there is none, the
 * element there belongs to another thread or does not exist. */
size_t model_stolen_after(const struct model *model, uint32_t thread, uint64_t ts);

/*
 * The average frequency of a CPU from from_ts to to_ts; false: unknown. A frequency that was only
 * read at the begin counts only if the kernel reported a change later, because some drivers never
 * report changes.
 */
bool model_frequency(const struct model *model, uint16_t cpu, uint64_t from_ts, uint64_t to_ts,
		     uint32_t *khz, uint32_t *max_khz);

static inline struct id_array model_span_array(const struct model *model)
{
	return (struct id_array){model->spans.data, sizeof(struct model_span)};
}
/* The span with an id, or MODEL_NONE. */
static inline uint32_t model_span_find(const struct model *model, uint64_t id)
{
	return id_index_get(&model->span_ids, model_span_array(model), id);
}
/* The context of one of model->spans, in a model that is not compact. */
static inline const struct model_context *model_context_of(const struct model *model,
							   const struct model_span *span)
{
	return &model->contexts.data[span - model->spans.data];
}

/* The site with that index. For MODEL_NONE, a site named "(unknown)". */
const struct site_info *model_site(const struct model *model, uint32_t site);
/* Whether the capture has calls into a CUDA or NCCL stand-in, so that no GPU did the work. */
bool model_simulated(const struct model *model);
/* Spans and events have sites in [0, count), or MODEL_NONE. */
uint32_t model_site_count(const struct model *model);
/* Reads the values of spans that a compact model has left in the file. Those that are there already
 * stay as they are. Returns 0 or a negative errno with a message. */
int model_values_load(struct model *model, const uint32_t *spans, size_t count, struct error *err);
/* Walks the values of a span or event; frame MODEL_NONE has no values. */
struct value_walk model_values(const struct model *model, uint32_t site, uint32_t frame);
/* The stacks of a span or event; NULL: none were taken. */
const struct model_stack *model_stack_of(const struct model *model, uint64_t id);
const char *model_thread_name(const struct model *model, uint32_t thread);
/* The name under which threads are summed up, in model.strings. */
static inline uint32_t model_thread_kind(const struct model *model, uint32_t thread)
{
	const struct model_thread *of = &model->threads.data[thread];

	return of->kind ? of->kind : of->comm;
}
const char *model_thread_kind_name(const struct model *model, uint32_t thread);
/* The signal that ended a traced thread which is not one of the capture's own; 0: none did, or it
 * goes on. The status of wait(2) has it in the lowest seven bits. */
static inline uint32_t model_thread_signal(const struct model_thread *thread)
{
	return thread->traced && !thread->own && thread->exit_ts
		       ? (uint32_t)thread->exit_code & 0x7f
		       : 0;
}
/* The number that the host itself gives a process or thread. */
static inline uint32_t model_pid_real(const struct model *model, uint32_t pid)
{
	return model->host_count > 1 ? store_pid_real(pid) : pid;
}
static inline uint64_t model_ino_real(const struct model *model, uint64_t ino)
{
	return model->host_count > 1 ? store_ino_real(ino) : ino;
}
/* The address as the kernel of the host has it. */
static inline uint64_t model_kernel_address_real(const struct model *model, uint64_t address)
{
	return model->host_count > 1 && address ? store_kernel_address_real(address) : address;
}
/* The host of a CPU: an index in model.hosts. */
uint32_t model_host_of_cpu(const struct model *model, uint16_t cpu);
/* The process of a thread; NULL: unknown. */
const struct model_process *model_process_of(const struct model *model, uint32_t thread);
/* The host of a thread: an index in model.hosts. Host 0 if the thread is MODEL_NONE. */
uint32_t model_host_of(const struct model *model, uint32_t thread);
/* Whether a span is one of those that the user wants to see. */
static inline bool model_is_selected(const struct model *model, size_t span)
{
	return !model->selected || model->selected[span];
}
/* Whether it is a thread of the target; false for MODEL_NONE. */
static inline bool model_is_traced(const struct model *model, uint32_t thread)
{
	return thread < model->threads.len && model->threads.data[thread].traced;
}
/* Whether it is a track, and no thread; false for MODEL_NONE. */
static inline bool model_is_track(const struct model *model, uint32_t thread)
{
	return model->track_count && thread < model->threads.len &&
	       model->threads.data[thread].track;
}
/* Whether the thread belongs to the waffle-bpf that made the capture. Reports leave it out. */
bool model_is_own(const struct model *model, uint32_t thread);
/* Whether the thread is known to be one of the kernel. Its name does not show that. */
bool model_is_kernel(const struct model *model, uint32_t thread);
/* Whether it is one, or nothing is known about it. */
bool model_may_be_kernel(const struct model *model, uint32_t thread);
/* Returns the number of links from a span or event; the first is model.links.data[*first]. */
size_t model_links_from(const struct model *model, uint8_t kind, uint32_t index, size_t *first);
/* Time and place of a span or event; false: it is not in the capture. */
bool model_node_find(const struct model *model, uint8_t kind, uint32_t index,
		     struct model_node *node);

/* Whether times of two hosts can be compared: they are one, or their clocks were aligned by what
 * they did together (model/clock/clock.h). */
bool model_hosts_comparable(const struct model *model, uint32_t host, uint32_t other);
/* By how much the difference between times of two threads may be wrong. UINT64_MAX: the times
 * cannot be compared. 0 on one host. */
uint64_t model_order_error(const struct model *model, uint32_t thread, uint64_t ts, uint32_t other,
			   uint64_t other_ts);
/* Whether it is known which of two times came first: their difference is larger than its error. On
 * one host it is always known. */
bool model_order_known(const struct model *model, uint32_t thread, uint64_t ts, uint32_t other,
		       uint64_t other_ts);

/*
 * A traced thread's time in one state. The intervals of a thread have no gaps between its first and
 * last known state, except where scheduler records were dropped. There are none of length zero. A
 * blocked interval has the task state and system call at its switch-out. A runnable one begins when
 * the thread was woken or preempted.
 */
struct model_interval {
	uint32_t thread;
	enum waffle_thread_state state;
	uint64_t from_ts, to_ts;
	/* The CPU it runs on, or else ran on last; MODEL_CPU_NONE: unknown. */
	uint16_t cpu;
	uint16_t task_state; /* blocked: enum waffle_task_state */
	int16_t syscall;     /* blocked: -1 if none */
	uint32_t args;       /* blocked: index in model.syscall_args */
	uint32_t by;         /* runnable: waker or preemptor; MODEL_NONE: unknown */
	bool woken;          /* runnable: `by` is the waker */
	/* An interrupt, such as a timer's, woke it, and `by` is only what it interrupted. */
	bool interrupt;
	bool open; /* cut by the end of the capture */
};

/* "uninterruptible (D)", "stopped" or "blocked": how a thread waits, by its enum
 * waffle_task_state. */
const char *model_blocked_text(uint16_t task_state);

/* The merged windows in which records were dropped, of the scheduler or of all sources. The caller
 * frees them with windows_free(). */
void model_losses(struct windows *losses, const struct model *model, bool only_sched);

typedef int (*model_interval_fn)(const struct model_interval *interval, void *arg);

/* Calls `each` for every interval of every traced thread, ordered by to_ts. It stops at the first
 * non-zero return and returns that. */
int model_each_interval(const struct model *model, model_interval_fn each, void *arg);
/* The same without an order between threads, in less time and memory. Those of one thread are in
 * order. `each` must return 0. */
void model_each_interval_by_thread(const struct model *model, model_interval_fn each, void *arg);

/* Marks in a capture, from which its intervals can be read again without those before. */
struct model_marks;
/* Makes a mark after each `every` switches, or after more if there are many threads. Meanwhile it
 * calls `each` as model_each_interval_by_thread() does. */
struct model_marks *model_marks_new(const struct model *model, size_t every, model_interval_fn each,
				    void *arg);
void model_marks_free(struct model_marks *marks);
/* Calls `each` for all intervals of a time, and for the one that follows a blocked interval of that
 * time. It also calls `each` for some of those before and after. Those of one thread are in order
 * and without gaps. Several threads may use the marks at once. */
void model_marks_intervals(const struct model_marks *marks, uint64_t from_ts, uint64_t to_ts,
			   model_interval_fn each, void *arg);

#endif
