// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/tracer_wait.h"

#include <stdlib.h>
#include <time.h>

#include "target/process/tracer_id.h"
#include "usdt/ring/rings.h"
#include "util/clock.h"

#define ARMED_NS 1000000000ull
#define PAUSE_NS 1000000

static void pause_shortly(void)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	nanosleep(&pause, NULL);
}

bool tracer_reads_rings(void)
{
	return __atomic_load_n(&rings_gate.ring, __ATOMIC_RELAXED) &&
	       !__atomic_load_n(&rings_gate.usdt, __ATOMIC_RELAXED);
}

static bool is_armed(void)
{
	return __atomic_load_n(&rings_gate.ring, __ATOMIC_RELAXED) ||
	       __atomic_load_n(&rings_gate.usdt, __ATOMIC_RELAXED);
}

void tracer_wait_armed(void)
{
	const char *id = getenv(TRACER_ID_VARIABLE);
	uint64_t until = clock_monotonic_ns() + ARMED_NS;

	while (id && !is_armed() && tracer_id_is_alive(id) && clock_monotonic_ns() < until)
		pause_shortly();
}

void tracer_wait_mapped(uint64_t until_ns)
{
	while (tracer_reads_rings() && !rings_are_acknowledged() && clock_monotonic_ns() < until_ns)
		pause_shortly();
}
