// SPDX-License-Identifier: Apache-2.0
/* Writes bundles of a CPU's switches and wake-ups: compact ones of about a thousand switches, and
 * single events in the long form. */
#include <stdlib.h>
#include <string.h>

#include "export/perfetto/perfetto_sched_internal.h"
#include "util/memory.h"

/* Records of switches have no priority, so this is that of a thread with nice 0. */
#define PRIORITY 120

static int32_t tid_of(const struct perfetto_sched *s, uint32_t thread)
{
	const struct model_thread *t = thread_at(s, thread);

	return t ? (int32_t)t->tid : 0;
}

static ProtobufCBinaryData comm_of(struct perfetto_sched *s, uint32_t thread)
{
	const char *comm =
		thread_at(s, thread) ? model_thread_name(s->p->model, thread) : "swapper";

	return perfetto_text(&s->p->encoder, comm, strlen(comm));
}

/* The number of a thread's name in this bundle. The arrays' last slot is for the idle thread. */
static uint32_t comm_number(struct perfetto_sched *s, uint32_t thread)
{
	uint32_t slot = thread_at(s, thread) ? thread : (uint32_t)s->p->model->threads.len;

	if (s->comm_bundle[slot] != s->bundles) {
		s->comm_bundle[slot] = s->bundles;
		s->comm_index[slot] = (uint32_t)s->comms.len;
		vec_add(&s->comms, thread);
	}
	return s->comm_index[slot];
}

/* The arrays of a compact bundle, in one allocation. */
struct arrays {
	uint64_t *switch_ts, *waking_ts;
	int64_t *prev_state;
	int32_t *next_pid, *prio, *waking_pid, *waking_cpu;
	uint32_t *next_comm, *waking_comm, *waking_flags;
};

static void *arrays_alloc(struct arrays *a, size_t switches, size_t wakings)
{
	size_t most = switches > wakings ? switches : wakings;
	size_t words = 2 * switches + wakings + 1;
	uint64_t *block = memory_get(words * 8 + (2 * switches + 4 * wakings + most + 1) * 4);
	uint32_t *at;

	a->switch_ts = block;
	a->prev_state = (int64_t *)(block + switches);
	a->waking_ts = block + 2 * switches;
	at = (uint32_t *)(block + words);
	a->next_pid = (int32_t *)at;
	a->next_comm = at + switches;
	a->waking_pid = (int32_t *)(at + 2 * switches);
	a->waking_cpu = (int32_t *)(at + 2 * switches + wakings);
	a->waking_comm = at + 2 * switches + 2 * wakings;
	a->waking_flags = at + 2 * switches + 3 * wakings;
	a->prio = (int32_t *)(at + 2 * switches + 4 * wakings);
	for (size_t i = 0; i < most; i++)
		a->prio[i] = PRIORITY;
	return block;
}

/* Wake-ups come in the order of the switches that they caused, so they are almost sorted: insertion
 * sort is fast. */
static void sort_wakings(struct cpu *cpu)
{
	for (size_t i = 1; i < cpu->wakings.len; i++) {
		struct waking waking = cpu->wakings.data[i];
		size_t at = i;

		for (; at > 0 && cpu->wakings.data[at - 1].ts > waking.ts; at--)
			cpu->wakings.data[at] = cpu->wakings.data[at - 1];
		cpu->wakings.data[at] = waking;
	}
}

static void fill_arrays(struct perfetto_sched *s, const struct cpu *cpu, const struct arrays *a)
{
	uint64_t last = 0;

	for (size_t i = 0; i < cpu->ts.len; i++) {
		uint64_t ts = perfetto_time(&s->p->encoder, cpu->ts.data[i]);

		a->switch_ts[i] = ts - last;
		last = ts;
		a->prev_state[i] = cpu->prev_state.data[i];
		a->next_pid[i] = tid_of(s, cpu->next.data[i]);
		a->next_comm[i] = comm_number(s, cpu->next.data[i]);
	}
	last = 0;
	for (size_t i = 0; i < cpu->wakings.len; i++) {
		const struct waking *waking = &cpu->wakings.data[i];
		uint64_t ts = perfetto_time(&s->p->encoder, waking->ts);

		a->waking_ts[i] = ts - last;
		last = ts;
		a->waking_pid[i] = tid_of(s, waking->thread);
		a->waking_cpu[i] = waking->cpu;
		a->waking_comm[i] = comm_number(s, waking->thread);
		a->waking_flags[i] = waking->flags;
	}
}

static void set_arrays(Pf__CompactSched *compact, const struct cpu *cpu, const struct arrays *a)
{
	compact->n_switch_timestamp = compact->n_switch_prev_state = compact->n_switch_next_pid =
		compact->n_switch_next_prio = compact->n_switch_next_comm_index = cpu->ts.len;
	compact->switch_timestamp = a->switch_ts;
	compact->switch_prev_state = a->prev_state;
	compact->switch_next_pid = a->next_pid;
	compact->switch_next_prio = a->prio;
	compact->switch_next_comm_index = a->next_comm;
	compact->n_waking_timestamp = compact->n_waking_pid = compact->n_waking_target_cpu =
		compact->n_waking_prio = compact->n_waking_comm_index =
			compact->n_waking_common_flags = cpu->wakings.len;
	compact->waking_timestamp = a->waking_ts;
	compact->waking_pid = a->waking_pid;
	compact->waking_target_cpu = a->waking_cpu;
	compact->waking_prio = a->prio;
	compact->waking_comm_index = a->waking_comm;
	compact->waking_common_flags = a->waking_flags;
}

static void bundle_put(struct perfetto_sched *s, struct cpu *cpu, Pf__FtraceEventBundle *bundle)
{
	Pf__Packet packet = PF__PACKET__INIT;
	uint64_t ts = cpu->ts.len ? cpu->ts.data[0] : s->p->encoder.start_ts;

	if (!cpu->sequence.id)
		cpu->sequence = sequence_begin(&s->p->encoder, 0, false);
	packet_header(&s->p->encoder, &packet, ts);
	packet.trusted_packet_sequence_id = cpu->sequence.id;
	packet.ftrace_events = bundle;
	bundle->has_cpu = 1;
	bundle->cpu = (uint32_t)(cpu - s->cpus);
	packet_put(&s->p->encoder.writer, &packet.base, 0);
}

static void put_compact(struct perfetto_sched *s, struct cpu *cpu)
{
	Pf__FtraceEventBundle bundle = PF__FTRACE_EVENT_BUNDLE__INIT;
	Pf__CompactSched compact = PF__COMPACT_SCHED__INIT;
	struct arrays a;
	void *block = arrays_alloc(&a, cpu->ts.len, cpu->wakings.len);
	ProtobufCBinaryData *table;

	s->bundles++;
	s->comms.len = 0;
	s->p->encoder.event.scratch_len = 0;
	sort_wakings(cpu);
	fill_arrays(s, cpu, &a);
	table = memory_get((s->comms.len + 1) * sizeof(*table));
	for (size_t i = 0; i < s->comms.len; i++)
		table[i] = comm_of(s, s->comms.data[i]);
	set_arrays(&compact, cpu, &a);
	compact.n_intern_table = s->comms.len;
	compact.intern_table = table;
	bundle.compact_sched = &compact;
	bundle_put(s, cpu, &bundle);
	free(table);
	free(block);
}

/* Writes events in the long form, one for each bundle. */
static void put_named(struct perfetto_sched *s, struct cpu *cpu)
{
	for (size_t i = 0; i < cpu->named.len; i++) {
		const struct named_waking *named = &cpu->named.data[i];
		Pf__FtraceEventBundle bundle = PF__FTRACE_EVENT_BUNDLE__INIT;
		Pf__FtraceEvent event = PF__FTRACE_EVENT__INIT, *list = &event;
		Pf__SchedWaking waking = PF__SCHED_WAKING__INIT;

		s->p->encoder.event.scratch_len = 0;
		event.has_timestamp = event.has_pid = 1;
		event.timestamp = perfetto_time(&s->p->encoder, named->waking.ts);
		event.pid = (uint32_t)tid_of(s, named->waker);
		event.sched_waking = &waking;
		waking.has_comm = waking.has_pid = waking.has_prio = 1;
		waking.has_success = waking.has_target_cpu = 1;
		waking.comm = comm_of(s, named->waking.thread);
		waking.pid = tid_of(s, named->waking.thread);
		waking.prio = PRIORITY;
		waking.success = 1;
		waking.target_cpu = named->waking.cpu;
		bundle.n_event = 1;
		bundle.event = &list;
		bundle_put(s, cpu, &bundle);
	}
}

static void put_freed(struct perfetto_sched *s, struct cpu *cpu)
{
	for (size_t i = 0; i < cpu->freed.len; i++) {
		Pf__FtraceEventBundle bundle = PF__FTRACE_EVENT_BUNDLE__INIT;
		Pf__FtraceEvent event = PF__FTRACE_EVENT__INIT, *list = &event;
		Pf__SchedProcessFree freed = PF__SCHED_PROCESS_FREE__INIT;

		s->p->encoder.event.scratch_len = 0;
		event.has_timestamp = event.has_pid = 1;
		event.timestamp = perfetto_time(&s->p->encoder, cpu->freed.data[i].ts);
		event.sched_process_free = &freed;
		freed.has_comm = freed.has_pid = freed.has_prio = 1;
		freed.comm = comm_of(s, cpu->freed.data[i].thread);
		freed.pid = tid_of(s, cpu->freed.data[i].thread);
		freed.prio = PRIORITY;
		bundle.n_event = 1;
		bundle.event = &list;
		bundle_put(s, cpu, &bundle);
	}
}

void cpu_flush(struct perfetto_sched *s, struct cpu *cpu)
{
	if (cpu->ts.len || cpu->wakings.len)
		put_compact(s, cpu);
	put_named(s, cpu);
	put_freed(s, cpu);
	cpu->ts.len = cpu->next.len = cpu->prev_state.len = 0;
	cpu->wakings.len = cpu->named.len = cpu->freed.len = 0;
}

void cpu_put_switch(struct perfetto_sched *s, struct cpu *cpu, uint64_t ts, uint32_t prev,
		    uint16_t prev_state, uint32_t next)
{
	Pf__FtraceEventBundle bundle = PF__FTRACE_EVENT_BUNDLE__INIT;
	Pf__FtraceEvent event = PF__FTRACE_EVENT__INIT, *list = &event;
	Pf__SchedSwitch change = PF__SCHED_SWITCH__INIT;

	s->p->encoder.event.scratch_len = 0;
	event.has_timestamp = event.has_pid = 1;
	event.timestamp = perfetto_time(&s->p->encoder, ts);
	event.pid = (uint32_t)tid_of(s, prev);
	event.sched_switch = &change;
	change.has_prev_comm = change.has_prev_pid = change.has_prev_prio = 1;
	change.has_prev_state = change.has_next_comm = change.has_next_pid = 1;
	change.has_next_prio = 1;
	change.prev_comm = comm_of(s, prev);
	change.prev_pid = tid_of(s, prev);
	change.prev_prio = change.next_prio = PRIORITY;
	change.prev_state = prev_state;
	change.next_comm = comm_of(s, next);
	change.next_pid = tid_of(s, next);
	bundle.n_event = 1;
	bundle.event = &list;
	bundle_put(s, cpu, &bundle);
	cpu->current = next;
	cpu->last_ts = ts;
	cpu->primed = true;
}

void cpu_put_frequency(struct perfetto_sched *s, struct cpu *cpu, uint64_t ts, uint32_t khz)
{
	Pf__FtraceEventBundle bundle = PF__FTRACE_EVENT_BUNDLE__INIT;
	Pf__FtraceEvent event = PF__FTRACE_EVENT__INIT, *list = &event;
	Pf__CpuFrequency frequency = PF__CPU_FREQUENCY__INIT;

	event.has_timestamp = event.has_pid = 1;
	event.timestamp = perfetto_time(&s->p->encoder, ts);
	event.cpu_frequency = &frequency;
	frequency.has_state = frequency.has_cpu_id = 1;
	frequency.state = khz;
	frequency.cpu_id = (uint32_t)(cpu - s->cpus);
	bundle.n_event = 1;
	bundle.event = &list;
	bundle_put(s, cpu, &bundle);
}

void cpu_put_lost(struct perfetto_sched *s, struct cpu *cpu)
{
	Pf__FtraceEventBundle bundle = PF__FTRACE_EVENT_BUNDLE__INIT;

	if (cpu->lost)
		return;
	cpu->lost = true;
	bundle.has_lost_events = bundle.lost_events = 1;
	bundle_put(s, cpu, &bundle);
}
