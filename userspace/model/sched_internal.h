/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State machine of thread states. Its input must come in order of time.
 *
 *	             switch in
 *	  RUNNABLE ------------> RUNNING
 *	     ^  ^                 |   |
 *	     |  '--- preempted ---'   | switch out
 *	     |                        v
 *	     '------- woken ------ BLOCKED
 *
 * A state that no record proves is unknown, never guessed: that is the initial state, and the state
 * after dropped records or an exit.
 */
#ifndef WAFFLE_MODEL_SCHED_INTERNAL_H
#define WAFFLE_MODEL_SCHED_INTERNAL_H

#include "model/model.h"

struct sched_thread {
	/* Begin of the state. In the unknown state, nothing was missed from here on, nor from the
	 * end of the host's last loss on. */
	uint64_t since;
	uint64_t known_since;                    /* the state is known without a gap from here on */
	uint64_t sum[WAFFLE_THREAD_BLOCKED + 1]; /* ns per state, up to `since` */
	uint32_t by, args;
	uint16_t cpu, task_state;
	uint16_t host;
	int16_t syscall;
	uint8_t state; /* enum waffle_thread_state; 0: unknown */
	uint8_t wake;  /* runnable: WAFFLE_SWITCH_WOKEN with WAKER flags; 0: preempted */
	bool assumed;  /* read from outside, not seen in a switch */
	bool ever_known;
	bool listed; /* in the list of its host */
};

struct sched_host {
	VEC(uint32_t) known; /* threads whose state may be known */
	uint64_t lost_until; /* end of the last loss; 0: none so far */
	bool blind;          /* records are being dropped */
};

struct sched {
	struct sched_thread *threads; /* one for each thread of the model */
	size_t count;
	struct sched_host *hosts;
	uint32_t host_count;
	model_interval_fn each; /* NULL: no intervals wanted */
	void *arg;
	int stopped; /* non-zero return of `each` */
};

void sched_init(struct sched *sched, const struct model *model, model_interval_fn each, void *arg);
void sched_free(struct sched *sched);

void sched_switch(struct sched *sched, const struct model_switch *sw);
/*
 * `sw->next` was woken at sw->wake_ts. If the caller reports wake-ups in order of time, the
 * intervals come in the order of their ends. Otherwise the switch-in that follows implies the
 * wake-up.
 */
void sched_wake(struct sched *sched, const struct model_switch *sw);
void sched_state(struct sched *sched, const struct model_state *state);
/* The thread ran its own code: it reached a site. */
void sched_hit(struct sched *sched, uint32_t thread, uint64_t ts);
/* The thread exited without a last switch. */
void sched_exit(struct sched *sched, uint32_t thread, uint64_t ts);
/* The thread is not recorded any more. */
void sched_unrecorded(struct sched *sched, uint32_t thread, uint64_t ts);
/* Records of a host are dropped from the first ts on, up to the second. */
void sched_loss_begin(struct sched *sched, uint32_t host, uint64_t ts);
void sched_loss_end(struct sched *sched, uint32_t host, uint64_t ts);
/* Ends all states at the end of the capture. */
void sched_finish(struct sched *sched, uint64_t ts);

/* Time spent in a state up to `ts`, which must not precede the thread's last input. */
static inline uint64_t sched_sum(const struct sched_thread *thread, enum waffle_thread_state state,
				 uint64_t ts)
{
	return thread->sum[state] +
	       (thread->state == state && ts > thread->since ? ts - thread->since : 0);
}

/* Whether the state is known without a gap from `since` until now. */
static inline bool sched_known(const struct sched_thread *thread, uint64_t since)
{
	return thread->state && thread->known_since <= since;
}

#endif
