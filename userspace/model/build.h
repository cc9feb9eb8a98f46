/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to model/: state that exists only while a model is built, and the steps that build it.
 * Functions that add a record skip an invalid one and count it in model.bad_records.
 */
#ifndef WAFFLE_MODEL_BUILD_H
#define WAFFLE_MODEL_BUILD_H

#include "model/model.h"
#include "model/windows.h"

/* Build-time state of a thread, at the same index as its struct model_thread. */
struct thread_build {
	uint64_t closed_ts; /* later records belong to the next incarnation of the tid; 0: open */
	uint32_t previous;  /* previous incarnation of the tid, or MODEL_NONE */
	uint32_t own_name;  /* that of a THREAD_NAME record, in model.strings; 0: none */
	uint64_t named_start_ts; /* when the thread that has it was started */
};

struct site_build {
	uint16_t kind;
	bool has_keys, has_links, call;
	bool plain;   /* of spans whose values are only shown: nothing is computed from them */
	bool session; /* of libwaffle-gpu, whose events say whether it recorded a stand-in */
	/* Words of values that a return of the site had. The next begin reserves as many behind its
	 * own values, so that they need not be moved when it returns. */
	uint8_t return_words;
};

/* Cache: where the arguments of system calls were stored last, by their hash. A program makes most
 * of its calls with the same arguments again and again. */
#define ARGS_CACHE_BITS 12
struct args_cache {
	uint32_t at[1u << ARGS_CACHE_BITS]; /* index in model.syscall_args + 1; 0: empty */
};

/* The name of a thread from `ts` on. */
struct thread_name {
	uint64_t ts;
	uint32_t thread, comm; /* comm: in model.strings */
};

/* A span whose parent had not been read yet. */
struct orphan {
	uint64_t parent_id;
	uint32_t span;
};

struct builder {
	struct model *model;
	const struct model_filter *keep; /* NULL: no filter */
	const struct filter_expr *where; /* NULL: all spans are selected */
	bool want_names, no_sched;       /* derived from the filter */
	bool only_roles;                 /* see struct model_filter */
	bool only_declared;              /* see struct model_filter */
	bool compact;                    /* see struct model_filter */
	bool no_contexts, no_values;     /* of spans; both derived from it */
	bool only_leading;               /* from_event of struct model_filter */
	bool has_calls;
	VEC(struct thread_name) names; /* every name with its time, if want_names */
	VEC(struct thread_build) threads;
	VEC(struct site_build) sites;
	VEC(struct orphan) orphans;
	struct args_cache args;
	struct map tids;     /* tid → newest incarnation */
	struct map returned; /* id → values of a return that came before its begin */
	struct map tracks;   /* process << 32 | number of a track → its index among the threads */
	struct map on_track; /* id of a span or event that is expected → its track */
	uint64_t tracks_first_ts, tracks_last_ts; /* of spans and events on tracks */
	bool was_track;                           /* the current record was one of a track */
	uint64_t last_ts;
	uint64_t record; /* number of the current record in the file */
};

/* ---- threads.c ---- */

/* The thread that had the tid at `ts`, added if new. */
uint32_t threads_at(struct builder *builder, uint32_t tid, uint64_t ts);
/* The same for a record from the thread's own code: after an exit such a record comes from a new
 * thread. */
uint32_t threads_running(struct builder *builder, uint32_t tid, uint32_t pid, uint64_t ts);
/* The main thread of a process that another one's record names; MODEL_NONE: `pid` is 0. */
uint32_t threads_outside(struct builder *builder, uint32_t pid, const char comm[WAFFLE_COMM_BYTES],
			 uint64_t ts);
void threads_add_process(struct builder *builder, uint32_t pid, uint32_t ppid, const char *cmdline);
void threads_add_attribute(struct builder *builder, const struct store_attribute *attribute);
void threads_add_transport(struct builder *builder, const struct store_transport *transport);
void threads_add_rank(struct builder *builder, const struct store_rank *rank);
void threads_add_task(struct builder *builder, const struct waffle_rec_task *task);
void threads_add_name(struct builder *builder, const struct waffle_rec_thread_name *name);
void threads_add_fork(struct builder *builder, const struct waffle_rec_fork *fork);
void threads_add_exec(struct builder *builder, const struct waffle_rec_exit *exec);
void threads_add_exit(struct builder *builder, const struct waffle_rec_exit *gone);
/* Finds the main thread of each process and names the threads that have no name. */
void threads_finish(struct builder *builder);
/* When the program that the thread ran at `ts` was replaced or ended; UINT64_MAX: unknown. */
uint64_t threads_end_after(const struct builder *builder, uint32_t thread, uint64_t ts);

/* ---- tracks.c ---- */

void tracks_add(struct builder *builder, const struct waffle_rec_track *rec);
/* The hit that has the id belongs to a track. */
void tracks_expect(struct builder *builder, const struct waffle_rec_on_track *rec);
/* The track of a hit that was expected, or MODEL_NONE. */
uint32_t tracks_take(struct builder *builder, uint64_t id);
/* Something on a track has that time. */
void tracks_touch(struct builder *builder, uint32_t thread, uint64_t ts);
/* Names the tracks that have no name. */
void tracks_finish(struct builder *builder);

/* ---- switches.c ---- */

void switches_add(struct builder *builder, const struct waffle_rec_switch *rec);
void switches_add_state(struct builder *builder, const struct waffle_rec_state *rec);
/* Sorts switches and states, and joins what several captures say of one switch. */
void switches_finish(struct model *model);

/* ---- waits.c ---- */

void waits_add(struct builder *builder, const struct waffle_rec_wait *rec);
void waits_add_memory(struct builder *builder, const struct waffle_rec_memory *rec);
void waits_add_lock_refusal(struct builder *builder, const struct waffle_rec_lock_refusal *rec);
void waits_add_late_sleep(struct builder *builder, const struct waffle_rec_late_sleep *rec);
void waits_add_request_failure(struct builder *builder,
			       const struct waffle_rec_request_failure *rec);
void waits_add_io_limit(struct builder *builder, const struct waffle_rec_io_limit *rec);
void waits_add_open(struct builder *builder, const struct waffle_rec_open_wait *rec);
void waits_add_wake(struct builder *builder, const struct waffle_rec_wake *rec);
void waits_add_fault(struct builder *builder, const struct waffle_rec_fault *rec);
void waits_add_io(struct builder *builder, const struct waffle_rec_io *rec);
void waits_add_signal(struct builder *builder, const struct waffle_rec_signal *rec);
void waits_add_quota(struct builder *builder, const struct waffle_rec_quota *rec);
void waits_add_stolen(struct builder *builder, const struct waffle_rec_stolen *rec);
void waits_add_sample(struct builder *builder, const struct waffle_rec_sample *rec);
void waits_add_frequency(struct builder *builder, const struct waffle_rec_frequency *rec);
/* Sorts the arrays. */
void waits_finish(struct model *model);

/* ---- spans.c ---- */

void spans_add_hit(struct builder *builder, const struct waffle_rec_hit *hit);
/* Whether a hit of a session's site says that the GPU is a stand-in. */
bool spans_hit_is_simulated(const struct builder *builder, const struct waffle_rec_hit *hit);
void spans_add_end(struct builder *builder, const struct waffle_rec_span_end *end);
void spans_add_return(struct builder *builder, const struct waffle_rec_return *end);
/* Closes open spans, sorts spans and events, resolves parents and links. */
void spans_finish(struct builder *builder);

/* ---- frames.c ---- */

/* Stores values and reserves `room` words behind them. MODEL_NONE if there is neither. */
uint32_t frames_add(struct model *model, const void *values, uint32_t bytes, uint32_t room);
/* Appends values to a frame. Returns where the frame is then: it moves if they do not fit. */
uint32_t frames_append(struct model *model, uint32_t old, const void *values, uint32_t bytes);

/* ---- stacks.c ---- */

void stacks_add(struct builder *builder, const struct waffle_rec_stack *stack);
void stacks_finish(struct model *model);

/* ---- calls.c ---- */

/* Finds the parents of calls. Spans and events must be sorted. */
void calls_find_parents(struct model *model);

/* ---- names.c ---- */

/* Replaces addresses of code by names. */
void names_resolve(struct model *model);

/* ---- templates.c ---- */

/* Gives each call whose name is a template a site with the filled-in name. Filters compare with the
 * template, so this runs after them. */
void templates_fill(struct model *model);

/* ---- links.c ---- */

/* Adds the links in a frame's values. Their targets are ids until links_resolve(). */
void links_add(struct model *model, enum model_node_kind from_kind, uint32_t from, uint32_t site,
	       uint32_t frame);
void links_resolve(struct model *model);
/* Sorts the links, so that those from one span or event are adjacent. */
void links_order(struct model *model);

/* ---- gpu_links.c ---- */

/* Adds the links between GPU calls of a model. Needs complete spans and events. */
struct model_gpu;
void gpu_links_add(struct model *model, const struct model_gpu *gpu);

/* ---- comm_links.c ---- */

/* Adds the links between the ranks' calls of a collective or message. Sets
 * model.unaligned_collectives. */
struct model_comm;
void comm_links_add(struct model *model, const struct model_comm *comm);

/* ---- filter_apply.c ---- */

/* Removes what the filter rejects. Spans and events must be sorted. */
void filter_apply(struct builder *builder);
/* Notes which spans builder->where selects. The indexes of spans must be final. */
void filter_select(struct builder *builder);

/* ---- walk.c ---- */

/* Computes running, runnable and blocked time of threads and spans. */
void walk_account(struct model *model);

#endif
