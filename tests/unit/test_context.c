// SPDX-License-Identifier: Apache-2.0
/*
 * Ids, contexts, traceparent, and what sites do to them: dormant, and armed without a tracer by
 * raising the semaphores in this process.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "own_sites.h"
#include "waffle.h"

#define THREADS 4
#define IDS 20000

/* ---- raising semaphores ---- */

static int arm(void **state)
{
	(void)state;
	semaphores_set(1);
	return 0;
}

static int disarm(void **state)
{
	(void)state;
	semaphores_set(0);
	return 0;
}

/* ---- ids ---- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void assert_unique(uint64_t *ids, size_t count)
{
	qsort(ids, count, sizeof(*ids), by_value);
	assert_true(ids[0] != 0);
	for (size_t i = 1; i < count; i++)
		assert_true(ids[i] != ids[i - 1]);
}

static void *draw_ids(void *ids)
{
	for (size_t i = 0; i < IDS; i++)
		((uint64_t *)ids)[i] = waffle_new_id_(waffle_thread_ready_());
	return NULL;
}

static void test_ids_of_all_threads_differ_and_none_is_null(void **state)
{
	uint64_t *ids = calloc(THREADS * IDS, sizeof(*ids));
	pthread_t threads[THREADS];

	(void)state;
	assert_non_null(ids);
	for (int t = 0; t < THREADS; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, draw_ids, ids + t * IDS), 0);
	for (int t = 0; t < THREADS; t++)
		assert_int_equal(pthread_join(threads[t], NULL), 0);
	assert_unique(ids, THREADS * IDS);
	free(ids);
}

static void test_ids_of_a_forked_child_and_grandchild_differ_from_the_parents(void **state)
{
	size_t bytes = 3 * (size_t)IDS * sizeof(uint64_t);
	uint64_t *ids =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t child;

	(void)state;
	assert_ptr_not_equal(ids, MAP_FAILED);
	(void)waffle_new_id_(waffle_thread_ready_()); /* the parent has its base already, which the
							 child inherits */
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		pid_t grandchild;

		draw_ids(ids + IDS);
		grandchild = fork();
		if (!grandchild)
			draw_ids(ids + 2 * (size_t)IDS);
		else
			waitpid(grandchild, &status, 0);
		_exit(0);
	}
	draw_ids(ids);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_unique(ids, 3 * (size_t)IDS);
	munmap(ids, bytes);
}

#define WORKERS 8
#define WORKER_IDS 100

/* No process has allocated ids before the forks, as in a server that is traced later. */
static void *fork_workers(void *ids)
{
	pid_t children[WORKERS];

	for (int w = 0; w < WORKERS; w++) {
		children[w] = fork();
		if (children[w])
			continue;
		for (int i = 0; i < WORKER_IDS; i++)
			((uint64_t *)ids)[w * WORKER_IDS + i] =
				waffle_new_id_(waffle_thread_ready_());
		_exit(0);
	}
	for (int w = 0; w < WORKERS; w++)
		waitpid(children[w], NULL, 0);
	return NULL;
}

static void test_ids_of_workers_forked_by_two_threads_at_once_differ(void **state)
{
	size_t count = 2 * (size_t)WORKERS * WORKER_IDS;
	uint64_t *ids = mmap(NULL, count * sizeof(*ids), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_t threads[2];

	(void)state;
	assert_ptr_not_equal(ids, MAP_FAILED);
	for (int t = 0; t < 2; t++)
		assert_int_equal(pthread_create(&threads[t], NULL, fork_workers,
						ids + t * WORKERS * WORKER_IDS),
				 0);
	for (int t = 0; t < 2; t++)
		pthread_join(threads[t], NULL);
	assert_unique(ids, count);
	munmap(ids, count * sizeof(*ids));
}

/* The reference gives 0xb8ad50c6f649af94 for the bytes 0 to 23 under the key 0 to 15. */
static void test_id_bases_are_of_siphash(void **state)
{
	struct waffle_process_ *process = waffle_process_get_(), before = *process;
	uint64_t hash;

	(void)state;
	assert_true(process->key_[0] || process->key_[1]); /* what the kernel gave */
	process->key_[0] = 0x0706050403020100;
	process->key_[1] = 0x0f0e0d0c0b0a0908;
	hash = waffle_hash_(0x0706050403020100, 0x0f0e0d0c0b0a0908, 0x1716151413121110);
	*process = before;
	assert_true(hash == 0xb8ad50c6f649af94);
}

/* ---- traceparent ---- */

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void test_a_traceparent_reads_and_writes_back_the_same(void **state)
{
	char text[WAFFLE_TRACEPARENT_SIZE];
	waffle_context_t context;

	(void)state;
	assert_true(waffle_context_from_traceparent(PARENT, &context));
	assert_true(context.trace_hi == 0x0af7651916cd43ddull);
	assert_true(context.trace_lo == 0x8448eb211c80319cull);
	assert_true(context.span_id == 0xb7ad6b7169203331ull);
	assert_true(waffle_context_to_traceparent(context, text));
	assert_string_equal(text, PARENT);
}

static void test_valid_traceparents_are_read(void **state)
{
	static const char *const valid[] = {
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff",
		"00-00000000000000000000000000000001-0000000000000001-01",
		"00-00000000000000010000000000000000-0000000000000001-01",
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-the-future-brings",
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
	};
	waffle_context_t context;

	(void)state;
	for (size_t i = 0; i < sizeof(valid) / sizeof(*valid); i++)
		if (!waffle_context_from_traceparent(valid[i], &context) || !context.span_id)
			fail_msg("not read: %s", valid[i]);
}

static void test_invalid_traceparents_leave_the_null_context(void **state)
{
	static const char *const invalid[] = {
		NULL,
		"",
		"00",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-extra",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 ",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-011",
		"01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-011",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-B7AD6B7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0G",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"FF-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-011",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
		" 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
	};
	waffle_context_t context;

	(void)state;
	for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++) {
		memset(&context, 0xff, sizeof(context));
		if (waffle_context_from_traceparent(invalid[i], &context))
			fail_msg("read: %s", invalid[i]);
		assert_true(!context.trace_hi && !context.trace_lo && !context.span_id);
	}
}

static void test_a_null_context_has_no_traceparent(void **state)
{
	static const waffle_context_t null[] = {{0, 0, 0}, {1, 2, 0}, {0, 0, 3}};
	char text[WAFFLE_TRACEPARENT_SIZE] = "old";

	(void)state;
	for (size_t i = 0; i < sizeof(null) / sizeof(*null); i++) {
		assert_false(waffle_context_to_traceparent(null[i], text));
		assert_string_equal(text, "");
	}
}

/* ---- dormant ---- */

static int evaluated;

static int evaluate(void)
{
	return ++evaluated;
}

static void test_dormant_sites_give_null_ids_and_evaluate_nothing(void **state)
{
	waffle_span_t span = WAFFLE_BEGIN("begun dormant", KV_I64("n", evaluate()));
	waffle_event_id_t event;

	(void)state;
	evaluated = 0;
	WAFFLE_SPAN("dormant", KV_I64("n", evaluate()));
	event = WAFFLE_EVENT("dormant", KV_I64("n", evaluate()));
	WAFFLE_COUNTER("dormant", evaluate());
	assert_int_equal(evaluated, 0);
	assert_true(!event.value && !span.id && !WAFFLE_SPAN_ID().value);
	assert_true(!waffle_context_extract().trace_hi && !waffle_context_extract().trace_lo);
	WAFFLE_END(span);
}

static void test_a_span_begun_dormant_and_left_armed_changes_no_context(void **state)
{
	(void)state;
	{
		WAFFLE_SPAN("entered dormant");
		semaphores_set(1);
		assert_true(!WAFFLE_SPAN_ID().value);
	}
	assert_true(!WAFFLE_SPAN_ID().value);
}

static void test_injected_contexts_are_current_to_the_end_of_the_block(void **state)
{
	waffle_context_t a = {1, 2, 3}, b = {1, 2, 4}, null = {0, 0, 0};

	(void)state;
	{
		WAFFLE_INJECT(a);
		assert_true(WAFFLE_SPAN_ID().value == 3);
		{
			WAFFLE_INJECT(b);
			assert_true(WAFFLE_SPAN_ID().value == 4);
			{
				WAFFLE_INJECT(null);
				assert_true(WAFFLE_SPAN_ID().value == 4);
			}
		}
		assert_true(waffle_context_extract().trace_lo == 2);
		assert_true(WAFFLE_SPAN_ID().value == 3);
	}
	assert_true(!WAFFLE_SPAN_ID().value);
}

/* ---- armed ---- */

static void test_armed_spans_nest_in_one_trace(void **state)
{
	waffle_context_t outer, inner;

	(void)state;
	{
		WAFFLE_SPAN("outer");
		outer = waffle_context_extract();
		assert_true(outer.span_id && (outer.trace_hi || outer.trace_lo));
		{
			WAFFLE_SPAN("inner", KV_I64("n", 1));
			inner = waffle_context_extract();
			assert_true(inner.span_id != outer.span_id);
			assert_true(inner.trace_hi == outer.trace_hi);
			assert_true(inner.trace_lo == outer.trace_lo);
		}
		assert_true(WAFFLE_SPAN_ID().value == outer.span_id);
	}
	assert_true(!WAFFLE_SPAN_ID().value);
	{
		WAFFLE_SPAN("another trace");
		assert_true(waffle_context_extract().trace_lo != outer.trace_lo);
	}
}

static void test_armed_arguments_are_evaluated_once_each(void **state)
{
	waffle_span_t span;

	(void)state;
	evaluated = 0;
	{
		WAFFLE_SPAN("span", KV_I64("a", evaluate()), KV_STR("b", evaluate() ? "x" : "y"),
			    KV_F64("c", evaluate()), KV_BOOL("d", evaluate()));
		assert_int_equal(evaluated, 4);
		WAFFLE_COUNTER("counter", evaluate());
		assert_int_equal(evaluated, 5);
		assert_true(WAFFLE_EVENT("event", KV_U64("a", evaluate())).value != 0);
		assert_int_equal(evaluated, 6);
		span = WAFFLE_BEGIN("begun", KV_I64("a", evaluate()));
	}
	assert_int_equal(evaluated, 7);
	assert_true(span.id != 0);
	WAFFLE_END(span);
}

static void test_armed_strings_of_every_length_are_copied_within_bounds(void **state)
{
	(void)state;
	for (size_t length = 0; length < 600; length++) {
		char *text = malloc(length + 1); /* no more, so that ASan sees a byte too many */

		assert_non_null(text);
		memset(text, 'x', length);
		text[length] = '\0';
		WAFFLE_EVENT("text", KV_STR("a", text), KV_I64("n", (int)length),
			     KV_STR("b", text));
		free(text);
	}
	WAFFLE_EVENT("null", KV_STR("null", NULL));
}

static void test_sixteen_armed_strings_of_full_length_fit_the_frame(void **state)
{
	char text[400];

	(void)state;
	memset(text, 'y', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	WAFFLE_SPAN("full", KV_STR("1", text), KV_STR("2", text), KV_STR("3", text),
		    KV_STR("4", text), KV_STR("5", text), KV_STR("6", text), KV_STR("7", text),
		    KV_STR("8", text), KV_STR("9", text), KV_STR("10", text), KV_STR("11", text),
		    KV_STR("12", text), KV_STR("13", text), KV_STR("14", text), KV_STR("15", text),
		    KV_STR("16", text));
	assert_true(WAFFLE_SPAN_ID().value != 0);
}

static void *end_span(void *span)
{
	WAFFLE_END(*(waffle_span_t *)span);
	return waffle_context_extract().span_id ? span : NULL;
}

static void test_an_armed_span_may_end_on_another_thread(void **state)
{
	waffle_span_t span = WAFFLE_BEGIN("handed over");
	pthread_t thread;
	void *result;

	(void)state;
	assert_true(span.id && !WAFFLE_SPAN_ID().value);
	{
		WAFFLE_INJECT(waffle_span_context(span));
		assert_true(WAFFLE_SPAN_ID().value == span.id);
	}
	assert_int_equal(pthread_create(&thread, NULL, end_span, &span), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_null(result);
}

static void test_an_armed_span_in_an_injected_context_joins_its_trace(void **state)
{
	waffle_context_t remote;

	(void)state;
	assert_true(waffle_context_from_traceparent(PARENT, &remote));
	WAFFLE_INJECT(remote);
	WAFFLE_SPAN("served");
	assert_true(waffle_context_extract().trace_hi == remote.trace_hi);
	assert_true(waffle_context_extract().trace_lo == remote.trace_lo);
	assert_true(WAFFLE_SPAN_ID().value != remote.span_id);
}

static void test_a_span_disarmed_inside_still_ends(void **state)
{
	(void)state;
	{
		WAFFLE_SPAN("left dormant");
		assert_true(WAFFLE_SPAN_ID().value != 0);
		semaphores_set(0);
	}
	assert_true(!WAFFLE_SPAN_ID().value);
}

/* ---- armed spans that are not left ---- */

static jmp_buf landing;
static atomic_bool jumping = true; /* for compilers that see no way out */

static __attribute__((noinline)) unsigned jump_out(unsigned depth)
{
	WAFFLE_SPAN("jumped out of", KV_U64("depth", depth));

	if (!depth && atomic_load(&jumping))
		longjmp(landing, 1);
	return depth ? jump_out(depth - 1) + 1 : 0;
}

static __attribute__((noinline)) void jump_and_land(unsigned depth)
{
	if (!setjmp(landing))
		jump_out(depth);
}

static void test_a_block_around_a_longjmp_puts_its_context_back(void **state)
{
	(void)state;
	for (unsigned depth = 0; depth < 20; depth++) {
		{
			WAFFLE_SPAN("around");
			waffle_span_id_t own = WAFFLE_SPAN_ID();

			{
				WAFFLE_SPAN("within");
				jump_and_land(depth);
				assert_true(WAFFLE_SPAN_ID().value != own.value);
			}
			assert_true(WAFFLE_SPAN_ID().value == own.value);
			{
				WAFFLE_INJECT(waffle_context_extract());
				jump_and_land(depth);
			}
			assert_true(WAFFLE_SPAN_ID().value == own.value);
		}
		assert_true(!WAFFLE_SPAN_ID().value);
	}
}

static void test_spans_that_are_jumped_out_of_again_and_again_do_not_nest(void **state)
{
	(void)state;
	{
		WAFFLE_INJECT(waffle_context_extract());
		for (unsigned i = 0; i < 100; i++) {
			jump_and_land(2);
			/* The block, and the three that were jumped out of last. */
			assert_int_equal(waffle_thread_get_()->depth_, 4);
		}
	}
	assert_true(!WAFFLE_SPAN_ID().value);
	assert_int_equal(waffle_thread_get_()->depth_, 0);
}

/* ---- armed spans on other stacks and threads ---- */

#define STACK_SIZE 65536

struct fiber {
	ucontext_t own, caller;
	waffle_span_id_t seen[3];
	char stack[STACK_SIZE];
};

static struct fiber *running;

static void fiber_yield(struct fiber *fiber)
{
	swapcontext(&fiber->own, &fiber->caller);
}

static void fiber_run(void)
{
	struct fiber *fiber = running;

	{
		WAFFLE_SPAN("in a fiber");
		fiber->seen[0] = WAFFLE_SPAN_ID();
		fiber_yield(fiber);
	}
	fiber->seen[1] = WAFFLE_SPAN_ID();
	fiber_yield(fiber);
}

static void fiber_resume(struct fiber *fiber)
{
	running = fiber;
	swapcontext(&fiber->caller, &fiber->own);
}

static struct fiber *fiber_new(void)
{
	struct fiber *fiber = calloc(1, sizeof(*fiber));

	assert_non_null(fiber);
	getcontext(&fiber->own);
	fiber->own.uc_stack.ss_sp = fiber->stack;
	fiber->own.uc_stack.ss_size = sizeof(fiber->stack);
	fiber->own.uc_link = NULL;
	makecontext(&fiber->own, fiber_run, 0);
	return fiber;
}

static void *resume_elsewhere(void *fiber)
{
	WAFFLE_SPAN("of the other thread");
	waffle_span_id_t own = WAFFLE_SPAN_ID();

	fiber_resume(fiber); /* leaves its span here */
	return WAFFLE_SPAN_ID().value == own.value ? fiber : NULL;
}

static void test_a_span_that_ends_on_another_thread_leaves_its_context_alone(void **state)
{
	struct fiber *fiber = fiber_new();
	pthread_t thread;
	void *result;

	(void)state;
	{
		WAFFLE_SPAN("caller");
		waffle_span_id_t own = WAFFLE_SPAN_ID();

		fiber_resume(fiber);
		assert_true(fiber->seen[0].value && fiber->seen[0].value != own.value);
		assert_int_equal(pthread_create(&thread, NULL, resume_elsewhere, fiber), 0);
		assert_int_equal(pthread_join(thread, &result), 0);
		assert_ptr_equal(result, fiber);
	}
	assert_true(!WAFFLE_SPAN_ID().value);
	free(fiber);
}

static void test_fibers_that_leave_in_the_order_they_began_bring_no_dead_span_back(void **state)
{
	struct fiber *a = fiber_new(), *b = fiber_new();

	(void)state;
	fiber_resume(a); /* a: span */
	fiber_resume(b); /* a: span, b: span within */
	assert_true(waffle_thread_get_()->depth_ == 2);
	fiber_resume(a); /* a leaves */
	assert_true(!WAFFLE_SPAN_ID().value);
	{
		WAFFLE_SPAN("another");
		waffle_span_id_t own = WAFFLE_SPAN_ID();

		{
			WAFFLE_SPAN("within");
			waffle_span_id_t within = WAFFLE_SPAN_ID();

			fiber_resume(b); /* b leaves: its outer span is a's, which has ended */
			assert_true(WAFFLE_SPAN_ID().value == within.value);
		}
		assert_true(WAFFLE_SPAN_ID().value == own.value);
	}
	assert_true(!WAFFLE_SPAN_ID().value);
	free(a);
	free(b);
}

static void test_spans_nest_deeper_than_there_is_room_to_remember(void **state)
{
	struct waffle_scope_ scopes[3 * WAFFLE_LINKS_];
	waffle_context_t context = {1, 2, 0};

	(void)state;
	for (unsigned i = 0; i < 3 * WAFFLE_LINKS_; i++) {
		context.span_id = i + 1;
		waffle_inject_(&scopes[i], context);
		assert_true(WAFFLE_SPAN_ID().value == i + 1);
	}
	for (unsigned i = 3 * WAFFLE_LINKS_; i-- > 0;) {
		assert_true(WAFFLE_SPAN_ID().value == i + 1);
		waffle_scope_pop_(&scopes[i]);
	}
	assert_true(!WAFFLE_SPAN_ID().value && !waffle_thread_get_()->depth_);
}

/* A signal handler that interrupts the begin of a scope, when that is counted but has no place yet,
 * has a scope where an earlier handler had one. */
static void test_a_handler_takes_no_scope_of_an_earlier_one_for_its_own(void **state)
{
	struct waffle_thread_ *thread = waffle_thread_get_();
	struct waffle_scope_ outer, handlers, inner, innermost;
	waffle_context_t context = {1, 2, 3};

	(void)state;
	waffle_inject_(&outer, context);
	waffle_inject_(&handlers, context);
	waffle_scope_pop_(&handlers);
	thread->depth_ = 2;
	waffle_scope_prune_(thread, &handlers);
	assert_int_equal(thread->depth_, 2);
	thread->depth_ = 1;
	/* Scopes that were jumped out of count as earlier ones, too. */
	waffle_inject_(&inner, context);
	waffle_inject_(&innermost, context);
	waffle_scope_pop_(&outer);
	thread->depth_ = 3;
	waffle_scope_prune_(thread, &innermost);
	waffle_scope_prune_(thread, &inner);
	assert_int_equal(thread->depth_, 3);
	thread->depth_ = 0;
	thread->context_ = (waffle_context_t){0, 0, 0};
}

#define armed(test) cmocka_unit_test_setup_teardown(test, arm, disarm)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ids_of_all_threads_differ_and_none_is_null),
		cmocka_unit_test(test_ids_of_a_forked_child_and_grandchild_differ_from_the_parents),
		cmocka_unit_test(test_ids_of_workers_forked_by_two_threads_at_once_differ),
		cmocka_unit_test(test_id_bases_are_of_siphash),
		cmocka_unit_test(test_a_traceparent_reads_and_writes_back_the_same),
		cmocka_unit_test(test_valid_traceparents_are_read),
		cmocka_unit_test(test_invalid_traceparents_leave_the_null_context),
		cmocka_unit_test(test_a_null_context_has_no_traceparent),
		cmocka_unit_test(test_dormant_sites_give_null_ids_and_evaluate_nothing),
		cmocka_unit_test_teardown(
			test_a_span_begun_dormant_and_left_armed_changes_no_context, disarm),
		cmocka_unit_test(test_injected_contexts_are_current_to_the_end_of_the_block),
		armed(test_armed_spans_nest_in_one_trace),
		armed(test_armed_arguments_are_evaluated_once_each),
		armed(test_armed_strings_of_every_length_are_copied_within_bounds),
		armed(test_sixteen_armed_strings_of_full_length_fit_the_frame),
		armed(test_an_armed_span_may_end_on_another_thread),
		armed(test_an_armed_span_in_an_injected_context_joins_its_trace),
		armed(test_a_span_disarmed_inside_still_ends),
		armed(test_a_block_around_a_longjmp_puts_its_context_back),
		armed(test_spans_that_are_jumped_out_of_again_and_again_do_not_nest),
		armed(test_a_span_that_ends_on_another_thread_leaves_its_context_alone),
		armed(test_fibers_that_leave_in_the_order_they_began_bring_no_dead_span_back),
		cmocka_unit_test(test_spans_nest_deeper_than_there_is_room_to_remember),
		cmocka_unit_test(test_a_handler_takes_no_scope_of_an_earlier_one_for_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
