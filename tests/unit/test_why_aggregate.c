// SPDX-License-Identifier: Apache-2.0
/* The causes of all spans of a name, and what the slow ones have that the others have not. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analyze/why/why_aggregate.h"
#include "why_capture.h"

#define A 10
#define B 11
#define END_TS 10000000

static void begin(struct capture *capture)
{
	capture_begin(capture, true);
	named(capture, A, CAPTURE_PID, "a");
	named(capture, B, CAPTURE_PID, "b");
	capture_state(capture, CAPTURE_START, A, WAFFLE_THREAD_RUNNING, false);
	capture_state(capture, CAPTURE_START, B, WAFFLE_THREAD_RUNNING, false);
}

/* A span of A that runs for 1000 and waits for `wait` in a system call, which a timer ends. */
static void add_span(struct capture *capture, uint64_t *ts, uint64_t id, int syscall, uint64_t wait,
		     uint64_t arg)
{
	capture_span(capture, *ts, A, id);
	if (wait) {
		waits(capture, *ts + 500, 0, A, 0, S, syscall, arg, 0, 0);
		gets(capture, *ts + 500 + wait, 0, 0, A, 0, *ts + 500 + wait, HARD);
	}
	*ts += 1000 + wait;
	capture_end(capture, *ts, A, id);
	*ts += 10;
}

static uint64_t sum_of(const struct why_group *group)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < group->causes.len; i++) {
		const struct why_group_cause *cause = &group->causes.data[i];

		assert_true(cause->total_ns > 0);
		assert_true(cause->slow_ns <= cause->total_ns);
		assert_true(cause->median_ns <= cause->total_ns);
		assert_true(!i || cause[-1].total_ns >= cause->total_ns);
		sum += cause->total_ns;
	}
	return sum;
}

/* Checks a capture: its causes sum to the time of its spans. */
static struct why_aggregate *aggregate_of(struct capture *capture, uint64_t stretches)
{
	const struct why_aggregate_options options = {.stretches = stretches};
	struct why_aggregate *aggregate;
	struct error err = ERROR_INIT;

	capture_load(capture, END_TS);
	capture_must(why_aggregate_new(&aggregate, capture->model, &options, &err), err);
	for (size_t i = 0; i < aggregate->groups.len; i++) {
		const struct why_group *group = &aggregate->groups.data[i];

		assert_int_equal(sum_of(group), group->explained_ns);
		if (!aggregate->partial) {
			assert_int_equal(group->explained, group->count);
			assert_int_equal(group->explained_ns, group->total_ns);
		}
	}
	return aggregate;
}

static void finish(struct capture *capture, struct why_aggregate *aggregate)
{
	why_aggregate_free(aggregate);
	capture_free(capture);
}

static void test_causes_are_ranked_by_the_time_of_all_spans(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	const struct why_group *group;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 100; i++)
		add_span(&capture, &ts, 0x100 + i, NR_NANOSLEEP, i == 40 ? 250000 : 0, 0);
	capture_span(&capture, ts, A, 0x900); /* not ended: not counted */
	aggregate = aggregate_of(&capture, 0);

	group = why_aggregate_group(aggregate, SITE_STEP);
	assert_ptr_equal(group, why_aggregate_group(aggregate, SITE_STEP_AT)); /* of one name */
	assert_ptr_not_equal(group, why_aggregate_group(aggregate, SITE_LOAD));
	assert_string_equal(group->name, "step");
	assert_int_equal(group->count, 100);
	assert_int_equal(group->total_ns, 350000);
	assert_int_equal(group->unfinished, 1);
	assert_int_equal(group->unfinished_ns, END_TS - ts);
	assert_int_equal(group->p99_ns, 1000);
	assert_int_equal(group->causes.len, 2);
	assert_int_equal(group->causes.data[0].cause, WHY_SLEEP);
	assert_int_equal(group->causes.data[0].grade, WHY_GRADE_CERTAIN);
	assert_int_equal(group->causes.data[0].total_ns, 250000);
	assert_int_equal(group->causes.data[0].spans, 1);
	assert_true(group->causes.data[0].own);
	assert_string_equal(strtab_get(capture.model->strings, group->causes.data[0].comm), "a");
	assert_ptr_equal(&aggregate->groups.data[group->causes.data[0].span], group);
	assert_int_equal(group->causes.data[1].cause, WHY_RUNNING);
	assert_int_equal(group->causes.data[1].total_ns, 100000);
	assert_int_equal(group->causes.data[1].spans, 100);
	assert_int_equal(why_aggregate_group(aggregate, SITE_LOAD)->count, 0);
	finish(&capture, aggregate);
}

static void test_what_slow_spans_have_more_of_is_reported(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	const struct why_group *group;
	uint32_t causes[4];
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 100; i++)
		add_span(&capture, &ts, 0x100 + i, NR_NANOSLEEP, i >= 98 ? 40000 : 2000, 0);
	aggregate = aggregate_of(&capture, 0);

	group = why_aggregate_group(aggregate, SITE_STEP);
	assert_int_equal(group->p99_ns, 41000);
	assert_int_equal(group->slow_count, 2);
	assert_int_equal(group->slow_total_ns, 82000);
	assert_int_equal(group->median_count, 98);
	assert_int_equal(group->median_total_ns, 98 * 3000);
	assert_int_equal(group->causes.data[0].cause, WHY_SLEEP);
	assert_int_equal(group->causes.data[0].slow_ns, 80000);
	assert_int_equal(group->causes.data[0].median_ns, 98 * 2000);
	assert_int_equal(why_group_difference(group, &group->causes.data[0]), 38000);
	assert_int_equal(group->causes.data[1].cause, WHY_RUNNING);
	assert_int_equal(why_group_difference(group, &group->causes.data[1]), 0);
	assert_int_equal(why_group_different(group, causes, 4), 1);
	assert_int_equal(causes[0], 0);
	finish(&capture, aggregate);
}

static void test_spans_that_are_all_alike_have_no_difference(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	uint32_t causes[4];
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 100; i++)
		add_span(&capture, &ts, 0x100 + i, NR_NANOSLEEP, 2000 + i % 5, 0);
	aggregate = aggregate_of(&capture, 0);
	assert_int_equal(why_group_different(why_aggregate_group(aggregate, SITE_STEP), causes, 4),
			 0);
	finish(&capture, aggregate);
}

static void test_another_threads_work_and_its_span_are_the_culprit(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	const struct why_group *group;
	const struct why_group_cause *cause;

	(void)state;
	begin(&capture);
	capture_hit(&capture, 1500, B, SITE_LOAD, 0x200, 0, 2, (uint64_t[]){0, 0});
	for (uint64_t i = 0, ts = 2000; i < 10; i++, ts += 10000) {
		capture_span(&capture, ts, A, 0x100 + i);
		waits(&capture, ts + 1000, 0, A, 0, S, NR_FUTEX, 0x7000, FUTEX_COND, 0);
		gets(&capture, ts + 4000, 0, 0, A, B, ts + 4000, 0);
		capture_end(&capture, ts + 5000, A, 0x100 + i);
	}
	aggregate = aggregate_of(&capture, 0);

	group = why_aggregate_group(aggregate, SITE_STEP);
	assert_int_equal(group->total_ns, 50000);
	assert_int_equal(group->causes.len, 2);
	cause = &group->causes.data[0];
	assert_int_equal(cause->cause, WHY_USER_WORK);
	assert_int_equal(cause->total_ns, 30000);
	assert_int_equal(cause->spans, 10);
	assert_false(cause->own);
	assert_string_equal(strtab_get(capture.model->strings, cause->comm), "b");
	assert_string_equal(aggregate->groups.data[cause->span].name, "load");
	finish(&capture, aggregate);
}

static void test_own_threads_of_several_names_are_one_culprit(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	const struct why_group *group;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 4; i++) {
		capture_span(&capture, 2000 + i * 100, i % 2 ? A : B, 0x100 + i);
		capture_end(&capture, 2050 + i * 100, i % 2 ? A : B, 0x100 + i);
	}
	aggregate = aggregate_of(&capture, 0);
	group = why_aggregate_group(aggregate, SITE_STEP);
	assert_int_equal(group->causes.len, 1);
	assert_int_equal(group->causes.data[0].cause, WHY_RUNNING);
	assert_int_equal(group->causes.data[0].total_ns, 200);
	assert_true(group->causes.data[0].own);
	assert_int_equal(group->causes.data[0].comm, MODEL_NONE);
	finish(&capture, aggregate);
}

#define SOCKETS 3000

/* Each span at a socket of its own, but every other one at the same. */
static void test_culprits_beyond_the_largest_are_put_together_and_nothing_is_lost(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	const struct why_group *group;
	uint32_t merged = 0;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < SOCKETS; i++) {
		char name[32], address[32];

		snprintf(name, sizeof(name), "socket:[%u]", 1 + i);
		snprintf(address, sizeof(address), "unix /run/%u", 1 + i);
		object(&capture, name, address);
	}
	for (uint32_t i = 0; i < SOCKETS; i++) {
		add_span(&capture, &ts, 0x1000 + i, NR_RECVFROM, 1000, 0);
		wait_details(&capture, ts - 10 - 1500, ts - 10 - 500, A, i % 2 ? SOCKETS : 1 + i, 0,
			     0);
	}
	aggregate = aggregate_of(&capture, 0);

	group = why_aggregate_group(aggregate, SITE_STEP);
	assert_int_equal(group->total_ns, SOCKETS * 2000);
	assert_true(group->causes.len <= WHY_GROUP_CAUSES_MAX);
	assert_true(group->causes.len > WHY_GROUP_CAUSES_MAX / 2);
	assert_int_equal(group->causes.data[0].cause, WHY_RUNNING);
	assert_int_equal(group->causes.data[0].total_ns, SOCKETS * 1000);
	assert_int_equal(group->causes.data[1].total_ns, SOCKETS / 2 * 1000);
	assert_string_equal(strtab_get(aggregate->why->texts, group->causes.data[1].object),
			    "socket:[3000] (unix /run/3000)");
	for (size_t i = 0; i < group->causes.len; i++)
		merged += group->causes.data[i].merged;
	assert_int_equal(group->causes.len - 1 + merged, 2 + SOCKETS / 2);
	finish(&capture, aggregate);
}

/* Each span has a connection of its own, to one of two servers; the last two have one to a third.
 */
static void test_connections_of_many_spans_to_one_server_are_one_cause(void **state)
{
	static const char *const servers[] = {"80", "80", "81", "81", "80", "82", "82"};
	const struct why_group_cause *causes;
	struct capture capture;
	struct why_aggregate *aggregate;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < 7; i++) {
		uint32_t number = i < 5 ? i + 1 : 6;
		char name[32], ends[64];

		snprintf(name, sizeof(name), "socket:[%u]", number);
		snprintf(ends, sizeof(ends), "tcp 10.0.0.1:%u <-> 10.0.0.2:%s", 40000 + number,
			 servers[i]);
		if (number == i + 1)
			object(&capture, name, ends);
		add_span(&capture, &ts, 0x100 + i, NR_RECVFROM, 9000, 0);
		wait_details(&capture, ts - 10 - 9500, ts - 10 - 500, A, number, 0, 0);
	}
	aggregate = aggregate_of(&capture, 0);

	causes = why_aggregate_group(aggregate, SITE_STEP)->causes.data;
	assert_int_equal(why_aggregate_group(aggregate, SITE_STEP)->causes.len, 4);
	assert_int_equal(causes[0].total_ns, 3 * 9000);
	assert_int_equal(causes[0].spans, 3);
	assert_int_equal(causes[0].connections, 3);
	assert_string_equal(strtab_get(aggregate->why->texts, causes[0].object),
			    "connections to 10.0.0.2:80 (tcp)");
	assert_int_equal(causes[1].connections, 2);
	assert_int_equal(causes[2].connections, 0);
	assert_string_equal(strtab_get(aggregate->why->texts, causes[2].object),
			    "socket:[6] (tcp 10.0.0.1:40006 <-> 10.0.0.2:82)");
	finish(&capture, aggregate);
}

/* Each span waits for a futex of its own, but every other one for the same. */
static void test_futexes_that_a_program_makes_for_each_span_are_one_cause(void **state)
{
	const struct why_group_cause *causes;
	struct capture capture;
	struct why_aggregate *aggregate;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < 20; i++)
		add_span(&capture, &ts, 0x100 + i, NR_FUTEX, 9000,
			 i % 2 ? 0x7000 : 0x100000 + i * 64);
	aggregate = aggregate_of(&capture, 0);

	causes = why_aggregate_group(aggregate, SITE_STEP)->causes.data;
	assert_int_equal(why_aggregate_group(aggregate, SITE_STEP)->causes.len, 3);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(causes[i].total_ns, 10 * 9000);
		assert_true(causes[i].own);
	}
	assert_string_equal(strtab_get(aggregate->why->texts, causes[0].object), "futex 0x7000");
	assert_int_equal(causes[0].merged, 0);
	assert_string_equal(strtab_get(aggregate->why->texts, causes[1].object), "10 futexes");
	assert_int_equal(causes[1].merged, 10);
	finish(&capture, aggregate);
}

/* Four are few enough to be told apart. */
static void test_few_futexes_have_a_cause_each(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < 20; i++)
		add_span(&capture, &ts, 0x100 + i, NR_FUTEX, 9000, 0x7000 + i % 4 * 64);
	aggregate = aggregate_of(&capture, 0);

	assert_int_equal(why_aggregate_group(aggregate, SITE_STEP)->causes.len, 5);
	finish(&capture, aggregate);
}

/* A third of the time of these five is a nanosecond, too, when rounded. */
static void test_futexes_of_a_nanosecond_are_one_cause(void **state)
{
	const struct why_group *group;
	struct capture capture;
	struct why_aggregate *aggregate;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint32_t i = 0; i < 5; i++)
		add_span(&capture, &ts, 0x100 + i, NR_FUTEX, 1, 0x7000 + i * 64);
	aggregate = aggregate_of(&capture, 0);

	group = why_aggregate_group(aggregate, SITE_STEP);
	assert_int_equal(group->causes.len, 2);
	assert_int_equal(group->causes.data[1].total_ns, 5);
	assert_string_equal(strtab_get(aggregate->why->texts, group->causes.data[1].object),
			    "5 futexes");
	finish(&capture, aggregate);
}

#define LONG (1ull << 62)
#define LONG_THREADS 5

/* As in a damaged capture, all of them take longer together than 64 bits can count. */
static void test_futexes_of_centuries_have_a_cause_each(void **state)
{
	const struct why_aggregate_options options = {0};
	struct why_aggregate *aggregate;
	struct error err = ERROR_INIT;
	struct capture capture;

	(void)state;
	capture_begin(&capture, true);
	for (uint32_t i = 0; i < LONG_THREADS; i++) {
		named(&capture, A + i, CAPTURE_PID, "a");
		capture_state(&capture, CAPTURE_START, A + i, WAFFLE_THREAD_RUNNING, false);
	}
	for (uint32_t i = 0; i < LONG_THREADS; i++)
		capture_span(&capture, 2000 + i, A + i, 0x100 + i);
	for (uint32_t i = 0; i < LONG_THREADS; i++)
		waits(&capture, 3000 + i, (uint16_t)i, A + i, 0, S, NR_FUTEX, 0x7000 + i * 64, 0,
		      0);
	for (uint32_t i = 0; i < LONG_THREADS; i++)
		gets(&capture, LONG + 2 * i + 1, (uint16_t)i, 0, A + i, 0, LONG + 2 * i, HARD);
	for (uint32_t i = 0; i < LONG_THREADS; i++)
		capture_end(&capture, LONG + 3000 + i, A + i, 0x100 + i);
	capture_load(&capture, LONG + 4000);
	capture_must(why_aggregate_new(&aggregate, capture.model, &options, &err), err);

	assert_true(why_aggregate_group(aggregate, SITE_STEP)->causes.len >= LONG_THREADS);
	finish(&capture, aggregate);
}

/* The third one waits longest. */
static void test_pipes_that_a_program_makes_for_each_span_are_one_cause(void **state)
{
	const struct why_group *group;
	struct capture capture;
	struct why_aggregate *aggregate;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint32_t i = 1; i <= 6; i++) {
		uint64_t wait = i == 3 ? 9000 : 5000;
		char name[32];

		snprintf(name, sizeof(name), "pipe:[%u]", 4710 + i);
		object(&capture, name, "");
		add_span(&capture, &ts, 0x100 + i, NR_READ, wait, 0);
		wait_details(&capture, ts - 10 - 500 - wait, ts - 10 - 500, A, i, 0, 0);
	}
	aggregate = aggregate_of(&capture, 0);

	group = why_aggregate_group(aggregate, SITE_STEP);
	assert_int_equal(group->causes.len, 2);
	assert_int_equal(group->causes.data[0].total_ns, 5 * 5000 + 9000);
	assert_int_equal(group->causes.data[0].merged, 6);
	assert_string_equal(strtab_get(aggregate->why->texts, group->causes.data[0].object),
			    "pipe:[4713] and 5 more");
	finish(&capture, aggregate);
}

/* The second file is as slow as the others, or takes three quarters of their time. */
static void test_numbered_files_are_one_cause_but_the_slow_one(void **state)
{
	static const struct {
		uint64_t wait;
		const char *texts[3];
	} rows[] = {{5500, {"/d/seg.2 (ext4) and 2 more", ""}},
		    {30000, {"/d/seg.2 (ext4)", "/d/seg.1 (ext4) and 1 more", ""}}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct why_group *group;
		struct capture capture;
		struct why_aggregate *aggregate;
		uint64_t ts = 2000;

		begin(&capture);
		for (uint32_t k = 1; k <= 3; k++) {
			uint64_t wait = k == 2 ? rows[i].wait : 5000;
			char name[32];

			snprintf(name, sizeof(name), "/d/seg.%u", k);
			object(&capture, name, "ext4");
			add_span(&capture, &ts, 0x100 + k, NR_READ, wait, 0);
			wait_details(&capture, ts - 10 - 500 - wait, ts - 10 - 500, A, k, 0, 0);
		}
		aggregate = aggregate_of(&capture, 0);
		group = why_aggregate_group(aggregate, SITE_STEP);
		assert_int_equal(group->causes.len, i + 2);
		for (size_t k = 0; k < group->causes.len; k++)
			assert_string_equal(
				strtab_get(aggregate->why->texts, group->causes.data[k].object),
				rows[i].texts[k]);
		finish(&capture, aggregate);
	}
}

/* A span waits for thread 30 of another process, and then for the CPU that it has. The process is
 * named in each cause if another one has its name. */
static void test_the_time_of_a_process_is_summed_over_its_causes(void **state)
{
	static const char *const names[] = {"peer", "a"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct why_group *group;
		struct capture capture;
		struct why_aggregate *aggregate;
		const struct why_group_process *sums;
		const struct model_process *named_one;

		begin(&capture);
		named(&capture, 30, 30, names[i]);
		gets(&capture, CAPTURE_START, 1, 0, 30, 0, 0, 0);
		capture_span(&capture, 2000, A, 0x100);
		waits(&capture, 2100, 0, A, 0, S, NR_FUTEX, 0x7000, 0, 0);
		gets(&capture, 5100, 0, 0, A, 30, 5100, 0);
		gets(&capture, 6000, 0, A, 30, 0, 0, 0);
		gets(&capture, 10000, 0, 30, A, 0, 0, 0);
		capture_end(&capture, 10100, A, 0x100);
		aggregate = aggregate_of(&capture, 0);
		group = why_aggregate_group(aggregate, SITE_STEP);
		sums = group->processes.data;
		assert_int_equal(group->processes.len, 2);
		assert_int_equal(capture.model->processes.data[sums[0].process].pid, 30);
		assert_int_equal(sums[0].ns, 3000 + 4000);
		assert_int_equal(sums[0].others_ns, 3000 + 4000);
		assert_int_equal(capture.model->processes.data[sums[1].process].pid, CAPTURE_PID);
		assert_int_equal(sums[1].ns, 100 + 900 + 100);
		assert_int_equal(sums[1].others_ns, 0);
		assert_int_equal(group->causes.data[0].total_ns, 4000);
		named_one = why_group_cause_process(aggregate, group, &group->causes.data[0]);
		assert_ptr_equal(named_one,
				 i ? &capture.model->processes.data[sums[0].process] : NULL);
		finish(&capture, aggregate);
	}
}

/* A span waits for the CPU that thread 30 has for 4000, and then thread 31 for 1000. */
static void test_the_process_with_three_quarters_of_a_cause_is_known(void **state)
{
	const struct why_group *group;
	struct capture capture;
	struct why_aggregate *aggregate;

	(void)state;
	begin(&capture);
	named(&capture, 30, 30, "peer");
	named(&capture, 31, 31, "peer");
	capture_span(&capture, 2000, A, 0x100);
	gets(&capture, 3000, 0, A, 30, 0, 0, 0);
	gets(&capture, 7000, 0, 30, 31, 0, 0, 0);
	gets(&capture, 8000, 0, 31, A, 0, 0, 0);
	capture_end(&capture, 8100, A, 0x100);
	aggregate = aggregate_of(&capture, 0);
	group = why_aggregate_group(aggregate, SITE_STEP);
	assert_int_equal(group->causes.data[0].total_ns, 4000 + 1000);
	assert_int_equal(why_group_cause_process(aggregate, group, &group->causes.data[0])->pid,
			 30);
	finish(&capture, aggregate);
}

static void test_losses_leave_nothing_certain(void **state)
{
	struct waffle_rec_loss loss = {.rec = {END_TS - 1000, 0, WAFFLE_REC_LOSS, 0},
				       .source = WAFFLE_SOURCE_WAITS,
				       .from_ts = CAPTURE_START + 1,
				       .count = 3};
	struct capture capture;
	struct why_aggregate *aggregate;
	const struct why_group *group;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 20; i++)
		add_span(&capture, &ts, 0x100 + i, NR_NANOSLEEP, 2000, 0);
	capture_add(&capture, &loss);
	capture.lost[WAFFLE_SOURCE_WAITS] += 3;
	aggregate = aggregate_of(&capture, 0);
	group = why_aggregate_group(aggregate, SITE_STEP);
	assert_int_equal(group->causes.data[0].cause, WHY_SLEEP);
	for (size_t i = 0; i < group->causes.len; i++)
		assert_int_equal(group->causes.data[i].grade, WHY_GRADE_LIKELY);
	finish(&capture, aggregate);
}

static void test_what_is_not_explained_is_said_and_the_rest_still_sums(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	const struct why_group *group;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 100; i++)
		add_span(&capture, &ts, 0x100 + i, NR_NANOSLEEP, 2000, 0);
	aggregate = aggregate_of(&capture, 30); /* three stretches a span */
	group = why_aggregate_group(aggregate, SITE_STEP);
	assert_true(aggregate->partial);
	assert_int_equal(group->count, 100);
	assert_int_equal(group->explained, 10);
	assert_int_equal(group->explained_ns, 30000);
	finish(&capture, aggregate);
}

/* Slices of the capture are explained on several threads. */
static void test_sums_are_exact_and_repeat_when_there_are_many_slices(void **state)
{
	const struct why_aggregate_options options = {0};
	struct why_aggregate *first, *again;
	struct error err = ERROR_INIT;
	struct capture capture;
	const struct why_group *a, *b;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < WHY_EACH_SWITCHES * 5 / 4; i++)
		add_span(&capture, &ts, 0x100 + i, i % 3 ? NR_NANOSLEEP : NR_READ, 1 + i % 7,
			 i % 5);
	capture_load(&capture, ts);
	capture_must(why_aggregate_new(&first, capture.model, &options, &err), err);
	capture_must(why_aggregate_new(&again, capture.model, &options, &err), err);
	a = why_aggregate_group(first, SITE_STEP);
	b = why_aggregate_group(again, SITE_STEP);
	assert_false(first->partial);
	assert_int_equal(a->explained, WHY_EACH_SWITCHES * 5 / 4);
	assert_int_equal(sum_of(a), a->total_ns);
	assert_true(a->causes.len > 1);
	assert_int_equal(a->causes.len, b->causes.len);
	for (size_t i = 0; i < a->causes.len; i++) {
		assert_int_equal(a->causes.data[i].cause, b->causes.data[i].cause);
		assert_int_equal(a->causes.data[i].total_ns, b->causes.data[i].total_ns);
		assert_int_equal(a->causes.data[i].spans, b->causes.data[i].spans);
		assert_string_equal(strtab_get(first->why->texts, a->causes.data[i].object),
				    strtab_get(again->why->texts, b->causes.data[i].object));
	}
	why_aggregate_free(again);
	finish(&capture, first);
}

/* The causes that `why` gives for each span sum to those of the aggregate. */
static void test_sums_are_those_of_the_answers_one_by_one(void **state)
{
	uint64_t sums[WHY_CAUSE_COUNT] = {0}, all[WHY_CAUSE_COUNT] = {0};
	struct capture capture;
	struct why_aggregate *aggregate;
	const struct why_group *group;
	struct error err = ERROR_INIT;
	struct why *why;
	uint64_t ts = 2000;

	(void)state;
	begin(&capture);
	for (uint64_t i = 0; i < 200; i++)
		add_span(&capture, &ts, 0x100 + i,
			 (int[]){NR_NANOSLEEP, NR_FUTEX, NR_FSYNC, NR_POLL}[i % 4],
			 i % 3 ? 100 + i * 7 : 0, 0x7000);
	aggregate = aggregate_of(&capture, 0);
	capture_must(why_new(&why, capture.model, &(struct why_query){.name = "step"}, &err), err);
	check_why(why);
	for (size_t i = 0; i < why->parts.len; i++)
		sums[why->parts.data[i].cause] += why->parts.data[i].ns;
	group = why_aggregate_group(aggregate, SITE_STEP);
	for (size_t i = 0; i < group->causes.len; i++)
		all[group->causes.data[i].cause] += group->causes.data[i].total_ns;
	for (unsigned i = 0; i < WHY_CAUSE_COUNT; i++)
		assert_int_equal(all[i], sums[i]);
	why_free(why);
	finish(&capture, aggregate);
}

static void test_without_the_scheduler_it_says_so(void **state)
{
	struct capture capture;
	struct why_aggregate *aggregate;
	struct error err = ERROR_INIT;

	(void)state;
	capture_begin(&capture, false);
	capture_span(&capture, 2000, A, 0x100);
	capture_end(&capture, 3000, A, 0x100);
	assert_int_equal(why_aggregate_new(&aggregate, capture_load(&capture, END_TS),
					   &(struct why_aggregate_options){0}, &err),
			 -ENODATA);
	assert_null(aggregate);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes_are_ranked_by_the_time_of_all_spans),
		cmocka_unit_test(test_what_slow_spans_have_more_of_is_reported),
		cmocka_unit_test(test_spans_that_are_all_alike_have_no_difference),
		cmocka_unit_test(test_another_threads_work_and_its_span_are_the_culprit),
		cmocka_unit_test(test_own_threads_of_several_names_are_one_culprit),
		cmocka_unit_test(
			test_culprits_beyond_the_largest_are_put_together_and_nothing_is_lost),
		cmocka_unit_test(test_connections_of_many_spans_to_one_server_are_one_cause),
		cmocka_unit_test(test_futexes_that_a_program_makes_for_each_span_are_one_cause),
		cmocka_unit_test(test_few_futexes_have_a_cause_each),
		cmocka_unit_test(test_futexes_of_a_nanosecond_are_one_cause),
		cmocka_unit_test(test_futexes_of_centuries_have_a_cause_each),
		cmocka_unit_test(test_pipes_that_a_program_makes_for_each_span_are_one_cause),
		cmocka_unit_test(test_numbered_files_are_one_cause_but_the_slow_one),
		cmocka_unit_test(test_the_time_of_a_process_is_summed_over_its_causes),
		cmocka_unit_test(test_the_process_with_three_quarters_of_a_cause_is_known),
		cmocka_unit_test(test_losses_leave_nothing_certain),
		cmocka_unit_test(test_what_is_not_explained_is_said_and_the_rest_still_sums),
		cmocka_unit_test(test_sums_are_exact_and_repeat_when_there_are_many_slices),
		cmocka_unit_test(test_sums_are_those_of_the_answers_one_by_one),
		cmocka_unit_test(test_without_the_scheduler_it_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
