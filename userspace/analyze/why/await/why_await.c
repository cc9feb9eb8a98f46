// SPDX-License-Identifier: Apache-2.0
/* Explains waits for GPUs and ranks: finds the call that a thread is in, and continues with the
 * last rank to arrive. */
#include "analyze/why/await/why_await.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "analyze/why/parts/why_sums.h"
#include "analyze/why/why_verdict.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/search.h"

/* Number of calls above which the cache is cleared between two instances. */
#define SYNCS_KEPT 4096

static void add_init(struct why_awaits *awaits, const struct model *model, uint32_t span)
{
	struct why_init init = {span, model->spans.data[span].end_ts};

	if (awaits->inits.len && awaits->inits.data[awaits->inits.len - 1].until_ts > init.until_ts)
		init.until_ts = awaits->inits.data[awaits->inits.len - 1].until_ts;
	vec_add(&awaits->inits, init);
}

static int completion_compare(const void *left, const void *right)
{
	const struct why_completion *a = left, *b = right;

	if (a->span != b->span)
		return a->span < b->span ? -1 : 1;
	return a->collective < b->collective ? -1 : a->collective > b->collective;
}

/* Finds the calls that complete nonblocking calls of MPI. */
static void find_completions(struct why_awaits *awaits)
{
	for (size_t i = 0; i < model_collective_count(awaits->comm); i++) {
		const struct model_collective *collective = model_collective_at(awaits->comm, i);

		for (uint32_t k = 0; collective->mpi && k < collective->count; k++) {
			struct why_completion add = {collective->calls[k].end_span, (uint32_t)i};

			if (add.span != MODEL_NONE)
				vec_add(&awaits->completions, add);
		}
	}
	if (awaits->completions.len)
		qsort(awaits->completions.data, awaits->completions.len,
		      sizeof(*awaits->completions.data), completion_compare);
}

/* Finds out whether the capture has calls of MPI, whether several processes made them, and which
 * ranks these have. */
static void find_mpi(struct why_awaits *awaits, const struct model *model)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < model->spans.len && !awaits->mpi_ranks; i++) {
		const struct model_span *span = &model->spans.data[i];
		uint32_t pid = model->threads.data[span->thread].pid;

		if (!site_role_is_mpi(model_site(model, span->site)->role))
			continue;
		awaits->mpi_ranks = awaits->mpi && pid != first;
		awaits->mpi = true;
		first = pid;
	}
	for (size_t i = 0; awaits->mpi && i < model->processes.len; i++)
		if (model->processes.data[i].rank != MODEL_NONE)
			map_put(&awaits->ranks, model->processes.data[i].rank, 0);
}

void why_await_init(struct why_awaits *awaits, const struct model *model,
		    const struct gpu_timeline *timeline)
{
	*awaits = (struct why_awaits){.gpu = model_gpu_new(model)};
	awaits->comm = model_comm_new(model, awaits->gpu);
	if (awaits->gpu && !timeline)
		timeline = awaits->own_timeline = gpu_timeline_new(model);
	awaits->timeline = awaits->gpu ? timeline : NULL;
	find_completions(awaits);
	find_mpi(awaits, model);
	if (!awaits->gpu && !awaits->mpi)
		return;
	awaits->steps_left = WHY_AWAIT_STEPS * (uint64_t)(model->spans.len + model->events.len + 1);
	awaits->calls = memory_get((model->spans.len + 1) * sizeof(*awaits->calls));
	for (uint32_t i = 0; i < model->spans.len; i++) {
		unsigned role = model_site(model, model->spans.data[i].site)->role;
		uint32_t parent = model->spans.data[i].parent;

		/* A parent's index is less than its child's. */
		awaits->calls[i] = parent < i ? awaits->calls[parent] : MODEL_NONE;
		if (why_await_role_waits(role))
			awaits->calls[i] = i;
		if (role == SITE_ROLE_COMM_INIT && !model_gpu_failed(awaits->gpu, i))
			add_init(awaits, model, i);
	}
}

void why_await_free(struct why_awaits *awaits)
{
	gpu_timeline_free(awaits->own_timeline);
	model_comm_free(awaits->comm);
	model_gpu_free(awaits->gpu);
	map_free(&awaits->sync_of);
	map_free(&awaits->ranks);
	map_free(&awaits->host_threads);
	vec_free(&awaits->syncs);
	vec_free(&awaits->arrivals);
	vec_free(&awaits->inits);
	vec_free(&awaits->completions);
	free(awaits->calls);
}

void why_await_forget(struct why_awaits *awaits)
{
	if (awaits->syncs.len < SYNCS_KEPT)
		return;
	map_free(&awaits->sync_of);
	awaits->sync_of = (struct map){0};
	awaits->syncs.len = 0;
	awaits->arrivals.len = 0;
}

/* ---- the current call of a thread ---- */

/* The innermost call that may wait and is not known to have failed. The result holds until *until
 * at least. */
static uint32_t call_at(const struct why_walk *walk, uint32_t thread, uint64_t ts, uint64_t *until)
{
	const struct model *model = walk->model;
	uint32_t at = why_intervals_span(&walk->intervals, thread, ts, until);

	for (unsigned nested = 0; at < model->spans.len && nested < WHY_AWAIT_NESTED; nested++) {
		const struct model_span *span;

		walk->why->searched++;
		at = walk->awaits.calls[at];
		if (at == MODEL_NONE)
			break;
		span = &model->spans.data[at];
		if (span->thread == thread && span->start_ts <= ts && span->end_ts > ts &&
		    !model_gpu_failed(walk->awaits.gpu, at))
			return at;
		at = span->parent;
	}
	return MODEL_NONE;
}

/* Index in syncs. */
static uint32_t sync_of(struct why_walk *walk, uint32_t span)
{
	struct why_awaits *awaits = &walk->awaits;
	uint32_t found = map_get(&awaits->sync_of, span);
	struct why_sync sync = {.span = span,
				.end = WHY_CAUSE_COUNT,
				.launch_thread = MODEL_NONE,
				.done_ts = UINT64_MAX};

	if (found != MAP_NONE)
		return found;
	why_await_sync_make(walk, &sync);
	found = (uint32_t)awaits->syncs.len;
	vec_add(&awaits->syncs, sync);
	map_put(&awaits->sync_of, span, found);
	return found;
}

/* The arrival that a call waits for at ts; MODEL_NONE: all have arrived. */
static uint32_t arrival_after(const struct why_awaits *awaits, const struct why_sync *sync,
			      uint64_t ts)
{
	uint32_t end = sync->arrival + sync->arrival_count;
	uint32_t after = lower_bound_in(sync->arrival, end, i, awaits->arrivals.data[i].ts <= ts);

	return after < end ? after : MODEL_NONE;
}

/* While another thread runs a host function for which the call may wait, it waits for that. */
static uint64_t cut_at_host(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
			    struct why_await *await)
{
	uint32_t name = await->sync == MODEL_NONE || await->arrival != MODEL_NONE
				? 0
				: walk->awaits.syncs.data[await->sync].host_name;
	uint32_t host;

	if (!name)
		return to;
	host = why_await_host_thread(walk, walk->model->threads.data[thread].pid, name);
	if (host != MODEL_NONE && host != thread && !why_walk_is_on_path(walk, host) &&
	    why_await_host_runs(walk, host, from, &to))
		await->host = host;
	return to;
}

uint64_t why_await_cut(struct why_walk *walk, uint32_t thread, uint64_t from, uint64_t to,
		       struct why_await *await)
{
	struct why_awaits *awaits = &walk->awaits;
	const struct why_sync *sync = NULL;
	uint64_t until, at;
	uint32_t call;

	*await = WHY_AWAIT_NOTHING;
	if (!awaits->calls)
		return to;
	call = call_at(walk, thread, from, &until);
	if (call != MODEL_NONE) {
		await->sync = sync_of(walk, call);
		sync = &awaits->syncs.data[await->sync];
		await->arrival = arrival_after(awaits, sync, from);
		if (await->arrival != MODEL_NONE && awaits->arrivals.data[await->arrival].ts < to)
			to = awaits->arrivals.data[await->arrival].ts;
		if (await->arrival == MODEL_NONE &&
		    ((sync->end == WHY_CAUSE_COUNT && !sync->polls) || sync->done_ts <= from))
			*await = WHY_AWAIT_NOTHING;
		else if (await->arrival == MODEL_NONE && sync->done_ts < to)
			to = sync->done_ts;
		to = cut_at_host(walk, thread, from, to, await);
	}
	/* Stop at the arrival: otherwise each arrival would search the whole time again. */
	for (at = until; at < to && call_at(walk, thread, at, &until) == call;)
		at = until;
	return at < to ? at : to;
}

bool why_await_spins(const struct why_walk *walk, const struct why_await *await)
{
	return await->sync != MODEL_NONE && walk->awaits.syncs.data[await->sync].spins;
}

bool why_await_polls(const struct why_walk *walk, const struct why_await *await)
{
	return await->sync != MODEL_NONE && await->arrival == MODEL_NONE &&
	       walk->awaits.syncs.data[await->sync].polls;
}

bool why_await_has_times(const struct why_walk *walk, const struct why_await *await)
{
	return await->arrival == MODEL_NONE && await->sync != MODEL_NONE &&
	       walk->awaits.syncs.data[await->sync].done_ts != UINT64_MAX;
}

bool why_await_waits_for_rank(const struct why_walk *walk, const struct why_await *await)
{
	return await->arrival != MODEL_NONE && walk->awaits.syncs.data[await->sync].mpi;
}

bool why_await_may_wait_for_rank(const struct why_walk *walk, const struct why_await *await)
{
	return (why_await_spins(walk, await) || why_await_polls(walk, await)) &&
	       walk->awaits.syncs.data[await->sync].mpi;
}

/* ---- ranks ---- */

/* "rank 2 in ncclAllReduce"; `seq` adds " (seq 17)". */
static uint32_t arrival_text(struct why_walk *walk, const struct why_arrival *arrival,
			     const char *before, bool seq)
{
	const char *name = model_site(walk->model, arrival->site)->name;
	char text[256], rank[32] = "another rank";
	int len;

	if (arrival->rank != MODEL_NONE)
		snprintf(rank, sizeof(rank), "rank %" PRIu32, arrival->rank);
	if (arrival->span == MODEL_NONE)
		len = snprintf(text, sizeof(text), "%s%s, which has not come to %s", before, rank,
			       name);
	else if (seq && arrival->collective && arrival->collective->from == MODEL_NONE)
		len = snprintf(text, sizeof(text), "%s%s in %s (seq %" PRIu64 ")", before, rank,
			       name, arrival->collective->seq);
	else
		len = snprintf(text, sizeof(text), "%s%s in %s", before, rank, name);
	if (len >= (int)sizeof(text))
		len = sizeof(text) - 1;
	return strtab_put(walk->why->texts, text, (size_t)len);
}

/* The chain continues with what the last rank did before it arrived. */
static struct why_verdict rank_verdict(struct why_walk *walk, const struct why_arrival *arrival,
				       enum why_grade grade)
{
	struct why_step *step = &walk->path[walk->depth - 1];
	uint32_t thread = arrival->thread;
	struct why_link link = {.kind = WAIT_COLLECTIVE,
				.grade = why_grade_least(grade, arrival->grade),
				.object = arrival_text(walk, arrival, "", false)};

	step->gpu = true;
	step->object = 0;
	step->by = thread;
	step->interrupt = false;
	step->last_rank = true;
	step->call_ts = arrival->span == MODEL_NONE ? 0 : arrival->ts;
	step->call_thread = thread;
	step->call_span = arrival->span;
	if (!walk->no_chains)
		step->meaning = arrival_text(walk, arrival, "waits for ", true);
	if (walk->depth >= WHY_DEPTH_MAX)
		return why_verdict_end(walk, WHY_UNKNOWN, WHY_GRADE_UNKNOWN, MODEL_NONE, 0);
	/* A rank that is on the path waits for this thread itself, so no more is known. */
	if (why_walk_is_on_path(walk, thread) || !model_is_traced(walk->model, thread))
		return why_verdict_end(walk, WHY_COLLECTIVE,
				       why_grade_least(link.grade, WHY_GRADE_LIKELY), thread,
				       link.object);
	return (struct why_verdict){.kind = WHY_VERDICT_FOLLOW, .thread = thread, .link = link};
}

/* Marks a step as a wait for work on a stream. */
static void step_set(struct why_step *step, const struct why_sync *sync)
{
	step->gpu = true;
	step->object = 0;
	step->meaning = sync->meaning;
	step->call_ts = sync->launch_ts;
	step->call_thread = sync->launch_thread;
	step->call_span = sync->launch_span;
}

uint32_t why_await_host(struct why_walk *walk, const struct why_await *await)
{
	const struct why_sync *sync = &walk->awaits.syncs.data[await->sync];

	if (await->arrival != MODEL_NONE || sync->end != WHY_USER_WORK || !sync->launch_ts)
		return 0;
	step_set(&walk->path[walk->depth - 1], sync);
	return sync->object;
}

/* The chain continues with the thread that runs the host function. */
static struct why_verdict host_verdict(struct why_walk *walk, const struct why_await *await,
				       enum why_grade grade)
{
	const struct why_sync *sync = &walk->awaits.syncs.data[await->sync];
	struct why_step *step = &walk->path[walk->depth - 1];
	struct why_link link = {.kind = WAIT_OTHER,
				.grade = why_grade_least(grade, WHY_GRADE_LIKELY),
				.object = sync->host_object};

	step->gpu = step->host = true;
	step->object = 0;
	step->by = await->host;
	step->interrupt = false;
	step->meaning = sync->host_meaning;
	step->call_ts = 0;
	return (struct why_verdict){
		.kind = WHY_VERDICT_FOLLOW, .thread = await->host, .link = link};
}

struct why_verdict why_await_verdict(struct why_walk *walk, const struct why_await *await,
				     enum why_grade grade)
{
	const struct why_sync *sync = &walk->awaits.syncs.data[await->sync];
	struct why_step *step = &walk->path[walk->depth - 1];
	uint32_t thread = step->thread, span = step->span;

	if (await->arrival != MODEL_NONE)
		return rank_verdict(walk, &walk->awaits.arrivals.data[await->arrival], grade);
	if (await->host != MODEL_NONE && walk->depth < WHY_DEPTH_MAX)
		return host_verdict(walk, await, grade);
	step_set(step, sync);
	if (sync->end == WHY_COLLECTIVE || sync->end == WHY_USER_WORK) {
		thread = span = MODEL_NONE;
	} else if (sync->launch_ts) {
		thread = sync->launch_thread;
		span = sync->launch_span;
	}
	return (struct why_verdict){
		.kind = WHY_VERDICT_END,
		.cause = sync->end,
		.grade = why_grade_least(grade, sync->grade),
		.thread = thread,
		.span = span,
		.object = sync->object,
	};
}
