/* SPDX-License-Identifier: Apache-2.0 */
/* Captures of three threads that act in turn. Include it after cmocka. */
#ifndef WAFFLE_TEST_WHY_TURNS_H
#define WAFFLE_TEST_WHY_TURNS_H

#include "why_capture.h"

#define A 10
#define B 11
#define C 12
#define NEIGHBOUR 900
#define END_TS 101000

#define MUTEX_ARGS                                                                                 \
	{                                                                                          \
		0x1000, 128, 2                                                                     \
	}
#define CONDITION_ARGS                                                                             \
	{                                                                                          \
		0x2000, 137, 0                                                                     \
	}

struct turn {
	uint64_t ts;
	uint16_t cpu;
	uint32_t prev, next;
	uint16_t state; /* of prev; 0: preempted */
	int syscall;
	uint64_t args[3];
	uint32_t waker; /* of next */
	uint64_t wake_ts;
	unsigned flags; /* besides those that follow from the rest */
};

static void turn(struct capture *capture, struct turn turn)
{
	struct waffle_rec_switch rec = {.rec = {turn.ts, turn.prev, WAFFLE_REC_SWITCH, turn.cpu},
					.next_tid = turn.next,
					.waker_tid = turn.waker,
					.wake_ts = turn.wake_ts,
					.prev_state = turn.state,
					.syscall = turn.state ? turn.syscall : -1};

	memcpy(rec.args, turn.args, sizeof(turn.args));
	rec.flags = (uint8_t)(sides(turn.prev, turn.next) | WAFFLE_SWITCH_STAYED |
			      (turn.wake_ts ? WAFFLE_SWITCH_WOKEN : 0) |
			      (turn.state ? 0 : WAFFLE_SWITCH_PREEMPTED) | turn.flags);
	capture_add(capture, &rec);
}

/* Three threads that run from the start. */
static void begin(struct capture *capture)
{
	static const char *const names[] = {"a", "b", "c"};

	capture_begin(capture, true);
	for (uint32_t i = 0; i < 3; i++)
		capture_task(capture, CAPTURE_START, A + i, CAPTURE_START, names[i]);
	for (uint32_t i = 0; i < 3; i++)
		capture_state(capture, CAPTURE_START, A + i, WAFFLE_THREAD_RUNNING, false);
}

#endif
