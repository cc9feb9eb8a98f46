// SPDX-License-Identifier: Apache-2.0
/* Records that the kernel's programs would not make, in a queue: each is counted, as lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "capture/drain.h"
#include "store/record.h"

#define CPUS 1
#define QUEUES 1

/* The queue has these records. */
struct kernel {
	struct waffle_cpu cpu[CPUS];
	struct waffle_tail tail[CPUS];
	struct waffle_rec_state records[8];
	size_t count;
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

bool kernel_queue_take(struct kernel *kernel, uint32_t queue, size_t bytes, kernel_take_fn *take,
		       void *arg)
{
	(void)queue;
	(void)bytes;
	for (size_t i = 0; i < kernel->count; i++)
		take(&kernel->records[i], sizeof(kernel->records[i]), arg);
	kernel->count = 0;
	return true;
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
	const struct drain_callbacks callbacks = {deliver, notice, begin_round, &delivered};
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records_that_cannot_be_are_lost_and_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
