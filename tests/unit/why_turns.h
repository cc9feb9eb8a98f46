/* SPDX-License-Identifier: Apache-2.0 */
/* Captures of three threads that act in turn, and conditions for all answers about them. Include it
 * after cmocka. */
#ifndef WAFFLE_TEST_WHY_TURNS_H
#define WAFFLE_TEST_WHY_TURNS_H

#include "analyze/why.h"
#include "model_capture.h"

#define A 10
#define B 11
#define C 12
#define NEIGHBOUR 900
#define END_TS 101000

enum call { CALL_NONE = -1, CALL_READ = 0, CALL_NANOSLEEP = 35, CALL_WAIT4 = 61, CALL_FUTEX = 202 };
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

static bool is_ours(uint32_t tid)
{
	return tid >= A && tid < A + 8;
}

static void turn(struct capture *capture, struct turn turn)
{
	struct waffle_rec_switch rec = {.rec = {turn.ts, turn.prev, WAFFLE_REC_SWITCH, turn.cpu},
					.next_tid = turn.next,
					.waker_tid = turn.waker,
					.wake_ts = turn.wake_ts,
					.prev_state = turn.state,
					.syscall = turn.state ? turn.syscall : -1};

	memcpy(rec.args, turn.args, sizeof(turn.args));
	rec.flags = (uint8_t)((is_ours(turn.prev) ? WAFFLE_SWITCH_PREV_TRACED : 0) |
			      (is_ours(turn.next) ? WAFFLE_SWITCH_NEXT_TRACED : 0) |
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

static const struct why *explain(struct capture *capture, struct why_query query, struct why **why)
{
	const struct model *model = capture_load(capture, END_TS);
	struct error err = ERROR_INIT;

	capture_must(why_new(why, model, &query, &err), err);
	return *why;
}

static void done(struct capture *capture, struct why *why)
{
	why_free(why);
	capture_free(capture);
}

static void check_chain(const struct why *why, const struct why_instance *instance,
			const struct why_part *part)
{
	uint64_t from = instance->from_ts, to = instance->to_ts;

	assert_in_range(part->step_count, 1, 33);
	for (uint32_t i = 0; i < part->step_count; i++) {
		const struct why_step *step = &why->steps.data[part->step + i];

		assert_true(step->from_ts < step->to_ts);
		assert_true(step->from_ts >= from && step->to_ts <= to);
		from = step->from_ts;
		to = step->to_ts;
	}
	assert_int_equal(why->steps.data[part->step].thread, instance->thread);
	assert_true(to - from <= part->ns);
}

/* Conditions for every answer. */
static void check_sums(const struct why *why)
{
	for (size_t i = 0; i < why->instances.len; i++) {
		const struct why_instance *instance = &why->instances.data[i];
		uint64_t whole = instance->to_ts - instance->from_ts, sum = 0;
		uint64_t last = UINT64_MAX;

		assert_int_equal(instance->running_ns + instance->runnable_ns +
					 instance->blocked_ns + instance->unknown_ns,
				 whole);
		for (uint32_t p = 0; p < instance->part_count; p++) {
			const struct why_part *part = &why->parts.data[instance->part + p];

			sum += part->ns;
			assert_true(part->ns && part->ns <= last);
			last = part->ns;
			check_chain(why, instance, part);
		}
		assert_int_equal(sum, whole);
	}
}

#endif
