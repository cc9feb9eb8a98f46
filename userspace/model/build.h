/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of model/: what is needed while a model is built and not afterwards. Functions that add
 * return 0 or -ENOMEM; a record that makes no sense is counted in model.bad_records.
 */
#ifndef WAFFLE_MODEL_BUILD_H
#define WAFFLE_MODEL_BUILD_H

#include "model/model.h"
#include "model/windows.h"

/* What is kept of a thread beside its struct model_thread, at the same index. */
struct thread_build {
	uint64_t closed_ts; /* later records of the tid belong to its next incarnation; 0: open */
	uint32_t previous;  /* incarnation before this one, or MODEL_NONE */
};

struct site_build {
	uint16_t kind;
	bool has_keys, has_links, call;
	uint8_t return_words; /* that came with a return of it: as many are kept free behind the
				 values of the next begin */
};

/* The first word of what model.frames has of a span or event: bytes of values, and how many words
 * lie free behind them. */
#define FRAME_HEAD(bytes, room) ((uint64_t)(room) << 32 | (bytes))
#define FRAME_BYTES(head) ((uint32_t)(head))
#define FRAME_ROOM(head) ((uint32_t)((head) >> 32))

/* The name of a thread from a time on. */
struct thread_name {
	uint64_t ts;
	uint32_t thread, comm; /* comm in model.strings */
};

struct builder {
	struct model *model;
	const struct model_keep *keep; /* its filter is not NULL; NULL: all is kept */
	bool want_names, no_sched;     /* as the filter asks for */
	bool has_calls;
	VEC(struct thread_name) names; /* all that were told, if they are wanted */
	VEC(struct thread_build) threads;
	VEC(struct site_build) sites;
	struct map tids;     /* tid → its newest incarnation */
	struct map pids;     /* pid → process */
	struct map returned; /* id → values of a return whose begin has not come yet */
	uint64_t last_ts;
	uint64_t record; /* number in the file of the record that is being added */
};

/* ---- threads.c ---- */

/* The thread of a tid at a time, added if new. MODEL_NONE: out of memory. */
uint32_t threads_at(struct builder *builder, uint32_t tid, uint64_t ts);
/* The same for a record from the thread's own code, which does not run after its exit. */
uint32_t threads_running(struct builder *builder, uint32_t tid, uint32_t pid, uint64_t ts);
int threads_add_process(struct builder *builder, uint32_t pid, uint32_t ppid, const char *cmdline);
int threads_add_task(struct builder *builder, const struct waffle_rec_task *task);
int threads_add_fork(struct builder *builder, const struct waffle_rec_fork *fork);
int threads_add_exec(struct builder *builder, const struct waffle_rec_exit *exec);
int threads_add_exit(struct builder *builder, const struct waffle_rec_exit *gone);
/* Processes' main threads, and names for threads that have none. */
int threads_finish(struct builder *builder);
/* When a program that ran on a thread at a time was replaced or ended, or UINT64_MAX. */
uint64_t threads_end_after(const struct builder *builder, uint32_t thread, uint64_t ts);

/* ---- switches.c ---- */

int switches_add(struct builder *builder, const struct waffle_rec_switch *rec);
int switches_add_state(struct builder *builder, const struct waffle_rec_state *rec);
int switches_finish(struct builder *builder);

/* ---- waits.c ---- */

int waits_add(struct builder *builder, const struct waffle_rec_wait *rec);
int waits_add_wake(struct builder *builder, const struct waffle_rec_wake *rec);
int waits_add_fault(struct builder *builder, const struct waffle_rec_fault *rec);
int waits_add_io(struct builder *builder, const struct waffle_rec_io *rec);
int waits_add_signal(struct builder *builder, const struct waffle_rec_signal *rec);
int waits_add_quota(struct builder *builder, const struct waffle_rec_quota *rec);
int waits_add_stolen(struct builder *builder, const struct waffle_rec_stolen *rec);
int waits_add_frequency(struct builder *builder, const struct waffle_rec_frequency *rec);
/* Brings them in order. */
void waits_finish(struct model *model);

/* ---- spans.c ---- */

int spans_add_hit(struct builder *builder, const struct waffle_rec_hit *hit);
int spans_add_end(struct builder *builder, const struct waffle_rec_span_end *end);
int spans_add_return(struct builder *builder, const struct waffle_rec_return *end);
/* Ends what is open, brings spans and events in order, resolves parents and links. */
int spans_finish(struct builder *builder);

/* ---- frames.c ---- */

/* Keeps values, with room for more; *at: MODEL_NONE if there are none and no room is asked for. */
int frames_add(struct model *model, const void *values, uint32_t bytes, uint32_t room,
	       uint32_t *at);
/* Adds values behind those at *at, which becomes another place if they do not fit there. */
int frames_append(struct model *model, uint32_t *at, const void *values, uint32_t bytes);

/* ---- stacks.c ---- */

int stacks_add(struct builder *builder, const struct waffle_rec_stack *stack);
int stacks_finish(struct model *model);

/* ---- calls.c ---- */

/* The parents of calls, when spans and events are in their places. */
int calls_find_parents(struct model *model);

/* ---- names.c ---- */

/* Gives addresses of code their names. */
int names_resolve(struct model *model);

/* ---- templates.c ---- */

/* Gives calls whose name is a template sites of their own; a filter asks for the template. */
int templates_fill(struct model *model);

/* ---- links.c ---- */

/* Adds the links of a frame; their targets are ids until links_resolve(). */
int links_add(struct model *model, enum model_node_kind from_kind, uint32_t from, uint32_t site,
	      uint32_t frame);
int links_resolve(struct model *model);
/* Those of one span or event stand together. */
int links_order(struct model *model);

/* ---- gpu_links.c ---- */

/* Links between calls, which have all else that they will have. */
int gpu_links_add(struct model *model);

/* ---- keep.c ---- */

/* Leaves out what the filter does not pass, when spans and events are in their places. */
int keep_apply(struct builder *builder);

/* ---- walk.c ---- */

/* Running, runnable and blocked time of threads and spans. */
int walk_account(struct model *model);

#endif
