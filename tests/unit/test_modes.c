// SPDX-License-Identifier: Apache-2.0
/*
 * Modes, debug keys and pushed frames, as the headers alone do them: what armed sites deliver is
 * taken where libwaffle would take it.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "own_sites.h"
#include "waffle_macros.h"

/* ---- what is delivered ---- */

static struct hit {
	char name[32];
	unsigned long long id;
	size_t words; /* of values */
	unsigned long long value[24];
} hits[16];
static unsigned hit_count;

static bool take(const void *probe, unsigned long long id, const void *name, const void *frame,
		 unsigned long long size)
{
	struct hit *hit = &hits[hit_count++ % 16];

	(void)probe;
	*hit = (struct hit){.id = id};
	if (!frame) { /* an end */
		strcpy(hit->name, "end");
		return false;
	}
	strncpy(hit->name, name, sizeof(hit->name) - 1);
	hit->words = (size - sizeof(struct waffle_frame)) / 8;
	assert_true(hit->words <= 24);
	memcpy(hit->value, (const char *)frame + sizeof(struct waffle_frame), hit->words * 8);
	return false;
}

static int arm(void **state)
{
	(void)state;
	waffle_process_get_()->ring_ = take;
	hit_count = 0;
	semaphores_set(1);
	return 0;
}

static int disarm(void **state)
{
	(void)state;
	semaphores_set(0);
	waffle_process_get_()->ring_ = NULL;
	waffle_mode_set(WAFFLE_MODE_FAST);
	return 0;
}

static int evaluated;

static int evaluate(void)
{
	return ++evaluated;
}

/* ---- modes ---- */

static void *mode_of_thread(void *arg)
{
	*(waffle_mode_t *)arg = waffle_mode_get();
	return NULL;
}

static void test_innermost_scope_wins_and_ends_with_its_block(void **state)
{
	waffle_mode_t elsewhere = WAFFLE_MODE_OFF;
	pthread_t thread;

	(void)state;
	assert_int_equal(waffle_mode_get(), WAFFLE_MODE_FAST);
	{
		WAFFLE_MODE_SCOPE(WAFFLE_MODE_OFF);
		assert_int_equal(waffle_mode_get(), WAFFLE_MODE_OFF);
		for (int i = 0; i < 2; i++) {
			MODE_SCOPE(WAFFLE_MODE_FULL);
			assert_int_equal(waffle_mode_get(), WAFFLE_MODE_FULL);
			if (!i)
				continue;
			waffle_mode_set(WAFFLE_MODE_OFF);
			assert_int_equal(waffle_mode_get(), WAFFLE_MODE_FULL);
			waffle_mode_set(WAFFLE_MODE_FAST);
			/* A scope is one of its thread. */
			pthread_create(&thread, NULL, mode_of_thread, &elsewhere);
			pthread_join(thread, NULL);
			assert_int_equal(elsewhere, WAFFLE_MODE_FAST);
			goto out;
		}
	out:
		assert_int_equal(waffle_mode_get(), WAFFLE_MODE_OFF);
	}
	assert_int_equal(waffle_mode_get(), WAFFLE_MODE_FAST);
	waffle_mode_set(WAFFLE_MODE_FULL);
	assert_int_equal(waffle_mode_get(), WAFFLE_MODE_FULL);
}

static void test_armed_sites_in_mode_off_deliver_and_evaluate_nothing(void **state)
{
	waffle_span_t before = WAFFLE_BEGIN("before");
	unsigned begun = hit_count;

	(void)state;
	evaluated = 0;
	assert_int_equal(begun, 1);
	{
		WAFFLE_MODE_SCOPE(WAFFLE_MODE_OFF);
		WAFFLE_SPAN("off", KV_I64("n", evaluate()));
		waffle_span_t off = WAFFLE_BEGIN("off", KV_I64("n", evaluate()));
		waffle_event_id_t event = WAFFLE_EVENT("off", KV_I64("n", evaluate()));

		WAFFLE_COUNTER("off", evaluate());
		WAFFLE_LOG_ERROR("off", KV_I64("n", evaluate()));
		assert_true(!event.value && !off.id && !WAFFLE_SPAN_ID().value);
		WAFFLE_END(off);
		assert_int_equal(hit_count, begun);
		/* A span that has begun ends. */
		WAFFLE_END(before);
		assert_int_equal(hit_count, begun + 1);
		assert_string_equal(hits[begun].name, "end");
		assert_true(hits[begun].id == before.id);
	}
	assert_int_equal(hit_count, begun + 1);
	assert_int_equal(evaluated, 0);
}

static void test_the_mode_of_the_process_is_off_for_all_sites(void **state)
{
	(void)state;
	evaluated = 0;
	waffle_mode_set(WAFFLE_MODE_OFF);
	WAFFLE_EVENT("off", KV_I64("n", evaluate()));
	assert_int_equal(hit_count, 0);
	assert_int_equal(evaluated, 0);
	WAFFLE_MODE_SCOPE(WAFFLE_MODE_FAST);
	WAFFLE_EVENT("fast", KV_I64("n", evaluate()));
	assert_int_equal(hit_count, 1);
	assert_int_equal(evaluated, 1);
}

static void test_debug_keys_are_evaluated_and_delivered_in_full_mode_only(void **state)
{
	(void)state;
	for (int full = 0; full < 2; full++) {
		WAFFLE_MODE_SCOPE(full ? WAFFLE_MODE_FULL : WAFFLE_MODE_FAST);

		hit_count = 0;
		evaluated = 0;
		WAFFLE_EVENT("event", KV_DEBUG(KV_I64("d", evaluate())), KV_U64("u", 7),
			     KV_DEBUG(KV_BOOL("b", evaluate())));
		assert_int_equal(evaluated, full ? 2 : 0);
		assert_int_equal(hits[0].words, full ? 3 : 1);
		assert_true(hits[0].value[0] == 7);
		assert_true(!full || hits[0].value[1] + hits[0].value[2] == 1 + 1 ||
			    hits[0].value[1] + hits[0].value[2] == 2 + 1);
		WAFFLE_EVENT("strings", KV_DEBUG(KV_STR("d", "debug")), KV_STR("s", "text"));
		assert_int_equal(hits[1].words, full ? 4 : 2);
		assert_memory_equal(&hits[1].value[1], "text\0\0\0", 8);
		assert_true(!full || !memcmp(&hits[1].value[3], "debug\0\0", 8));
		WAFFLE_EVENT("only a debug string", KV_I64("n", 5), KV_DEBUG(KV_STR("d", "x")));
		assert_int_equal(hits[2].words, full ? 3 : 1);
		WAFFLE_LOG_ERROR("error");
		/* Without libwaffle nobody makes a backtrace. */
		assert_int_equal(hits[3].words, full ? 1 : 0);
		assert_true(!full || hits[3].value[0] == WAFFLE_STR_NULL);
		assert_int_equal(hit_count, 4);
	}
}

static sigjmp_buf back;

static __attribute__((noinline)) void jump_out_of_a_scope(void)
{
	WAFFLE_MODE_SCOPE(WAFFLE_MODE_FULL);
	assert_int_equal(waffle_mode_get(), WAFFLE_MODE_FULL);
	siglongjmp(back, 1);
}

static void test_block_around_a_jump_restores_its_mode(void **state)
{
	(void)state;
	{
		WAFFLE_MODE_SCOPE(WAFFLE_MODE_OFF);
		if (!sigsetjmp(back, 1))
			jump_out_of_a_scope();
		/* As with contexts: the mode of the scope that was left stays until here. */
	}
	assert_int_equal(waffle_mode_get(), WAFFLE_MODE_FAST);
	for (volatile int i = 0; i < 100; i++)
		if (!sigsetjmp(back, 1))
			jump_out_of_a_scope();
	assert_int_equal(waffle_thread_get_()->depth_, 1);
	waffle_thread_get_()->depth_ =
		0; /* for the next test, which has no block around the jump */
	waffle_thread_get_()->mode_ = 0;
}

static void test_modes_and_spans_nest_in_each_other(void **state)
{
	unsigned long long outer;

	(void)state;
	WAFFLE_SPAN("outer");
	outer = WAFFLE_SPAN_ID().value;
	assert_true(outer != 0);
	{
		WAFFLE_MODE_SCOPE(WAFFLE_MODE_OFF);
		WAFFLE_SPAN("not there");
		{
			WAFFLE_MODE_SCOPE(WAFFLE_MODE_FULL);
			WAFFLE_SPAN("inner");
			assert_true(WAFFLE_SPAN_ID().value != outer);
		}
		assert_int_equal(waffle_mode_get(), WAFFLE_MODE_OFF);
		assert_true(WAFFLE_SPAN_ID().value == outer);
	}
	assert_int_equal(waffle_mode_get(), WAFFLE_MODE_FAST);
}

static void nest(int depth)
{
	WAFFLE_MODE_SCOPE(depth % 2 ? WAFFLE_MODE_FULL : WAFFLE_MODE_OFF);

	if (depth < 3 * WAFFLE_LINKS_)
		nest(depth + 1);
	assert_int_equal(waffle_mode_get(), depth % 2 ? WAFFLE_MODE_FULL : WAFFLE_MODE_OFF);
}

static void test_modes_nest_deeper_than_there_is_room_to_remember(void **state)
{
	(void)state;
	nest(0);
	assert_int_equal(waffle_mode_get(), WAFFLE_MODE_FAST);
}

/* ---- frames ---- */

/* The depths that the frames of this thread have room for, innermost first. */
static void assert_frames(const struct waffle_frame_site_ *const *sites, unsigned depth)
{
	struct waffle_thread_ *thread = waffle_thread_get_();

	assert_int_equal(thread->frame_depth_, depth);
	for (unsigned i = 0; i < depth && i < WAFFLE_FRAMES_; i++)
		assert_ptr_equal(waffle_frame_at_(thread, depth - 1 - i)->site_,
				 sites[depth - 1 - i]);
}

static void test_frames_exist_in_full_mode_only(void **state)
{
	(void)state;
	{
		WAFFLE_FRAME();
		assert_int_equal(waffle_thread_get_()->frame_depth_, 0);
		WAFFLE_MODE_SCOPE(WAFFLE_MODE_FULL);
		FRAME();
		WAFFLE_FRAME();
		assert_int_equal(waffle_thread_get_()->frame_depth_, 2);
		assert_string_equal(waffle_thread_get_()->frames_[1].site_->function_, __func__);
		assert_int_equal(waffle_thread_get_()->frames_[1].site_->line_, __LINE__ - 3);
		assert_non_null(
			strstr(waffle_thread_get_()->frames_[1].site_->file_, "test_modes.c"));
		waffle_mode_set(WAFFLE_MODE_OFF); /* does not keep a frame from its end */
	}
	assert_int_equal(waffle_thread_get_()->frame_depth_, 0);
}

#define DEPTH 100

static void test_frames_beyond_the_room_come_back_when_inner_ones_end(void **state)
{
	static struct waffle_frame_site_ sites[DEPTH];
	const struct waffle_frame_site_ *order[DEPTH];
	struct waffle_frame_scope_ scopes[DEPTH];
	struct waffle_thread_ *thread = waffle_thread_get_();

	(void)state;
	for (unsigned i = 0; i < DEPTH; i++)
		order[i] = &sites[i];
	/* A stack grows downwards. */
	for (unsigned i = 0; i < DEPTH; i++)
		waffle_frame_push_(thread, &scopes[DEPTH - 1 - i], order[i]);
	for (unsigned i = DEPTH; i-- > 0;) {
		assert_frames(order, i + 1);
		waffle_frame_pop_(&scopes[DEPTH - 1 - i]);
	}
	assert_int_equal(thread->frame_depth_, 0);
}

static __attribute__((noinline)) void push_and_jump(int depth)
{
	WAFFLE_FRAME();
	if (depth)
		push_and_jump(depth - 1);
	siglongjmp(back, 1);
}

static void test_frames_that_are_jumped_out_of_do_not_pile_up(void **state)
{
	struct waffle_thread_ *thread = waffle_thread_get_();

	(void)state;
	{
		WAFFLE_MODE_SCOPE(WAFFLE_MODE_FULL);
		WAFFLE_FRAME();
		for (volatile int i = 0; i < 1000; i++)
			if (!sigsetjmp(back, 1))
				push_and_jump(3);
		assert_int_equal(thread->frame_depth_, 1 + 4);
		if (!sigsetjmp(back, 1))
			push_and_jump(2 * WAFFLE_FRAMES_); /* comes around */
	}
	assert_int_equal(thread->frame_depth_, 0);
}

struct moved {
	struct waffle_frame_scope_ scope;
	struct waffle_frame_site_ site;
};

static void *pop_elsewhere(void *arg)
{
	struct waffle_frame_scope_ own;
	struct waffle_thread_ *thread = waffle_thread_get_();
	struct moved *moved = arg;

	waffle_frame_push_(thread, &own, &moved->site);
	waffle_frame_pop_(&moved->scope);
	assert_int_equal(thread->frame_depth_, 1);
	waffle_frame_pop_(&own);
	return NULL;
}

static void test_frame_that_ends_on_another_thread_leaves_both_alone(void **state)
{
	struct waffle_frame_scope_ outer;
	struct moved moved;
	pthread_t thread;

	(void)state;
	waffle_frame_push_(waffle_thread_get_(), &outer, &moved.site);
	waffle_frame_push_(waffle_thread_get_(), &moved.scope, &moved.site);
	pthread_create(&thread, NULL, pop_elsewhere, &moved);
	pthread_join(thread, NULL);
	waffle_frame_pop_(&outer);
	assert_int_equal(waffle_thread_get_()->frame_depth_, 0);
}

static volatile sig_atomic_t handled, jumped;

static void on_alarm(int signo)
{
	struct waffle_thread_ *thread = waffle_thread_get_();
	unsigned depth = thread->frame_depth_;

	(void)signo;
	{
		WAFFLE_FRAME();
		WAFFLE_FRAME();
	}
	/* The pop of a frame that a push has begun to write over is its own. */
	if (thread->frame_depth_ == depth)
		handled++;
	if (jumped)
		siglongjmp(back, 1);
}

static void test_handlers_push_while_frames_are_pushed(void **state)
{
	struct itimerspec often = {{0, 1000000}, {0, 1000000}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	timer_t timer;

	(void)state;
	waffle_mode_set(WAFFLE_MODE_FULL);
	sigaction(SIGUSR1, &(struct sigaction){.sa_handler = on_alarm}, NULL);
	assert_return_code(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	timer_settime(timer, 0, &often, NULL);
	for (int round = 0; round < 2; round++, jumped = 1) {
		WAFFLE_FRAME();
		const struct waffle_frame_site_ *site = waffle_thread_get_()->frames_[0].site_;

		sigsetjmp(back, 1);
		while (handled < 100 * (round + 1)) {
			WAFFLE_FRAME();
			WAFFLE_FRAME();
		}
		assert_ptr_equal(waffle_thread_get_()->frames_[0].site_, site);
	}
	timer_delete(timer);
	signal(SIGUSR1, SIG_IGN);
	assert_int_equal(waffle_thread_get_()->frame_depth_, 0);
}

static void test_backtraces_need_libwaffle(void **state)
{
	(void)state;
	assert_int_equal(waffle_backtrace(NULL, NULL), -ENOSYS);
	assert_int_equal(waffle_backtrace_fd(1), -ENOSYS);
}

#define armed(test) cmocka_unit_test_setup_teardown(test, arm, disarm)

int main(void)
{
	const struct CMUnitTest tests[] = {
		armed(test_innermost_scope_wins_and_ends_with_its_block),
		armed(test_armed_sites_in_mode_off_deliver_and_evaluate_nothing),
		armed(test_the_mode_of_the_process_is_off_for_all_sites),
		armed(test_debug_keys_are_evaluated_and_delivered_in_full_mode_only),
		armed(test_block_around_a_jump_restores_its_mode),
		armed(test_modes_and_spans_nest_in_each_other),
		armed(test_modes_nest_deeper_than_there_is_room_to_remember),
		armed(test_frames_exist_in_full_mode_only),
		armed(test_frames_beyond_the_room_come_back_when_inner_ones_end),
		armed(test_frames_that_are_jumped_out_of_do_not_pile_up),
		armed(test_frame_that_ends_on_another_thread_leaves_both_alone),
		armed(test_handlers_push_while_frames_are_pushed),
		armed(test_backtraces_need_libwaffle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
