// SPDX-License-Identifier: Apache-2.0
/* Clocks of hosts that are aligned by the collectives in a capture. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "calls_capture.h"

#include "model/clock/clock.h"

#define US 1000ull
#define MS 1000000ull
#define COMM 0xc0ffee
#define HOSTS 3
#define TRANSFER (20 * US)

/* Host 1 booted later than host 0 and runs fast, host 2 booted much earlier and runs slow. */
static const double rates[HOSTS] = {1, 1.0001, 0.9998};
static const int64_t offsets[HOSTS] = {0, -3000000, 86400000000000ll};

static uint64_t clock_of(uint32_t host, uint64_t ts)
{
	return (uint64_t)((int64_t)llround((double)ts * rates[host % HOSTS]) +
			  offsets[host % HOSTS]);
}

/* A file for each host, and all of them as one job. */
struct job {
	struct capture captures[HOSTS];
	uint32_t count;
	struct store_reader *reader;
};

static void job_begin(struct job *job, uint32_t count)
{
	static const char *const names[HOSTS] = {"node-a", "node-b", "node-c"};
	struct error err = ERROR_INIT;

	*job = (struct job){.count = count};
	for (uint32_t i = 0; i < count; i++) {
		struct capture *capture = &job->captures[i];
		struct store_meta meta = {.start_ts = clock_of(i, 10 * MS),
					  .boot_ns = clock_of(i, 10 * MS),
					  .real_ns = 1700000000000000000ull + 500 * US * i,
					  .hostname = names[i],
					  .boot_id = names[i],
					  .kernel = "6.1.0",
					  .machine = "x86_64",
					  .version = "0.1.0",
					  .command = "a",
					  .filter = "",
					  .sources = "spans",
					  .cpu_count = 2};
		int fd;

		strcpy(capture->path, "/tmp/waffle-align-XXXXXX");
		fd = mkstemp(capture->path);
		assert_true(fd >= 0);
		close(fd);
		capture_must(store_writer_open(&capture->writer, capture->path, &meta, &err), err);
		for (size_t k = 0; k < CAPTURE_SITES; k++)
			capture_must(
				store_writer_add_site(capture->writer, &capture_sites[k], &err),
				err);
		calls_add_sites(capture);
	}
}

static void job_open(struct job *job)
{
	const char *paths[HOSTS];
	struct error err = ERROR_INIT;

	for (uint32_t i = 0; i < job->count; i++) {
		struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
		struct capture *capture = &job->captures[i];

		counts[WAFFLE_SOURCE_SPANS].produced = capture->records;
		counts[WAFFLE_SOURCE_SPANS].delivered = capture->records;
		capture_must(
			store_writer_close(capture->writer, clock_of(i, 2000 * MS), counts, &err),
			err);
		paths[i] = capture->path;
	}
	capture_must(store_reader_open_files(&job->reader, paths, job->count, NULL, &err), err);
}

static void job_free(struct job *job)
{
	store_reader_close(job->reader);
	for (uint32_t i = 0; i < job->count; i++)
		unlink(job->captures[i].path);
}

/* A call of a rank, which is process 100 + rank of the host with that number. Times are true. */
struct made_call {
	uint32_t rank, site;
	uint64_t from, to, id;
};

static void call(struct job *job, const struct made_call *made, unsigned count,
		 const uint64_t *words, unsigned result_count, const uint64_t *result)
{
	struct capture *capture = &job->captures[made->rank];
	uint32_t tid = 100 + made->rank;

	call_hit_in(capture, tid, clock_of(made->rank, made->from), tid, made->site, made->id,
		    count, words);
	call_return_in(capture, tid, clock_of(made->rank, made->to), tid, made->site, made->id,
		       result_count, result);
}

static void init(struct job *job, uint32_t rank, uint32_t nranks)
{
	const uint64_t words[] = {rank, nranks}, comm = COMM;

	call(job, &(struct made_call){rank, CALL_COMM_INIT, 10 * MS, 11 * MS, 0xa000 + rank}, 2,
	     words, 1, &comm);
}

/* All-reduce number `seq`: each rank enters at its time and waits until the last one has, and the
 * transfer is done. */
static void reduce(struct job *job, uint32_t nranks, uint64_t seq, const uint64_t *enters)
{
	const uint64_t stream = 0xa;
	uint64_t last = 0;

	for (uint32_t i = 0; i < nranks; i++)
		last = enters[i] > last ? enters[i] : last;
	for (uint32_t i = 0; i < nranks; i++) {
		const uint64_t words[] = {1024, 7, COMM, i, nranks, seq, stream};
		uint64_t id = (seq + 1) << 16 | i << 8;

		call(job, &(struct made_call){i, CALL_ALL_REDUCE, enters[i], enters[i] + 100, id},
		     7, words, 0, NULL);
		call(job,
		     &(struct made_call){i, CALL_SYNC, enters[i] + 200, last + TRANSFER, id + 1}, 1,
		     &stream, 0, NULL);
	}
}

/* A job in which each rank comes last at times. */
static void make_job(struct job *job, uint32_t nranks, unsigned reduces)
{
	job_begin(job, nranks);
	for (uint32_t i = 0; i < nranks; i++)
		init(job, i, nranks);
	for (unsigned k = 0; k < reduces; k++) {
		uint64_t at = (20 + 10 * k) * MS, enters[HOSTS];

		for (uint32_t i = 0; i < nranks; i++)
			enters[i] = at + (i + k) % nranks * MS;
		reduce(job, nranks, k, enters);
	}
}

static void test_collectives_align_hosts_within_twice_the_transfer(void **state)
{
	struct error err = ERROR_INIT;
	struct job job;
	uint32_t unaligned;

	(void)state;
	make_job(&job, HOSTS, 100);
	job_open(&job);
	capture_must(clock_align(job.reader, CLOCK_ALIGN_AUTO, &unaligned, &err), err);
	assert_int_equal(unaligned, 0);
	assert_int_equal(store_reader_host(job.reader, 0)->clock.kind, STORE_CLOCK_REFERENCE);
	for (uint32_t i = 1; i < HOSTS; i++) {
		const struct store_clock *clock = &store_reader_host(job.reader, i)->clock;

		assert_int_equal(clock->kind, STORE_CLOCK_ALIGNED);
		assert_int_equal(clock->collectives, 100);
		assert_true(fabs(clock->drift - (1 / rates[i] - 1)) < 1e-6);
		for (uint64_t ts = 10 * MS; ts < 1020 * MS; ts += MS) {
			uint64_t found = store_clock_apply(clock, clock_of(i, ts));
			uint64_t error = store_clock_error_at(clock, found);

			assert_true((uint64_t)llabs((int64_t)(found - ts)) <= error + 1);
			/* In the middle, the half width is at most the shortest transfer. */
			if (ts == 500 * MS)
				assert_true(error <= TRANSFER + TRANSFER / 100);
		}
	}
	job_free(&job);
}

static void test_wall_and_none_are_as_asked(void **state)
{
	const struct store_clock *clock;
	struct error err = ERROR_INIT;
	struct job job;
	uint32_t unaligned;

	(void)state;
	make_job(&job, 2, 1);
	job_open(&job);
	capture_must(clock_align(job.reader, CLOCK_ALIGN_WALL, &unaligned, &err), err);
	clock = &store_reader_host(job.reader, 1)->clock;
	assert_int_equal(clock->kind, STORE_CLOCK_WALL);
	assert_int_equal(store_clock_apply(clock, clock_of(1, 10 * MS)), 10 * MS + 500 * US);
	assert_true(store_clock_error_at(clock, 10 * MS) == UINT64_MAX);
	capture_must(clock_align(job.reader, CLOCK_ALIGN_NONE, &unaligned, &err), err);
	assert_int_equal(clock->kind, STORE_CLOCK_NONE);
	assert_int_equal(store_clock_apply(clock, 77), 77);
	job_free(&job);
}

static void test_host_that_did_nothing_with_others_has_the_wall_clock(void **state)
{
	const struct store_clock *clock;
	struct error err = ERROR_INIT;
	struct job job;
	uint32_t unaligned;

	(void)state;
	make_job(&job, 2, 0);
	job_open(&job);
	capture_must(clock_align(job.reader, CLOCK_ALIGN_AUTO, &unaligned, &err), err);
	clock = &store_reader_host(job.reader, 1)->clock;
	assert_int_equal(unaligned, 1);
	assert_int_equal(clock->kind, STORE_CLOCK_WALL);
	job_free(&job);
}

/* Rank 1 leaves each broadcast before rank 0, the root, has called it: there is no data to wait
 * for. */
static void test_broadcast_of_no_elements_bounds_no_clock(void **state)
{
	const uint64_t stream = 0xa;
	struct error err = ERROR_INIT;
	struct job job;
	uint32_t unaligned;

	(void)state;
	make_job(&job, 2, 50);
	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t words[] = {0, 0, COMM, i, 2, 50, stream};
		uint64_t from = (i ? 700 : 800) * MS;

		call(&job, &(struct made_call){i, CALL_BROADCAST, from, from + 100, 0x7100 + i}, 7,
		     words, 0, NULL);
		call(&job, &(struct made_call){i, CALL_SYNC, from + 200, from + 300, 0x7200 + i}, 1,
		     &stream, 0, NULL);
	}
	job_open(&job);
	capture_must(clock_align(job.reader, CLOCK_ALIGN_AUTO, &unaligned, &err), err);
	assert_int_equal(unaligned, 0);
	job_free(&job);
}

static void test_collectives_that_contradict_each_other_are_named(void **state)
{
	uint64_t early[] = {20 * MS, 21 * MS}, late[] = {31 * MS, 30 * MS};
	struct error err = ERROR_INIT;
	struct job job;
	uint32_t unaligned;

	(void)state;
	job_begin(&job, 2);
	init(&job, 0, 2);
	init(&job, 1, 2);
	reduce(&job, 2, 0, early);
	reduce(&job, 2, 1, late);
	/* Its clock was set by 10 s between the two. */
	{
		const uint64_t stream = 0xa, words[] = {1024, 7, COMM, 0, 2, 2, stream};
		const uint64_t others[] = {1024, 7, COMM, 1, 2, 2, stream};

		call(&job, &(struct made_call){0, CALL_ALL_REDUCE, 40 * MS, 41 * MS, 0x71}, 7,
		     words, 0, NULL);
		call(&job, &(struct made_call){0, CALL_SYNC, 41 * MS, 42 * MS, 0x72}, 1, &stream, 0,
		     NULL);
		call(&job, &(struct made_call){1, CALL_ALL_REDUCE, 10040 * MS, 10041 * MS, 0x73}, 7,
		     others, 0, NULL);
		call(&job, &(struct made_call){1, CALL_SYNC, 10041 * MS, 10042 * MS, 0x74}, 1,
		     &stream, 0, NULL);
	}
	job_open(&job);
	assert_int_equal(clock_align(job.reader, CLOCK_ALIGN_AUTO, &unaligned, &err), -EDOM);
	assert_non_null(strstr(err.message, "node-a"));
	assert_non_null(strstr(err.message, "node-b"));
	assert_non_null(strstr(err.message, "ncclAllReduce number 2 of ranks 0 and 1"));
	job_free(&job);
}

static void test_times_of_an_aligned_job_are_those_of_the_first_host(void **state)
{
	struct error err = ERROR_INIT;
	struct model *model;
	struct job job;
	uint32_t unaligned, other = MODEL_NONE;

	(void)state;
	make_job(&job, 2, 50);
	job_open(&job);
	capture_must(clock_align(job.reader, CLOCK_ALIGN_AUTO, &unaligned, &err), err);
	capture_must(model_load(&model, job.reader, STORE_ALL, NULL, &err), err);
	assert_true(model->aligned);
	assert_true(model_hosts_comparable(model, 0, 1));
	/* Rank 1's all-reduces began at 20 ms, 30 ms, … or a millisecond after. */
	for (uint32_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		uint64_t off = span->start_ts % (10 * MS);

		if (model_site(model, span->site)->role != SITE_ROLE_COLLECTIVE ||
		    model_host_of(model, span->thread) != 1)
			continue;
		other = span->thread;
		assert_true(off < MS + 30 * US || off > 10 * MS - 30 * US);
	}
	assert_int_not_equal(other, MODEL_NONE);
	for (uint32_t i = 0; i < model->threads.len; i++) {
		bool same = model_host_of(model, i) == 1;

		assert_int_equal(model_order_known(model, other, 200 * MS, i, 200 * MS + 10 * US),
				 same);
		assert_true(model_order_known(model, other, 200 * MS, i, 200 * MS + 100 * US));
		assert_true((model_order_error(model, other, 200 * MS, i, 200 * MS) == 0) == same);
	}
	model_free(model);
	job_free(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_collectives_align_hosts_within_twice_the_transfer),
		cmocka_unit_test(test_times_of_an_aligned_job_are_those_of_the_first_host),
		cmocka_unit_test(test_wall_and_none_are_as_asked),
		cmocka_unit_test(test_host_that_did_nothing_with_others_has_the_wall_clock),
		cmocka_unit_test(test_broadcast_of_no_elements_bounds_no_clock),
		cmocka_unit_test(test_collectives_that_contradict_each_other_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
