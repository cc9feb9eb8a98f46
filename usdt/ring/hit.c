// SPDX-License-Identifier: Apache-2.0
#include "usdt/ring/hit.h"

#include "waffle/context.h"

#if RING_HAS_RSEQ

static const struct hit_functions {
	waffle_ring_event_t_ event;
	waffle_ring_enter_t_ enter;
	waffle_ring_leave_t_ leave;
} functions[RINGS_READERS] = {
	[RINGS_COLLECTOR] = {hit_event_collector, hit_enter_collector, hit_leave_collector},
	[RINGS_TRACER] = {hit_event_tracer, hit_enter_tracer, hit_leave_tracer},
};

void hit_choose(enum rings_reader reader)
{
	struct waffle_process_ *process = waffle_process_get_();

	if (!rings_rseq)
		return;
	__atomic_store_n(&process->event_, functions[reader].event, __ATOMIC_RELEASE);
	__atomic_store_n(&process->enter_, functions[reader].enter, __ATOMIC_RELEASE);
	__atomic_store_n(&process->leave_, functions[reader].leave, __ATOMIC_RELEASE);
}

void hit_pop(const struct waffle_scope_ *scope)
{
	waffle_scope_pop_(scope);
}

#else

void hit_choose(enum rings_reader reader)
{
	(void)reader;
}

#endif
