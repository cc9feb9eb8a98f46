// SPDX-License-Identifier: Apache-2.0
#include "export/process/joiner_sched_internal.h"

#define UNKNOWN 0

/* Ends the current state at `ts` and begins another. */
static void change(struct joiner_sched *sched, uint8_t state, uint64_t ts)
{
	if (sched->state == UNKNOWN && state != UNKNOWN)
		sched->known_since = ts;
	if (sched->state != UNKNOWN && ts > sched->since)
		sched->sum[sched->state] += ts - sched->since;
	sched->state = state;
	sched->since = ts;
}

void joiner_sched_out(struct joiner_sched *sched, const struct waffle_rec_switch *rec)
{
	bool preempted = rec->flags & WAFFLE_SWITCH_PREEMPTED || !(rec->prev_state & 0xff);

	/* Records are missing. */
	if (sched->state != WAFFLE_THREAD_RUNNING)
		sched->state = UNKNOWN;
	if (preempted)
		change(sched, WAFFLE_THREAD_RUNNABLE, rec->rec.ts);
	else if (rec->prev_state & (WAFFLE_TASK_DEAD | WAFFLE_TASK_ZOMBIE))
		change(sched, UNKNOWN, rec->rec.ts);
	else
		change(sched, WAFFLE_THREAD_BLOCKED, rec->rec.ts);
}

void joiner_sched_in(struct joiner_sched *sched, const struct waffle_rec_switch *rec)
{
	uint64_t wake_ts = rec->wake_ts > sched->since ? rec->wake_ts : sched->since;

	if (sched->state == WAFFLE_THREAD_RUNNING)
		sched->state = UNKNOWN;
	if (rec->flags & WAFFLE_SWITCH_WOKEN && sched->state == WAFFLE_THREAD_BLOCKED)
		change(sched, WAFFLE_THREAD_RUNNABLE,
		       wake_ts < rec->rec.ts ? wake_ts : rec->rec.ts);
	change(sched, WAFFLE_THREAD_RUNNING, rec->rec.ts);
}

void joiner_sched_hit(struct joiner_sched *sched, uint64_t ts)
{
	if (sched->state == UNKNOWN)
		change(sched, WAFFLE_THREAD_RUNNING, ts);
}

void joiner_sched_lost(struct joiner_sched *sched)
{
	sched->state = UNKNOWN;
}

static uint64_t sum_until(const struct joiner_sched *sched, uint8_t state, uint64_t ts)
{
	return sched->sum[state] +
	       (sched->state == state && ts > sched->since ? ts - sched->since : 0);
}

struct joiner_times joiner_sched_times(const struct joiner_sched *sched, uint64_t ts)
{
	return (struct joiner_times){sum_until(sched, WAFFLE_THREAD_RUNNING, ts),
				     sum_until(sched, WAFFLE_THREAD_RUNNABLE, ts)};
}

bool joiner_sched_known(const struct joiner_sched *sched, uint64_t since)
{
	return sched->state != UNKNOWN && sched->known_since <= since;
}
