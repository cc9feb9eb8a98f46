/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread waits for in a call that waits for a GPU or for other ranks. The role of the call
 * says that it waits, no matter whether the driver blocks or spins meanwhile. The call first waits
 * for the ranks that have not arrived in the collectives on its stream, one after the other. Then
 * it waits for the GPU.
 */
#ifndef WAFFLE_ANALYZE_WHY_AWAIT_WHY_AWAIT_H
#define WAFFLE_ANALYZE_WHY_AWAIT_WHY_AWAIT_H

#include <stdio.h>

#include "analyze/why/why_await_types.h"

struct why_verdict;
struct why_walk;

/* `timeline`: of the model; NULL: we make it if we need it. */
void why_await_init(struct why_awaits *awaits, const struct model *model,
		    const struct gpu_timeline *timeline);
void why_await_free(struct why_awaits *awaits);
/* Empties the cache of calls if it is large. To be called between two instances. */
void why_await_forget(struct why_awaits *awaits);

/* Takes up to `count` steps of a search; in why_await_gather.c. Returns how many may be taken. */
uint64_t why_await_steps(struct why_walk *walk, uint64_t count);

/* Sets *await to what the thread waits for at `from`. Returns until when that is the same, at most
 * `to`. */
uint64_t why_await_cut(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
		       struct why_await *await);
/* Whether the thread also waits while it is on a CPU. */
bool why_await_spins(const struct why_walk *walk, const struct why_await *await);
/* Whether the GPU's times show that the call could not return yet, whatever the thread did. */
bool why_await_has_times(const struct why_walk *walk, const struct why_await *await);
/* Whether the thread waits for a rank in a call of MPI. The call cannot end before that rank has
 * arrived, so it does not matter what the thread does meanwhile: poll, block or be preempted. */
bool why_await_waits_for_rank(const struct why_walk *walk, const struct why_await *await);
/* Whether it is unknown if a call of MPI polls for other ranks. Then its time on a CPU need not be
 * work of its own. */
bool why_await_polls(const struct why_walk *walk, const struct why_await *await);
/* Whether a call of MPI may wait for a rank of which nobody knows when it arrived. Until then it
 * does not matter what the thread does. */
bool why_await_may_wait_for_rank(const struct why_walk *walk, const struct why_await *await);
/* If the wait is for a host function on a stream, describes it in the last step of the path and
 * returns its text. 0: the wait is for something else. */
uint32_t why_await_host(struct why_walk *walk, const struct why_await *await);
/* Explains the last step of the path, which is a wait in such a call. `grade` is the grade of the
 * chain before that step. */
struct why_verdict why_await_verdict(struct why_walk *walk, const struct why_await *await,
				     enum why_grade grade);

/* ---- why_await_sync.c ---- */

/* Whether calls of a role may wait. */
bool why_await_role_waits(unsigned role);
/* Finds what the call sync->span waits for. */
void why_await_sync_make(struct why_walk *walk, struct why_sync *sync);

/* ---- why_await_host.c ---- */

/* The thread of a process that, as its samples show, runs nothing but a function, whose name is a
 * text of why.texts. MODEL_NONE: there is none. */
uint32_t why_await_host_thread(struct why_walk *walk, uint32_t pid, uint32_t name);
/* Whether a thread runs at `from`. If that changes before *to, *to becomes the time of the change.
 */
bool why_await_host_runs(const struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t *to);

/* ---- why_await_times.c ---- */

/* Whether the GPU's times were recorded in a process. */
bool why_await_has_operations(const struct why_walk *walk, uint32_t pid);
/* Whether a call waited for operations with times. */
bool why_await_timed(const struct why_walk *walk, uint32_t span);
/* If the GPU's times show until when the call waited, sets sync->done_ts. Unless `ranks` or a
 * collective may have been awaited, also describes in `sync` which operations ran meanwhile, and
 * returns true. `host`: a host function may have been awaited, which may have no times. */
bool why_await_by_times(struct why_walk *walk, struct why_sync *sync, bool ranks, bool host);

/* ---- why_await_text.c ---- */

void why_await_put_op(FILE *out, const struct model *model, const struct model_gpu_op *op);
/* The length of a function's name without its parameters, the last group in brackets. */
size_t why_await_function_len(const char *name, size_t len);
/* Writes "kernel" or another word, and a function's name without its return type and parameters. */
void why_await_put_function(FILE *out, const char *what, const struct value *value);
void why_await_put_stream(FILE *out, uint64_t stream);
/* Size of a copy or set; false: unknown. */
bool why_await_bytes(const struct model *model, const struct model_gpu_op *op, uint64_t *bytes);

#endif
