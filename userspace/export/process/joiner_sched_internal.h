/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the scheduler did with a thread, from the switches between its records. This is the state
 * machine of model/sched_internal.h without the rules that need a whole capture. A state that no
 * record proves is unknown.
 */
#ifndef WAFFLE_EXPORT_PROCESS_JOINER_SCHED_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_JOINER_SCHED_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/record.h"

struct joiner_sched {
	uint8_t state;                           /* enum waffle_thread_state; 0: unknown */
	uint64_t since;                          /* begin of the state */
	uint64_t known_since;                    /* the states are known from then on */
	uint64_t sum[WAFFLE_THREAD_BLOCKED + 1]; /* ns per state, up to `since` */
};

/* Times of a thread since it was first seen, up to a moment. */
struct joiner_times {
	uint64_t running_ns, runnable_ns;
};

/* The thread leaves a CPU, or gets one. */
void joiner_sched_out(struct joiner_sched *sched, const struct waffle_rec_switch *rec);
void joiner_sched_in(struct joiner_sched *sched, const struct waffle_rec_switch *rec);
/* A site of the thread was hit, so it runs. */
void joiner_sched_hit(struct joiner_sched *sched, uint64_t ts);
/* Records of the scheduler were lost, so the state is unknown. */
void joiner_sched_lost(struct joiner_sched *sched);
struct joiner_times joiner_sched_times(const struct joiner_sched *sched, uint64_t ts);
/* Whether the states are known from `since` until now. */
bool joiner_sched_known(const struct joiner_sched *sched, uint64_t since);

#endif
