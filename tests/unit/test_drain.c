// SPDX-License-Identifier: Apache-2.0
/* Records that the kernel's programs would not make, in a queue: each is counted, as lost. And
 * forks, which may not wait behind what is delivered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "capture/drain_internal.h"
#include "store/record.h"
#include "util/clock.h"

#define RECORDS 64
#define CPUS 1
#define QUEUES 1

/* The queue contains these records. */
struct kernel {
	struct waffle_cpu cpu[CPUS];
	struct waffle_tail tail[CPUS];
	struct waffle_rec_state records[RECORDS];
	size_t count;
	uint64_t forks;
	uint64_t skipped[WAFFLE_SOURCE_COUNT];
	bool enough;
};

#include "fake_kernel.h"

const struct waffle_rec_switch *kernel_slot(const struct kernel *kernel, uint32_t cpu,
					    uint64_t position)
{
	(void)kernel;
	(void)cpu;
	(void)position;
	return NULL;
}

void kernel_skipped(const struct kernel *kernel, uint64_t counts[WAFFLE_SOURCE_COUNT])
{
	memcpy(counts, kernel->skipped, sizeof(kernel->skipped));
}

uint64_t kernel_fork_count(const struct kernel *kernel)
{
	return kernel->forks;
}

bool kernel_ring_take(struct kernel *kernel, uint32_t queue, size_t bytes, kernel_take_fn *take,
		      void *arg)
{
	size_t taken = 0;

	(void)queue;
	(void)bytes;
	for (kernel->enough = false; taken < kernel->count && !kernel->enough; taken++)
		take(&kernel->records[taken], sizeof(kernel->records[taken]), arg);
	kernel->count -= taken;
	memmove(kernel->records, &kernel->records[taken],
		kernel->count * sizeof(kernel->records[0]));
	return !kernel->enough;
}

void kernel_take_enough(struct kernel *kernel)
{
	kernel->enough = true;
}

static int deliver(struct waffle_rec *rec, void *arg)
{
	unsigned *delivered = arg;

	assert_int_equal(rec->kind, WAFFLE_REC_TASK);
	(*delivered)++;
	return 0;
}

static void notice(const struct waffle_rec *rec, void *arg)
{
	(void)rec;
	(void)arg;
}

static int begin_round(uint64_t before_ts, void *arg)
{
	(void)before_ts;
	(void)arg;
	return 0;
}

static void test_records_that_cannot_be_are_lost_and_counted(void **state)
{
	struct kernel kernel = {
		.records = {{.rec = {.ts = 5, .kind = WAFFLE_REC_TASK}},
			    {.rec = {.ts = 5, .kind = WAFFLE_REC_STATE}},
			    {.rec = {.ts = 5, .kind = WAFFLE_REC_LOSS}},
			    {.rec = {.ts = UINT64_MAX, .kind = WAFFLE_REC_TASK}},
			    {.rec = {.ts = UINT64_MAX, .kind = WAFFLE_REC_QUOTA}},
			    {.rec = {.ts = RECORD_TS_MAX, .kind = WAFFLE_REC_TASK}},
			    {.rec = {.ts = 5, .kind = WAFFLE_REC_RING_COUNT}}},
		.count = 7,
		.cpu = {{.produced = {[WAFFLE_SOURCE_SPANS] = 6, [WAFFLE_SOURCE_WAITS] = 1}}}};
	unsigned delivered = 0;
	const struct drain_callbacks callbacks = {deliver, notice, NULL, begin_round, &delivered};
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct error err = ERROR_INIT;
	struct drain *drain;

	(void)state;
	assert_int_equal(drain_open(&drain, &kernel, &callbacks, &err), 0);
	assert_int_equal(drain_round(drain, true), 0);
	drain_counts(drain, counts);
	assert_int_equal(delivered, 2);
	assert_int_equal(counts[WAFFLE_SOURCE_SPANS].produced, 6);
	assert_int_equal(counts[WAFFLE_SOURCE_SPANS].delivered, 2);
	assert_int_equal(counts[WAFFLE_SOURCE_SPANS].lost, 4);
	assert_int_equal(counts[WAFFLE_SOURCE_WAITS].lost, 1);
	drain_close(drain);
}

/* The LOSS records that the drain delivered. */
struct losses {
	struct waffle_rec_loss list[4];
	unsigned count;
};

static int loss_take(struct waffle_rec *rec, void *arg)
{
	struct losses *losses = arg;

	assert_int_equal(rec->kind, WAFFLE_REC_LOSS);
	assert_in_range(losses->count, 0, 3);
	losses->list[losses->count++] = *(const struct waffle_rec_loss *)rec;
	return 0;
}

static void test_runs_that_the_kernel_skipped_are_lost_in_the_time_since_the_last_look(void **state)
{
	struct kernel kernel = {.skipped = {[WAFFLE_SOURCE_SCHED] = 3, [WAFFLE_SOURCE_WAITS] = 1}};
	struct losses losses = {0};
	const struct drain_callbacks callbacks = {loss_take, notice, NULL, begin_round, &losses};
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	uint64_t begin = clock_monotonic_ns();
	struct error err = ERROR_INIT;
	struct drain *drain;

	(void)state;
	assert_int_equal(drain_open(&drain, &kernel, &callbacks, &err), 0);
	assert_int_equal(drain_round(drain, false), 0);
	assert_int_equal(losses.count, 0); /* not every round looks */
	assert_int_equal(drain_round(drain, true), 0);
	assert_int_equal(losses.count, 2);
	assert_int_equal(losses.list[0].source, WAFFLE_SOURCE_SCHED);
	assert_int_equal(losses.list[0].count, 3);
	assert_int_equal(losses.list[1].source, WAFFLE_SOURCE_WAITS);
	assert_in_range(losses.list[0].from_ts, begin, losses.list[0].rec.ts);
	kernel.skipped[WAFFLE_SOURCE_SCHED] = 10;
	assert_int_equal(drain_round(drain, true), 0);
	assert_int_equal(losses.count, 3);
	assert_int_equal(losses.list[2].count, 7);
	assert_in_range(losses.list[2].from_ts, losses.list[0].from_ts + 1, losses.list[0].rec.ts);
	drain_counts(drain, counts);
	assert_int_equal(counts[WAFFLE_SOURCE_SCHED].produced, 10);
	assert_int_equal(counts[WAFFLE_SOURCE_SCHED].lost, 10);
	assert_int_equal(counts[WAFFLE_SOURCE_WAITS].lost, 1);
	assert_int_equal(counts[WAFFLE_SOURCE_SPANS].lost, 0);
	drain_close(drain);
}

/* A fork comes while records are delivered. */
struct forking {
	struct kernel kernel;
	unsigned delivered, noticed_after;
};

static int deliver_and_fork(struct waffle_rec *rec, void *arg)
{
	struct forking *forking = arg;

	(void)rec;
	if (++forking->delivered != 2)
		return 0;
	forking->kernel.records[0].rec = (struct waffle_rec){.ts = 7, .kind = WAFFLE_REC_FORK};
	forking->kernel.count = 1;
	forking->kernel.forks++;
	return 0;
}

static void notice_fork(const struct waffle_rec *rec, void *arg)
{
	struct forking *forking = arg;

	assert_int_equal(rec->kind, WAFFLE_REC_FORK);
	forking->noticed_after = forking->delivered;
}

static void test_fork_is_noticed_before_what_is_to_be_delivered(void **state)
{
	struct forking forking = {.kernel = {.count = RECORDS}};
	const struct drain_callbacks callbacks = {deliver_and_fork, notice_fork, NULL, begin_round,
						  &forking};
	struct error err = ERROR_INIT;
	struct drain *drain;

	(void)state;
	for (size_t i = 0; i < RECORDS; i++)
		forking.kernel.records[i].rec =
			(struct waffle_rec){.ts = 5, .kind = WAFFLE_REC_TASK};
	assert_int_equal(drain_open(&drain, &forking.kernel, &callbacks, &err), 0);
	assert_int_equal(drain_round(drain, false), 1);
	assert_in_range(forking.delivered, 2, RECORDS / 2);
	assert_true(drain_fork_waits(drain));
	assert_int_equal(drain_round(drain, true), 1);
	assert_false(drain_fork_waits(drain));
	assert_int_equal(drain_round(drain, true), 0);
	assert_in_range(forking.noticed_after, 2, RECORDS / 2);
	assert_int_equal(forking.delivered, RECORDS + 1);
	drain_close(drain);
}

static void notice_for_long(const struct waffle_rec *rec, void *arg)
{
	struct forking *forking = arg;

	(void)rec;
	forking->noticed_after++;
	usleep(30000);
}

static int deliver_forks(struct waffle_rec *rec, void *arg)
{
	(void)rec;
	(void)arg;
	return 0;
}

/* Signals are checked between two rounds. */
static void test_a_round_takes_no_more_forks_than_it_has_time_for(void **state)
{
	struct forking forking = {.kernel = {.count = 3, .forks = 3}};
	const struct drain_callbacks callbacks = {deliver_forks, notice_for_long, NULL, begin_round,
						  &forking};
	struct error err = ERROR_INIT;
	struct drain *drain;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		forking.kernel.records[i].rec =
			(struct waffle_rec){.ts = 5, .kind = WAFFLE_REC_FORK};
	assert_int_equal(drain_open(&drain, &forking.kernel, &callbacks, &err), 0);
	for (unsigned round = 1; round <= 3; round++) {
		assert_int_equal(drain_round(drain, false), 1);
		assert_int_equal(forking.noticed_after, round);
	}
	assert_false(drain_fork_waits(drain));
	drain_close(drain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork_is_noticed_before_what_is_to_be_delivered),
		cmocka_unit_test(test_a_round_takes_no_more_forks_than_it_has_time_for),
		cmocka_unit_test(test_records_that_cannot_be_are_lost_and_counted),
		cmocka_unit_test(
			test_runs_that_the_kernel_skipped_are_lost_in_the_time_since_the_last_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
