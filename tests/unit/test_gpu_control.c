// SPDX-License-Identifier: Apache-2.0
/* When libwaffle-gpu's thread begins and ends to record (usdt/gpu/control.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "usdt/gpu/control.h"
#include "usdt/gpu/nccl.h"
#include "usdt/gpu/nvtx.h"
#include "usdt/gpu/operations.h"
#include "usdt/gpu/session.h"
#include "usdt/name/names.h"
#include "usdt/ring/rings.h"
#include "usdt/say/say.h"

/* ---- the library without CUPTI, NVTX, NCCL and a recording of its own ---- */

struct rings_gate rings_gate;
static struct name_site sites[GPU_NAMES + 1];
static bool records; /* a session has begun */

waffle_name_t *const *operations_names(void)
{
	static waffle_name_t *names[GPU_NAMES];

	for (unsigned i = 0; i < GPU_NAMES; i++)
		names[i] = (waffle_name_t *)&sites[i];
	return names;
}

bool session_begin(bool early)
{
	(void)early;
	__atomic_store_n(&records, true, __ATOMIC_RELEASE);
	return true;
}

void session_poll(void)
{
}

void session_end(bool exits)
{
	(void)exits;
	__atomic_store_n(&records, false, __ATOMIC_RELEASE);
}

bool session_leave(void)
{
	return true;
}

waffle_name_t *nvtx_watch(void)
{
	return (waffle_name_t *)&sites[GPU_NAMES];
}

void nvtx_arm(void)
{
}

void nvtx_disarm(void)
{
}

bool nvtx_poll(void)
{
	return false;
}

unsigned nccl_watch(waffle_name_t *const **names)
{
	*names = NULL;
	return 0;
}

bool nccl_follow(bool wanted)
{
	(void)wanted;
	return false;
}

void nccl_fork_child(void)
{
}

void names_wake(struct name_site *name)
{
	name->wakes = true;
}

bool rings_are_acknowledged(void)
{
	return true;
}

bool rings_hit(const void *probe, unsigned long long id, const void *name, const void *frame,
	       unsigned long long size)
{
	(void)probe, (void)id, (void)name, (void)frame, (void)size;
	return false;
}

void say_line(const char *format, ...)
{
	(void)format;
}

/* ---- tests ---- */

static void pause_ms(long ms)
{
	const struct timespec pause = {.tv_nsec = ms * 1000000};

	nanosleep(&pause, NULL);
}

static void arm(uint32_t armed)
{
	uint32_t *word = &sites[GPU_NAME_LAUNCH].entry.armed;

	__atomic_store_n(word, armed, __ATOMIC_RELEASE);
	syscall(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

/* Waits 5 s at most. */
static bool becomes(bool recorded)
{
	for (unsigned i = 0; i < 500; i++) {
		if (__atomic_load_n(&records, __ATOMIC_ACQUIRE) == recorded)
			return true;
		pause_ms(10);
	}
	return false;
}

/* The kernel opens the gate when it arms a site, which may be after the tracer has armed names. */
static void test_a_gate_that_opens_after_the_names_were_armed_begins_a_recording(void **state)
{
	(void)state;
	gpu_control_start();
	pause_ms(20);
	arm(NAME_ARMED_TRACER);
	pause_ms(50); /* the thread is woken, and looks in vain */
	assert_false(records);
	__atomic_store_n(&rings_gate.ring, 1, __ATOMIC_RELEASE);
	assert_true(becomes(true));
	__atomic_store_n(&rings_gate.ring, 0, __ATOMIC_RELEASE);
	arm(0);
	assert_true(becomes(false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_gate_that_opens_after_the_names_were_armed_begins_a_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
