// SPDX-License-Identifier: Apache-2.0
/* Pools whose threads always have a job, so that a further job has to wait. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_names.h"
#include "why_capture.h"

#define LIBUV                                                                                      \
	"all 2 threads of libuv's pool, such as node (11), are always busy: a further job waits "  \
	"for one of them"
#define PYTHON                                                                                     \
	"all 2 threads of a ThreadPoolExecutor, such as node (11), are always busy: a further "    \
	"job waits for one of them, unless the pool grows"

#define ONE "the only thread of libuv's pool, node (11), is always busy: a further job waits for it"

#define THREADPOOL "deps/uv/src/threadpool.c"
#define EXECUTOR "/usr/lib/python3.11/concurrent/futures/thread.py"

/* The stacks of the two threads of the pool, innermost frame first. */
struct pool_case {
	struct stack_frame frames[2][3];
	uint64_t idle_ns; /* for which thread 12 waits, at a futex; the same stack shows for what */
	bool lost;        /* records were lost */
	const char *third;   /* the name of thread 13, of which no stack is known; NULL: it is not
				there */
	const char *main;    /* the name of thread 10; NULL: "loop" */
	const char *manager; /* what is said of one; NULL: it is not looked at */
};

static void frames_of(void *arg, uint32_t stack, stack_frame_fn each, void *each_arg)
{
	const struct pool_case *of = arg;

	for (size_t i = 0; i < 3; i++)
		if (stack == 1 || stack == 2)
			each(&of->frames[stack - 1][i], each_arg);
}

static void add_stack(struct capture *capture, uint64_t address)
{
	struct store_stack stack = {.addresses = &address, .count = 1, .pid = CAPTURE_PID};
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
}

static void wait_with_stack(struct capture *capture, uint64_t from_ts, uint64_t ts, uint32_t tid,
			    uint32_t stack)
{
	struct waffle_rec_wait rec = {
		.rec = {ts, tid, WAFFLE_REC_WAIT, 0}, .from_ts = from_ts, .user_stack = stack};

	capture_add(capture, &rec);
}

/* Thread 10 waits for 11, which reads until 100000. */
static void explain(struct pool_case *of, const char *expected)
{
	struct stack_names names = {.arg = of, .frames = frames_of};
	struct capture capture;
	struct why *why;

	capture_begin(&capture, true);
	add_stack(&capture, 0x1000);
	add_stack(&capture, 0x2000);
	named(&capture, 10, CAPTURE_PID, of->main ?: "loop");
	named(&capture, 11, CAPTURE_PID, "node");
	named(&capture, 12, CAPTURE_PID, "node");
	if (of->third)
		named(&capture, 13, CAPTURE_PID, of->third);
	gets(&capture, 1000, 1, 0, 10, 0, 0, 0);
	gets(&capture, 1000, 2, 0, 11, 0, 0, 0);
	gets(&capture, 1000, 3, 0, 12, 0, 0, 0);
	capture_span(&capture, 2000, 10, 1);
	waits(&capture, 2000, 1, 10, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	waits(&capture, 2000, 2, 11, 0, S, NR_READ, 5, 0, 0);
	waits(&capture, 2000, 3, 12, 0, S, NR_FUTEX, 0x7f08, FUTEX_COND, 0);
	gets(&capture, 2000 + of->idle_ns, 3, 0, 12, 10, 2000 + of->idle_ns, 0);
	wait_with_stack(&capture, 2000, 2000 + of->idle_ns, 12, 2);
	gets(&capture, 99000, 2, 0, 11, 0, 99000, HARD);
	wait_with_stack(&capture, 2000, 99000, 11, 1);
	gets(&capture, 100000, 1, 0, 10, 11, 100000, 0);
	if (of->lost)
		capture_loss(&capture, 50000, 60000, WAFFLE_SOURCE_SCHED, 1);
	capture_end(&capture, 101000, 10, 1);
	why = ask(&capture, 102000, &(struct why_query){.name = "step", .names = &names});
	assert_string_equal(strtab_get(why->texts, why->instances.data[0].full_pool), expected);
	if (of->manager)
		assert_string_equal(strtab_get(why->texts, why->instances.data[0].manager),
				    of->manager);
	done(&capture, why);
}

static const struct stack_frame libuv_job[3] = {
	{.function = "read"},
	{.function = "uv__fs_work"},
	{.function = "worker", .file = THREADPOOL},
};
static const struct stack_frame libuv_idle[3] = {
	{.function = "pthread_cond_wait"},
	{.function = "uv_cond_wait"},
	{.function = "worker", .file = THREADPOOL},
};

static struct pool_case libuv(const struct stack_frame *second, uint64_t idle_ns, bool lost)
{
	struct pool_case of = {.idle_ns = idle_ns, .lost = lost};

	memcpy(of.frames[0], libuv_job, sizeof(libuv_job));
	memcpy(of.frames[1], second, sizeof(libuv_job));
	return of;
}

static void test_pool_without_an_idle_thread_is_full(void **state)
{
	struct pool_case busy = libuv(libuv_job, 90000, false);
	struct pool_case idle = libuv(libuv_idle, 90000, false);
	struct pool_case briefly = libuv(libuv_idle, 4000, false);
	struct pool_case lost = libuv(libuv_job, 90000, true);

	(void)state;
	explain(&busy, LIBUV);
	explain(&idle, "");
	explain(&briefly, LIBUV);
	explain(&lost, "");
}

static void test_pool_may_have_one_thread(void **state)
{
	struct pool_case of = libuv(libuv_idle, 90000, false);

	(void)state;
	of.frames[1][2].function = "other";
	explain(&of, ONE);
}

/* Another library may have a function of that name, in another file. */
static void test_threads_of_unknown_pools_are_not_counted(void **state)
{
	struct pool_case of = libuv(libuv_job, 90000, false);

	(void)state;
	of.frames[0][2].file = of.frames[1][2].file = "src/jobs.c";
	explain(&of, "");
	of.frames[0][2].file = of.frames[1][2].file = NULL;
	explain(&of, "");
}

static void test_thread_without_stacks_may_be_an_idle_one_of_the_pool(void **state)
{
	struct pool_case of = libuv(libuv_job, 90000, false);

	(void)state;
	of.third = "node";
	explain(&of, "");
	of.third = "signals";
	explain(&of, LIBUV);
}

#define FRAME(name)                                                                                \
	{                                                                                          \
		.function = name, .module = "[python]", .file = EXECUTOR                           \
	}

static void test_executor_has_no_job_if_it_has_called_no_function_of_python(void **state)
{
	struct pool_case of = {
		.frames = {{{.function = "read"}, FRAME("_WorkItem.run"), FRAME("_worker")},
			   {{.function = "futex"}, FRAME("_WorkItem.run"), FRAME("_worker")}},
		.idle_ns = 90000};

	(void)state;
	explain(&of, PYTHON);
	of.frames[1][1] = (struct stack_frame){.function = "_queue_SimpleQueue_get_impl"};
	explain(&of, "");
}

static void test_a_thread_of_a_manager_is_no_thread_of_its_client(void **state)
{
	struct pool_case of = {
		.frames = {{{.function = "read"},
			    {.function = "Server.serve_client",
			     .module = "[python]",
			     .file = "/usr/lib/python3.11/multiprocessing/managers.py"},
			    {.function = "Thread.run", .module = "[python]"}}},
		.idle_ns = 90000,
		.manager = "node (11) serves a client of a multiprocessing manager, and has the "
			   "client's name"};

	(void)state;
	explain(&of, "");
	of.main = "node";
	of.manager = "node (11) serves a client of a multiprocessing manager";
	explain(&of, "");
	of.frames[0][1].file = "/srv/managers.py";
	of.manager = "";
	explain(&of, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pool_without_an_idle_thread_is_full),
		cmocka_unit_test(test_pool_may_have_one_thread),
		cmocka_unit_test(test_threads_of_unknown_pools_are_not_counted),
		cmocka_unit_test(test_thread_without_stacks_may_be_an_idle_one_of_the_pool),
		cmocka_unit_test(test_a_thread_of_a_manager_is_no_thread_of_its_client),
		cmocka_unit_test(test_executor_has_no_job_if_it_has_called_no_function_of_python),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
