/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the processes of a job were recorded. Each capture of the job begins and ends at its own
 * time, and what its threads did before and after is unknown. A model of one capture needs none of
 * this, because all its processes share one begin and one end.
 */
#ifndef WAFFLE_MODEL_CAPTURES_INTERNAL_H
#define WAFFLE_MODEL_CAPTURES_INTERNAL_H

#include "model/model.h"

/* Adds the captures of a reader that has several. */
void captures_add(struct model *model, const struct store_reader *reader);
/* Finds when each capture began to record the scheduler. Needs the states. */
void captures_find_sched(struct model *model);

/* The capture that recorded a thread at `ts`, else the next one, else the last. NULL: there is a
 * single capture, or the thread's process was not traced. */
const struct model_recorded *captures_at(const struct model *model, uint32_t thread, uint64_t ts);

/* The captures of a process, by time; *count is their number. NULL: none. */
const struct model_recorded *captures_of(const struct model *model, uint32_t pid, size_t *count);

#endif
