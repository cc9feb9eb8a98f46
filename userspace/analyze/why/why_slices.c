// SPDX-License-Identifier: Apache-2.0
/*
 * Explains the slices of a capture on several threads. Each thread has a walk of its own, with its
 * texts and caches; they share the model, the marks and the symbolizer. Slices are taken and ended
 * in order, so that the result does not depend on the number of threads:
 *
 *	thread 1:  slice 0 -----------> end 0, slice 3 ------> …
 *	thread 2:  slice 1 ------> (waits)  end 1, slice 4 ---> …
 */
#include <pthread.h>
#include <stdlib.h>

#include "analyze/why/walk/why_instance.h"
#include "analyze/why/walk/why_walk.h"
#include "analyze/why/why_each_internal.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"
#include "util/threads.h"

#define THREADS_MAX 3 /* beside the calling one */

struct crew {
	const struct model *model;
	const struct model_marks *marks;
	const struct why_slice_fns *fns;
	void *arg;
	/* The lock protects what follows. */
	pthread_mutex_t lock;
	pthread_cond_t turn;
	uint32_t next;         /* the span at which the next slice begins */
	uint64_t taken, ended; /* numbers of slices */
	int result;            /* non-zero: nothing more is to be done */
};

/* A thread beside the calling one. */
struct crew_member {
	struct crew *crew;
	struct why_walk walk;
	pthread_t thread;
};

/* Takes the next slice and its number. False: there is none. */
static bool slice_take(struct crew *crew, struct why_batch *batch, uint64_t *number)
{
	bool found;

	pthread_mutex_lock(&crew->lock);
	found = !crew->result && crew->next < crew->model->spans.len;
	if (found) {
		*batch = why_batch_from(crew->model, crew->next);
		*number = crew->taken++;
		crew->next = batch->end;
	}
	pthread_mutex_unlock(&crew->lock);
	return found;
}

/* Ends a slice when it is its turn. */
static void slice_end(struct crew *crew, const struct why *why, void *slice, uint64_t number)
{
	pthread_mutex_lock(&crew->lock);
	while (crew->ended != number)
		pthread_cond_wait(&crew->turn, &crew->lock);
	if (!crew->result)
		crew->result = crew->fns->end(why, slice, crew->arg);
	crew->fns->free(slice);
	crew->ended++;
	pthread_cond_broadcast(&crew->turn);
	pthread_mutex_unlock(&crew->lock);
}

static void crew_work(struct crew *crew, struct why_walk *walk)
{
	struct why_batch batch;
	uint64_t number;

	while (slice_take(crew, &batch, &number)) {
		void *slice = crew->fns->begin(crew->arg);

		sample_places_free(walk->why->sample_places);
		walk->why->sample_places = NULL;
		why_batch_explain(walk, crew->marks, &batch, crew->fns->each, slice);
		slice_end(crew, walk->why, slice, number);
	}
}

static void *member_main(void *arg)
{
	struct crew_member *member = arg;

	crew_work(member->crew, &member->walk);
	return NULL;
}

/* Makes a walk that is ready for the first slice, as `first` is. Names of system calls are cached
 * by now (why_walk_prepare()), so threads only read that cache. */
static void member_prepare(struct crew_member *member, const struct why_walk *first)
{
	struct why_walk *walk = &member->walk;

	why_walk_begin(walk, first->model, first->names);
	walk->no_chains = true;
	why_walk_prepare(walk, first, NULL);
	for (size_t i = 0; i < walk->intervals.count; i++)
		walk->intervals.threads[i].spins = first->intervals.threads[i].spins;
}

/* How many threads to start: one for each further slice. The searches for GPUs and ranks share one
 * budget, so they stay on one thread. */
static unsigned crew_size(const struct why_walk *first)
{
	size_t slices = first->model->switches.len / WHY_EACH_SWITCHES;

	if (first->awaits.gpu || first->awaits.comm || first->awaits.mpi)
		return 0;
	return threads_beside(slices < THREADS_MAX ? slices : THREADS_MAX);
}

static void crew_run(struct crew *crew, struct why_walk *walk)
{
	unsigned wanted = crew_size(walk), count = 0;
	struct crew_member *members = memory_zeroed(wanted, sizeof(*members));

	for (unsigned i = 0; i < wanted; i++) {
		members[i].crew = crew;
		member_prepare(&members[i], walk);
	}
	while (count < wanted &&
	       !pthread_create(&members[count].thread, NULL, member_main, &members[count]))
		count++;
	crew_work(crew, walk);
	for (unsigned i = 0; i < count; i++)
		pthread_join(members[i].thread, NULL);
	for (unsigned i = 0; i < wanted; i++) {
		struct why *why = members[i].walk.why;

		why_walk_free(&members[i].walk);
		why_free(why);
	}
	free(members);
}

static int slices_explain(struct why_walk *walk, const struct model_marks *marks,
			  const struct why_slice_fns *fns, void *arg)
{
	struct crew crew = {.model = walk->model,
			    .marks = marks,
			    .fns = fns,
			    .arg = arg,
			    .lock = PTHREAD_MUTEX_INITIALIZER,
			    .turn = PTHREAD_COND_INITIALIZER};

	crew_run(&crew, walk);
	pthread_mutex_destroy(&crew.lock);
	pthread_cond_destroy(&crew.turn);
	return crew.result;
}

int why_slices(const struct model *model, struct stack_names *names,
	       const struct gpu_timeline *timeline, const struct why_slice_fns *fns, void *arg,
	       struct error *err)
{
	struct model_marks *marks;
	struct why_walk walk;
	struct why *why;
	int result = why_batches_begin(&why, &walk, &marks, model, names, timeline, err);

	if (!result)
		result = slices_explain(&walk, marks, fns, arg);
	model_marks_free(marks);
	why_walk_free(&walk);
	why_free(why);
	return result;
}
