/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the processes of a job stop being recorded. From then on the states of their threads are
 * unknown, until a later capture records them.
 *
 * A process may have many threads and many captures, so nothing here is kept, or done, for each
 * pair of a thread and a capture. Each process has a list of its threads that may have a known
 * state. At the end of a capture only these are visited.
 */
#ifndef WAFFLE_MODEL_RECORDED_ENDS_INTERNAL_H
#define WAFFLE_MODEL_RECORDED_ENDS_INTERNAL_H

#include "model/model.h"
#include "model/order.h"
#include "model/sched_internal.h"

struct recorded_ends {
	/* In order of time; `index` is the process's first entry in model.recorded. */
	VEC(struct order_item) ends;
	/* Of each thread, all NULL if there are no ends: its process, as above, or MODEL_NONE if no
	 * end concerns it; and the next thread of its list. */
	uint32_t *process, *next;
	uint32_t *first; /* of each entry of model.recorded: the first thread, or MODEL_NONE */
	bool *listed;    /* of each thread */
};

void recorded_ends_find(struct recorded_ends *ends, const struct model *model);
void recorded_ends_free(struct recorded_ends *ends);

/* To be called after an input of the state machine that may have made the state of a thread
 * known. */
static inline void recorded_ends_touch(struct recorded_ends *ends, uint32_t thread)
{
	uint32_t process;

	if (!ends->process || thread == MODEL_NONE || ends->listed[thread])
		return;
	process = ends->process[thread];
	if (process == MODEL_NONE)
		return;
	ends->listed[thread] = true;
	ends->next[thread] = ends->first[process];
	ends->first[process] = thread;
}

/* Applies the end with this index. */
void recorded_ends_apply(struct recorded_ends *ends, size_t at, struct sched *sched);

#endif
