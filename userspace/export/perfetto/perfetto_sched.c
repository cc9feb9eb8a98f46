// SPDX-License-Identifier: Apache-2.0
/*
 * Thread switches and wake-ups, in Perfetto's compact form of ftrace data. In this form a switch
 * does not name the thread that left the CPU: Perfetto takes it from the CPU's previous switch. So
 * the switches of a CPU must form a chain. Where the capture does not know who ran (switches
 * between untraced threads, lost records), the CPU is written as idle.
 *
 * Perfetto also infers the waker of a wake-up, from the CPU of the event. If the capture does not
 * show the waker on a CPU, the event is written in the long form, which names the waker.
 */
#include <stdlib.h>
#include <string.h>

#include "export/perfetto/perfetto_sched_internal.h"
#include "util/memory.h"

#define NO_CPU UINT16_MAX

/* "Idle" (I), a state that threads of a process never have: stands for the state after a lost
 * switch. */
#define STATE_UNKNOWN WAFFLE_TASK_IDLE

/* common_flags of a tracepoint (linux/trace_events.h): the context of the waker. */
#define FLAG_HARDIRQ 0x08
#define FLAG_SOFTIRQ 0x10

static bool is_traced(const struct perfetto_sched *s, uint32_t thread)
{
	const struct model_thread *t = thread_at(s, thread);

	return t && t->traced;
}

/* ---- switches ---- */

static void cpu_switch(struct perfetto_sched *s, struct cpu *cpu, uint64_t ts, uint16_t prev_state,
		       uint32_t next)
{
	if (cpu->ts.len >= BUNDLE_SWITCHES)
		cpu_flush(s, cpu);
	vec_add(&cpu->ts, ts);
	vec_add(&cpu->prev_state, prev_state);
	vec_add(&cpu->next, next);
	cpu->current = next;
	cpu->last_ts = ts;
}

/* The state as the tracepoint reports it: preempted, or the highest of the other bits. */
static uint16_t normal_state(const struct model_switch *change)
{
	unsigned state = change->prev_state & 0xff;

	if (change->flags & WAFFLE_SWITCH_PREEMPTED || change->prev_state & WAFFLE_TASK_PREEMPTED)
		return WAFFLE_TASK_PREEMPTED;
	return state ? (uint16_t)(1u << (31 - __builtin_clz(state))) : WAFFLE_TASK_RUNNING;
}

/* The last loss of scheduler records on a CPU that overlaps the time between `from` and `to`. */
static const struct model_loss *loss_between(const struct perfetto_sched *s, uint16_t cpu,
					     uint64_t from, uint64_t to)
{
	const struct model *m = s->p->model;
	const struct model_loss *found = NULL;

	for (size_t i = 0; i < m->losses.len; i++) {
		const struct model_loss *loss = &m->losses.data[i];

		if (loss->source == WAFFLE_SOURCE_SCHED && loss->cpu == cpu && loss->to_ts > from &&
		    loss->from_ts < to)
			found = loss;
	}
	return found;
}

static void run_started(struct perfetto_sched *s, uint32_t thread, uint16_t cpu, uint64_t ts)
{
	struct sched_run *runs = s->runs[thread];

	memmove(&runs[1], &runs[0], (RUNS - 1) * sizeof(*runs));
	runs[0] = (struct sched_run){.from = ts, .to = UINT64_MAX, .cpu = cpu};
}

static void run_ended(struct perfetto_sched *s, uint32_t thread, uint16_t cpu, uint64_t ts)
{
	struct sched_run *runs = s->runs[thread];

	if (runs[0].to == UINT64_MAX && runs[0].cpu == cpu)
		runs[0].to = ts;
	s->out_ts[thread] = ts;
}

/* The CPU on which Perfetto shows a thread running at a time; NO_CPU: none. */
static uint16_t run_cpu(const struct perfetto_sched *s, uint32_t thread, uint64_t ts)
{
	for (int i = 0; i < RUNS; i++) {
		const struct sched_run *run = &s->runs[thread][i];

		if (run->to && run->from <= ts && ts < run->to)
			return run->cpu;
	}
	return NO_CPU;
}

/*
 * Makes the thread that a switch leaves the CPU's current thread. If records were lost, the thread
 * shown until now left at the start of the loss, and the other one came at its end. Without a
 * recorded loss both happen now.
 */
static void cpu_correct(struct perfetto_sched *s, struct cpu *cpu,
			const struct model_switch *change)
{
	const struct model_loss *loss;
	uint64_t left = change->ts, came = change->ts;

	if (cpu->current == change->prev)
		return;
	loss = loss_between(s, change->cpu, cpu->last_ts, change->ts);
	if (loss && loss->from_ts > cpu->last_ts)
		left = loss->from_ts;
	else if (loss)
		left = cpu->last_ts;
	if (loss && loss->to_ts < change->ts)
		came = loss->to_ts;
	if (came < left)
		came = left;
	if (cpu->current != MODEL_NONE) {
		run_ended(s, cpu->current, change->cpu, left);
		cpu_switch(s, cpu, left, STATE_UNKNOWN, MODEL_NONE);
	}
	if (is_traced(s, change->prev)) {
		cpu_switch(s, cpu, came, WAFFLE_TASK_RUNNING, change->prev);
		run_started(s, change->prev, change->cpu, came);
	}
}

static void note_waking(struct perfetto_sched *s, const struct model_switch *change)
{
	struct waking waking = {.ts = change->wake_ts, .thread = change->next, .cpu = change->cpu};
	uint16_t cpu = NO_CPU;
	struct cpu *target;

	/* The thread was woken while it was still leaving the CPU: it is runnable only after
	 * that. */
	if (waking.ts <= s->out_ts[change->next])
		waking.ts = s->out_ts[change->next] + 1;
	if (waking.ts < s->p->encoder.start_ts || waking.ts >= change->ts)
		return;
	if (change->flags & WAFFLE_SWITCH_WAKER_HARDIRQ)
		waking.flags |= FLAG_HARDIRQ;
	if (change->flags & WAFFLE_SWITCH_WAKER_SOFTIRQ)
		waking.flags |= FLAG_SOFTIRQ;
	if (thread_at(s, change->waker))
		cpu = run_cpu(s, change->waker, waking.ts);
	if (cpu != NO_CPU) {
		vec_add(&s->cpus[cpu].wakings, waking);
		if (s->cpus[cpu].wakings.len >= 2 * BUNDLE_SWITCHES)
			cpu_flush(s, &s->cpus[cpu]);
		return;
	}
	target = &s->cpus[change->cpu];
	vec_add(&target->named, (struct named_waking){waking, change->waker});
	if (target->named.len >= BUNDLE_SWITCHES)
		cpu_flush(s, target);
}

static void add_switch(struct perfetto_sched *s, size_t index)
{
	const struct model_switch *change = &s->p->model->switches.data[index];
	uint32_t next = change->next;
	struct cpu *cpu;

	if (change->cpu >= s->cpu_count)
		return;
	cpu = &s->cpus[change->cpu];
	/* It is known how long an untraced thread ran only if the next switch is from it. */
	if (!is_traced(s, next) && !(s->confirmed[index / 8] >> index % 8 & 1))
		next = MODEL_NONE;
	cpu_correct(s, cpu, change);
	if (thread_at(s, change->prev))
		run_ended(s, change->prev, change->cpu, change->ts);
	if (change->flags & WAFFLE_SWITCH_WOKEN && thread_at(s, change->next))
		note_waking(s, change);
	/* The CPU switches between unknown threads, so there is nothing to write. */
	if (cpu->current == MODEL_NONE && next == MODEL_NONE)
		return;
	cpu_switch(s, cpu, change->ts, normal_state(change), next);
	if (next != MODEL_NONE)
		run_started(s, next, change->cpu, change->ts);
}

/* ---- start of the capture ---- */

/* Sets the bit of each switch to a thread that the CPU's next switch is from. */
static void confirm_switches(struct perfetto_sched *s)
{
	const struct model *m = s->p->model;
	uint32_t *prev = memory_get((s->cpu_count + 1) * sizeof(*prev));

	s->confirmed = memory_zeroed(m->switches.len / 8 + 1, 1);
	for (uint32_t c = 0; c < s->cpu_count; c++)
		prev[c] = MODEL_NONE;
	for (size_t i = m->switches.len; i-- > 0;) {
		const struct model_switch *change = &m->switches.data[i];

		if (change->cpu >= s->cpu_count)
			continue;
		if (change->next != MODEL_NONE && prev[change->cpu] == change->next)
			s->confirmed[i / 8] |= (unsigned char)(1u << i % 8);
		prev[change->cpu] = change->prev;
	}
	free(prev);
}

static uint32_t count_cpus(const struct model *m)
{
	uint32_t count = 0;

	for (size_t i = 0; i < m->switches.len; i++) {
		if (m->switches.data[i].cpu >= count)
			count = m->switches.data[i].cpu + 1u;
	}
	for (size_t i = 0; i < m->states.len; i++) {
		if (m->states.data[i].cpu >= count)
			count = m->states.data[i].cpu + 1u;
	}
	for (size_t i = 0; i < m->losses.len; i++) {
		if (m->losses.data[i].source == WAFFLE_SOURCE_SCHED &&
		    m->losses.data[i].cpu >= count)
			count = m->losses.data[i].cpu + 1u;
	}
	return count > CPUS_MAX ? CPUS_MAX : count;
}

static void sched_begin(struct perfetto_sched *s)
{
	const struct model *m = s->p->model;

	s->cpu_count = count_cpus(m);
	s->cpus = memory_zeroed(s->cpu_count + 1, sizeof(*s->cpus));
	s->runs = memory_zeroed(m->threads.len + 1, sizeof(*s->runs));
	s->out_ts = memory_zeroed(m->threads.len + 1, sizeof(*s->out_ts));
	s->comm_bundle = memory_zeroed(m->threads.len + 1, sizeof(*s->comm_bundle));
	s->comm_index = memory_zeroed(m->threads.len + 1, sizeof(*s->comm_index));
	for (uint32_t c = 0; c < s->cpu_count; c++)
		s->cpus[c].current = MODEL_NONE;
	confirm_switches(s);
}

static void sched_end(struct perfetto_sched *s)
{
	for (uint32_t c = 0; c < s->cpu_count; c++) {
		struct cpu *cpu = &s->cpus[c];

		vec_free(&cpu->ts);
		vec_free(&cpu->next);
		vec_free(&cpu->prev_state);
		vec_free(&cpu->wakings);
		vec_free(&cpu->named);
		vec_free(&cpu->freed);
	}
	free(s->cpus);
	free(s->runs);
	free(s->out_ts);
	free(s->comm_bundle);
	free(s->comm_index);
	free(s->confirmed);
	vec_free(&s->comms);
}

/* First switch of each thread and of each CPU. */
struct firsts {
	size_t *by_thread, *by_cpu; /* index into switches; SIZE_MAX: none */
};

static void find_firsts(const struct perfetto_sched *s, struct firsts *f)
{
	const struct model *m = s->p->model;

	f->by_thread = memory_get((m->threads.len + 1) * sizeof(*f->by_thread));
	f->by_cpu = memory_get((s->cpu_count + 1) * sizeof(*f->by_cpu));
	memset(f->by_thread, 0xff, (m->threads.len + 1) * sizeof(*f->by_thread));
	memset(f->by_cpu, 0xff, (s->cpu_count + 1) * sizeof(*f->by_cpu));
	for (size_t i = m->switches.len; i-- > 0;) {
		const struct model_switch *change = &m->switches.data[i];

		if (change->prev < m->threads.len)
			f->by_thread[change->prev] = i;
		if (change->next < m->threads.len)
			f->by_thread[change->next] = i;
		if (change->cpu < s->cpu_count)
			f->by_cpu[change->cpu] = i;
	}
}

/*
 * Writes the initial state of a thread that was off the CPU when the capture began. If it had no
 * switch before its state was read, it was in that state from the beginning. Perfetto learns a
 * state only from a switch. So the thread gets a switch to its CPU and one away from it, both at
 * the beginning.
 */
static void put_first_state(struct perfetto_sched *s, const struct firsts *f,
			    const struct model_state *state)
{
	const struct model *m = s->p->model;
	size_t first = f->by_thread[state->thread];
	struct model_switch as_switch = {.prev_state = state->task_state};
	uint16_t task_state = WAFFLE_TASK_RUNNING;

	if (first != SIZE_MAX && m->switches.data[first].ts < state->ts)
		return;
	if (m->threads.data[state->thread].first_ts > s->p->encoder.start_ts &&
	    m->threads.data[state->thread].first_ts < state->ts)
		return;
	if (state->state == WAFFLE_THREAD_BLOCKED) {
		task_state = normal_state(&as_switch);
		if (task_state == WAFFLE_TASK_RUNNING || task_state == WAFFLE_TASK_PREEMPTED)
			task_state = STATE_UNKNOWN;
	}
	cpu_put_switch(s, &s->cpus[state->cpu], s->p->encoder.start_ts, MODEL_NONE,
		       WAFFLE_TASK_RUNNING, state->thread);
	cpu_put_switch(s, &s->cpus[state->cpu], s->p->encoder.start_ts, state->thread, task_state,
		       MODEL_NONE);
}

/* Writes who runs on a CPU at the beginning: the traced thread that its first switch is from, or a
 * thread seen running there that never switched. */
static void put_first_switch(struct perfetto_sched *s, uint32_t c, const struct firsts *f,
			     uint32_t seen_running)
{
	const struct model *m = s->p->model;
	struct cpu *cpu = &s->cpus[c];
	uint32_t running = seen_running;
	uint64_t from = s->p->encoder.start_ts;

	if (f->by_cpu[c] != SIZE_MAX)
		running = m->switches.data[f->by_cpu[c]].prev;
	if (!is_traced(s, running))
		running = MODEL_NONE;
	else if (f->by_thread[running] != SIZE_MAX && f->by_cpu[c] != SIZE_MAX &&
		 f->by_thread[running] < f->by_cpu[c])
		running = MODEL_NONE; /* it came from another CPU, so records were lost */
	if (running == MODEL_NONE && f->by_cpu[c] == SIZE_MAX && !cpu->primed)
		return;
	if (running != MODEL_NONE && m->threads.data[running].first_ts > from)
		from = m->threads.data[running].first_ts;
	if (running != MODEL_NONE && from == s->p->encoder.start_ts) {
		cpu_put_switch(s, cpu, from, MODEL_NONE, WAFFLE_TASK_RUNNING, running);
	} else {
		cpu_put_switch(s, cpu, s->p->encoder.start_ts, MODEL_NONE, WAFFLE_TASK_RUNNING,
			       MODEL_NONE);
		if (running != MODEL_NONE)
			cpu_put_switch(s, cpu, from, MODEL_NONE, WAFFLE_TASK_RUNNING, running);
	}
	if (running != MODEL_NONE)
		run_started(s, running, (uint16_t)c, from);
}

static void put_begin(struct perfetto_sched *s)
{
	const struct model *m = s->p->model;
	uint32_t *running = memory_get((s->cpu_count + 1) * sizeof(*running));
	struct firsts f = {0};

	find_firsts(s, &f);
	for (uint32_t c = 0; c < s->cpu_count; c++)
		running[c] = MODEL_NONE;
	for (size_t i = 0; i < m->states.len; i++) {
		const struct model_state *state = &m->states.data[i];

		if (state->at_end || !is_traced(s, state->thread) || state->cpu >= s->cpu_count)
			continue;
		if (state->state != WAFFLE_THREAD_RUNNING)
			put_first_state(s, &f, state);
		else if (f.by_thread[state->thread] == SIZE_MAX)
			running[state->cpu] = state->thread;
	}
	for (uint32_t c = 0; c < s->cpu_count; c++)
		put_first_switch(s, c, &f, running[c]);
	free(running);
	free(f.by_thread);
	free(f.by_cpu);
}

/* ---- ends of threads, losses ---- */

/* Tells Perfetto that a thread ended whose tid is used again. The event has to be between the last
 * record of the old thread and the first one of the new thread. */
static void note_freed(struct perfetto_sched *s)
{
	const struct model *m = s->p->model;
	struct map tids = {0};

	for (uint32_t i = 0; i < m->threads.len && s->cpu_count; i++) {
		const struct model_thread *t = &m->threads.data[i];
		uint32_t before = map_get(&tids, t->tid);

		if (before != MAP_NONE && t->tid) {
			const struct model_thread *old = &m->threads.data[before];
			uint64_t ts =
				old->last_ts + 1 < t->first_ts ? old->last_ts + 1 : t->first_ts;

			vec_add(&s->cpus[0].freed, (struct free_mark){ts, before});
		}
		map_put(&tids, t->tid, i);
	}
	map_free(&tids);
}

static void put_lost(struct perfetto_sched *s)
{
	const struct model *m = s->p->model;

	for (size_t i = 0; i < m->losses.len; i++) {
		const struct model_loss *loss = &m->losses.data[i];

		if (loss->source == WAFFLE_SOURCE_SCHED && loss->cpu < s->cpu_count)
			cpu_put_lost(s, &s->cpus[loss->cpu]);
	}
}

static void put_frequencies(struct perfetto_sched *s)
{
	const struct model *m = s->p->model;

	for (size_t i = 0; i < m->frequencies.len; i++) {
		const struct model_frequency *f = &m->frequencies.data[i];
		bool last = i + 1 == m->frequencies.len || f[1].cpu != f->cpu;

		if (f->cpu < s->cpu_count && !(f->read && last)) /* see model_frequency() */
			cpu_put_frequency(s, &s->cpus[f->cpu], f->ts, f->khz);
	}
}

void perfetto_sched(struct perfetto *p)
{
	struct perfetto_sched s = {.p = p};

	sched_begin(&s);
	put_begin(&s);
	put_frequencies(&s);
	note_freed(&s);
	for (size_t i = 0; i < p->model->switches.len; i++)
		add_switch(&s, i);
	for (uint32_t c = 0; c < s.cpu_count; c++)
		cpu_flush(&s, &s.cpus[c]);
	put_lost(&s);
	sched_end(&s);
}
