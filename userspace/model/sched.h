/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of threads as time goes by. It is fed in the order of times; a thread is running from
 * the switch that brings it in to the one that takes it out, then blocked until it is woken, or
 * runnable at once if it was preempted, and runnable until it is brought in again. What is not told
 * by a record is unknown, never guessed.
 */
#ifndef WAFFLE_MODEL_SCHED_H
#define WAFFLE_MODEL_SCHED_H

#include "model/model.h"

struct sched_thread {
	uint64_t since;       /* of the state; unknown: nothing was missed from here on */
	uint64_t known_since; /* the state is known from here on without a gap */
	uint64_t sum[WAFFLE_THREAD_BLOCKED + 1]; /* ns in each state, up to `since` */
	uint32_t by, args;
	uint16_t cpu, task_state;
	int16_t syscall;
	uint8_t state; /* enum waffle_thread_state; 0: unknown */
	uint8_t wake;  /* runnable: WAFFLE_SWITCH_WOKEN and who did it; 0: preempted */
	bool assumed;  /* as read from outside, not seen in a switch */
	bool ever_known;
};

struct sched {
	struct sched_thread *threads; /* one for each of the model's */
	size_t count;
	bool blind;             /* records are being lost */
	model_interval_fn each; /* NULL: nobody wants intervals */
	void *arg;
	int stopped; /* what `each` returned, if not 0 */
};

bool sched_init(struct sched *sched, const struct model *model, model_interval_fn each, void *arg);
void sched_free(struct sched *sched);

void sched_switch(struct sched *sched, const struct model_switch *sw);
/*
 * The moment at which `sw->next` was woken. Calling this at the right time makes intervals come in
 * the order of their ends; without it the wake-up is taken from the switch that follows it.
 */
void sched_wake(struct sched *sched, const struct model_switch *sw);
void sched_state(struct sched *sched, const struct model_state *state);
/* The thread runs its own code: it hit a site. */
void sched_hit(struct sched *sched, uint32_t thread, uint64_t ts);
/* The thread has exited without a last switch. */
void sched_exit(struct sched *sched, uint32_t thread, uint64_t ts);
/* Records are lost from here on; up to here. */
void sched_loss_begin(struct sched *sched, uint64_t ts);
void sched_loss_end(struct sched *sched, uint64_t ts);
/* The end of the capture. */
void sched_finish(struct sched *sched, uint64_t ts);

/* Time spent in a state up to `ts`, which is not before anything the thread was fed. */
static inline uint64_t sched_sum(const struct sched_thread *thread, enum waffle_thread_state state,
				 uint64_t ts)
{
	return thread->sum[state] +
	       (thread->state == state && ts > thread->since ? ts - thread->since : 0);
}

/* Whether the state is known all the way from `since` to now. */
static inline bool sched_known(const struct sched_thread *thread, uint64_t since)
{
	return thread->state && thread->known_since <= since;
}

#endif
