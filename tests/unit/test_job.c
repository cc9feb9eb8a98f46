// SPDX-License-Identifier: Apache-2.0
/* Several files as one job (store_reader_open_files()): numbers, hosts, clocks, order, and what
 * must not be joined. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <sys/resource.h>

#include "model/model.h"
#include "store_helpers.h"

#define FILES_MAX 400

struct job_test {
	char folder[64];
	char paths[FILES_MAX][96];
	const char *list[FILES_MAX];
	uint32_t count;
	char warnings[8][256];
	unsigned warning_count;
};

static int job_setup(void **state)
{
	struct job_test *test = calloc(1, sizeof(*test));

	assert_non_null(test);
	strcpy(test->folder, "/tmp/waffle-job-XXXXXX");
	assert_non_null(mkdtemp(test->folder));
	*state = test;
	return 0;
}

static int job_teardown(void **state)
{
	struct job_test *test = *state;
	int ret;

	for (uint32_t i = 0; i < test->count; i++)
		unlink(test->paths[i]);
	ret = rmdir(test->folder);
	free(test);
	return ret;
}

/* The path of the next file. */
static const char *path_add(struct job_test *test, const char *name)
{
	char *path = test->paths[test->count];
	char folder[sizeof(test->folder)];

	strcpy(folder, test->folder);
	snprintf(path, sizeof(test->paths[0]), "%s/%s.waffle", folder, name);
	test->list[test->count++] = path;
	return path;
}

static const char *path_number(struct job_test *test)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", test->count);
	return path_add(test, name);
}

/* A file that is being written. */
struct part {
	struct store_writer *writer;
	struct store_meta meta;
	uint64_t records;
};

static const char *const boots[] = {"boot-a", "boot-b", "boot-c"};
static const char *const names[] = {"node-a", "node-b", "node-c"};

/* The monotonic clock of host h is h * 1,000,000 ns ahead of host 0's. */
#define AHEAD 1000000ull
#define REAL 1700000000000000000ull

static struct part part_open(struct job_test *test, unsigned host, uint64_t start_ts)
{
	struct part part = {.meta = {.start_ts = start_ts,
				     .boot_ns = start_ts,
				     .real_ns = REAL + start_ts - host * AHEAD,
				     .hostname = names[host],
				     .kernel = "6.1.0",
				     .machine = "x86_64",
				     .version = "0.1.0",
				     .command = "train",
				     .boot_id = boots[host],
				     .cpu_count = 2,
				     .sched = true}};
	struct error err = ERROR_INIT;

	must(store_writer_open(&part.writer, path_number(test), &part.meta, &err), &err);
	return part;
}

static void part_close(struct part *part, uint64_t end_ts)
{
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};
	struct error err = ERROR_INIT;

	counts[0].produced = counts[0].delivered = part->records;
	must(store_writer_close(part->writer, end_ts, counts, &err), &err);
}

static void part_add(struct part *part, const void *rec)
{
	part->records++;
	append(part->writer, rec);
}

static void part_site(struct part *part, unsigned site)
{
	struct error err = ERROR_INIT;

	must(store_writer_add_site(part->writer, &fixture_sites[site], &err), &err);
}

static void part_process(struct part *part, uint32_t pid, const char *cmdline)
{
	struct store_process process = {
		.pid = pid, .ppid = 1, .ts = part->meta.start_ts + 1, .cmdline = cmdline};
	struct error err = ERROR_INIT;

	must(store_writer_add_process(part->writer, &process, &err), &err);
}

static void part_rank(struct part *part, uint32_t pid, uint32_t rank, uint32_t size,
		      const char *job)
{
	struct store_rank entry = {.ts = part->meta.start_ts + 1,
				   .pid = pid,
				   .rank = rank,
				   .world_size = size,
				   .job = job};
	struct error err = ERROR_INIT;

	must(store_writer_add_rank(part->writer, &entry, &err), &err);
}

static void part_task(struct part *part, uint64_t ts, uint32_t tid, uint64_t start_ts)
{
	struct waffle_rec_task task = {.rec = {ts, tid, WAFFLE_REC_TASK, 0},
				       .tgid = tid,
				       .flags = WAFFLE_TASK_TRACED_FLAG,
				       .start_ts = start_ts,
				       .comm = "train"};

	part_add(part, &task);
}

static void part_switch(struct part *part, uint64_t ts, uint32_t prev, uint32_t next, uint8_t flags)
{
	struct waffle_rec_switch sw = {.rec = {ts, prev, WAFFLE_REC_SWITCH, 1},
				       .next_tid = next,
				       .prev_state = 1,
				       .flags = flags,
				       .syscall = 7};

	if (flags & WAFFLE_SWITCH_WOKEN) {
		sw.waker_tid = prev;
		sw.wake_ts = ts - 10;
	}
	part_add(part, &sw);
}

static void part_state(struct part *part, uint64_t ts, uint32_t tid, uint16_t state, bool at_end)
{
	struct waffle_rec_state rec = {.rec = {ts, tid, WAFFLE_REC_STATE, 1},
				       .tgid = tid,
				       .state = state,
				       .task_state = 1,
				       .syscall = 7,
				       .at_end = at_end};

	part_add(part, &rec);
}

static void warning_keep(const char *line, void *arg)
{
	struct job_test *test = arg;

	assert_true(test->warning_count < 8);
	snprintf(test->warnings[test->warning_count++], sizeof(test->warnings[0]), "%s", line);
}

static int job_try(struct job_test *test, struct store_reader **reader, struct error *err)
{
	struct store_open_options options = {warning_keep, test};

	*reader = NULL;
	return store_reader_open_files(reader, test->list, test->count, &options, err);
}

static struct store_reader *job_open_all(struct job_test *test)
{
	struct error err = ERROR_INIT;
	struct store_reader *reader;

	must(job_try(test, &reader, &err), &err);
	return reader;
}

static void must_fail(struct job_test *test, const char *text)
{
	struct error err = ERROR_INIT;
	struct store_reader *reader;

	assert_true(job_try(test, &reader, &err) < 0);
	assert_null(reader);
	if (!strstr(err.message, text))
		fail_msg("'%s' does not contain '%s'", err.message, text);
	assert_null(strchr(err.message, '\n'));
}

/* ---- numbers ---- */

static void test_equal_numbers_of_two_hosts_differ_in_the_job(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000000), b = part_open(test, 1, 6000000);
	struct store_reader *reader;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;

	part_process(&a, 40, "left");
	part_process(&b, 40, "right");
	part_switch(&a, 5000100, 40, 41, 3);
	part_switch(&b, 6000200, 40, 41, 3 | WAFFLE_SWITCH_WOKEN);
	part_close(&a, 5001000);
	part_close(&b, 6001000);
	reader = job_open_all(test);
	assert_int_equal(store_reader_host_count(reader), 2);
	assert_string_equal(store_reader_host(reader, 1)->name, "node-b");
	assert_int_equal(store_reader_host(reader, 1)->cpu_base, 3);
	assert_int_equal(store_reader_process(reader, 0)->pid, 40);
	assert_int_equal(store_reader_process(reader, 1)->pid, 1u << STORE_PID_BITS | 40);
	assert_int_equal(store_reader_meta(reader)->start_ts, 5000000);
	assert_int_equal(store_reader_meta(reader)->end_ts, 5001000);
	assert_int_equal(store_reader_meta(reader)->counts[0].delivered, 2);
	assert_int_equal(store_reader_next(reader, &rec, &err), 1);
	assert_int_equal(rec->tid, 40);
	assert_int_equal(rec->cpu, 1);
	assert_int_equal(store_reader_next(reader, &rec, &err), 1);
	/* Its wall clock says that its monotonic clock is 1 ms ahead. */
	assert_int_equal(rec->ts, 5000200);
	assert_int_equal(rec->cpu, 4);
	assert_int_equal(store_pid_host(rec->tid), 1);
	assert_int_equal(store_pid_real(rec->tid), 40);
	assert_int_equal(((const struct waffle_rec_switch *)rec)->next_tid, 1u << 22 | 41);
	assert_int_equal(((const struct waffle_rec_switch *)rec)->wake_ts, 5000190);
	assert_int_equal(store_reader_number(reader), 2);
	assert_at_end(reader);
	store_reader_close(reader);
}

static void add_tables(struct part *part, uint64_t address, uint32_t pid)
{
	struct store_stack kernel = {&address, 1, 0, false}, user = {&address, 1, pid, false};
	struct store_object object = {.ino = 9, .dev = 3, .pid = pid, .name = "/x", .detail = ""};
	struct store_mapping mapping = {.ts = part->meta.start_ts,
					.start = 1,
					.end = 2,
					.ino = 9,
					.pid = pid,
					.path = "/x"};
	struct store_symbol symbol = {address, 0, "schedule"};
	struct store_name name = {7, pid, "gemm", part->meta.start_ts};
	struct error err = ERROR_INIT;

	must(store_writer_add_stack(part->writer, &kernel, &err), &err);
	must(store_writer_add_stack(part->writer, &user, &err), &err);
	must(store_writer_add_object(part->writer, &object, &err), &err);
	must(store_writer_add_mapping(part->writer, &mapping, &err), &err);
	must(store_writer_add_symbol(part->writer, &symbol, &err), &err);
	must(store_writer_add_name(part->writer, &name, &err), &err);
}

static void add_wait(struct part *part, uint64_t ts, uint32_t tid)
{
	struct waffle_rec_wait wait = {.rec = {ts, tid, WAFFLE_REC_WAIT, 0},
				       .from_ts = ts - 100,
				       .kernel_stack = 1,
				       .user_stack = 2,
				       .object = 1,
				       .ino = 9};

	part_add(part, &wait);
}

static void test_tables_follow_each_other_and_records_refer_to_their_own(void **state)
{
	const uint64_t address = 0xffffffff81000000;
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000000), b = part_open(test, 1, 6000000);
	struct store_reader *reader;
	const struct waffle_rec_wait *wait;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;

	add_tables(&a, address, 40);
	add_tables(&b, address, 40);
	add_wait(&a, 5000500, 40);
	add_wait(&b, 6000600, 40);
	part_close(&a, 5001000);
	part_close(&b, 6001000);
	reader = job_open_all(test);
	assert_int_equal(store_reader_next(reader, &rec, &err), 1);
	assert_int_equal(store_reader_next(reader, &rec, &err), 1);
	wait = (const struct waffle_rec_wait *)rec;
	assert_int_equal(wait->kernel_stack, 3);
	assert_int_equal(wait->user_stack, 4);
	assert_int_equal(wait->object, 2);
	assert_int_equal(wait->from_ts, 5000500);
	assert_true(wait->ino != 9);
	assert_int_equal(wait->ino, store_reader_object(reader, 2)->ino);
	assert_int_equal(store_ino_real(wait->ino), 9);
	assert_int_equal(store_pid_host(store_reader_stack(reader, 4)->pid), 1);
	assert_int_equal(store_reader_stack(reader, 4)->addresses[0], address);
	/* The same address in the kernels of two hosts. */
	assert_int_equal(store_reader_stack(reader, 1)->addresses[0], address);
	assert_true(store_reader_stack(reader, 3)->addresses[0] != address);
	assert_int_equal(store_reader_stack(reader, 3)->addresses[0],
			 store_reader_symbol(reader, 1)->address);
	assert_int_equal(store_kernel_address_real(store_reader_symbol(reader, 1)->address),
			 address);
	assert_int_equal(store_reader_mapping(reader, 1)->ts, 5000000);
	assert_int_equal(store_reader_name(reader, 1)->since, 5000000);
	assert_null(store_reader_stack(reader, 5));
	assert_null(store_reader_object(reader, 3));
	store_reader_close(reader);
}

static void test_equal_sites_of_files_are_one(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 0, 5001);
	struct waffle_rec_span_end end = {
		.rec = {5500, 41, WAFFLE_REC_SPAN_END, 0}, .span_id = 1, .tgid = 41};
	const struct waffle_rec *rec;
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	part_site(&a, 0);
	part_site(&a, 1);
	part_site(&b, 2);
	part_site(&b, 0);
	for (end.site = 0; end.site < 3; end.site++)
		part_add(&b, &end);
	part_close(&a, 6000);
	part_close(&b, 6000);
	reader = job_open_all(test);
	assert_int_equal(store_reader_site_count(reader), 3);
	assert_string_equal(store_reader_site(reader, 2)->name, fixture_sites[2].name);
	for (unsigned i = 0; i < 3; i++) {
		static const uint32_t expected[] = {2, 0, WAFFLE_SITE_UNKNOWN};

		assert_int_equal(store_reader_next(reader, &rec, &err), 1);
		assert_int_equal(((const struct waffle_rec_span_end *)rec)->site, expected[i]);
	}
	store_reader_close(reader);
}

/* ---- hosts and clocks ---- */

static size_t memory_in_use(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

/* A file has its strings once, and its sites only refer to them. With an allocator that has no
 * statistics this tests nothing. */
static void test_sites_with_long_strings_take_little_memory(void **state)
{
	struct job_test *test = *state;
	size_t before, bytes = 40000;
	char *text = malloc(bytes + 1);
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	assert_non_null(text);
	memset(text, 'x', bytes);
	text[bytes] = '\0';
	for (unsigned i = 0; i < 2; i++) {
		struct part part = part_open(test, 0, 5000 + i);
		struct site_info site = {.name = text,
					 .category = text,
					 .file = text,
					 .func = text,
					 .object = text,
					 .kind = WAFFLE_SITE_SPAN};

		for (site.line = 1; site.line <= 300; site.line++)
			must(store_writer_add_site(part.writer, &site, &err), &err);
		part_close(&part, 6000);
	}
	before = memory_in_use();
	reader = job_open_all(test);
	assert_int_equal(store_reader_site_count(reader), 300);
	assert_true(memory_in_use() < before + 8 * 1000 * 1000);
	store_reader_close(reader);
	free(text);
}

/* While a file is read, only the sites that it uses take memory for their last values. */
static void test_sites_that_no_record_uses_take_little_memory(void **state)
{
	struct job_test *test = *state;
	struct part part = part_open(test, 0, 5000);
	struct site_info site = {.name = "s",
				 .category = "",
				 .file = "a.c",
				 .func = "",
				 .object = "",
				 .kind = WAFFLE_SITE_SPAN,
				 .key_count = WAFFLE_KEYS_MAX};
	const struct waffle_rec *rec;
	struct store_reader *reader;
	struct error err = ERROR_INIT;
	size_t before;

	for (unsigned i = 0; i < WAFFLE_KEYS_MAX; i++)
		site.keys[i] = (struct site_key){WAFFLE_KEY_NUMBER, "k"};
	for (site.line = 1; site.line <= 20000; site.line++)
		must(store_writer_add_site(part.writer, &site, &err), &err);
	part_task(&part, 5100, 40, 900);
	part_close(&part, 6000);
	reader = job_open_all(test);
	before = memory_in_use();
	assert_int_equal(store_reader_next(reader, &rec, &err), 1);
	assert_true(memory_in_use() < before + 4 * 1000 * 1000);
	store_reader_close(reader);
}

static void test_files_of_one_boot_share_a_clock(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 1, 2005000),
		    c = part_open(test, 0, 7000);
	struct store_reader *reader;

	part_close(&a, 6000);
	part_close(&b, 2006000);
	part_close(&c, 8000);
	reader = job_open_all(test);
	assert_int_equal(store_reader_host_count(reader), 2);
	assert_int_equal(store_reader_capture_count(reader), 3);
	assert_int_equal(store_reader_capture(reader, 1)->host, 1);
	assert_int_equal(store_reader_capture(reader, 1)->start_ts, 1005000);
	assert_int_equal(store_reader_capture(reader, 2)->host, 0);
	assert_int_equal(store_reader_capture(reader, 2)->start_ts, 7000);
	assert_int_equal(store_reader_host(reader, 0)->clock.kind, STORE_CLOCK_REFERENCE);
	assert_int_equal(store_reader_host(reader, 1)->clock.kind, STORE_CLOCK_WALL);
	store_reader_close(reader);
}

/* Older files have no boot id. */
static void test_older_files_are_of_one_boot_if_name_and_boot_time_agree(void **state)
{
	struct job_test *test = *state;
	struct store_meta meta = fixture_meta;
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < 4; i++) {
		struct store_writer *writer;

		meta.boot_id = "";
		meta.start_ts = 5000 + i;
		meta.boot_ns = 10000;
		meta.real_ns = REAL + (i == 1 ? 1900000000u : i == 2 ? 2100000000u : 0);
		meta.hostname = i == 3 ? "other" : "node";
		must(store_writer_open(&writer, path_number(test), &meta, &err), &err);
		must(store_writer_close(writer, 0, fixture_counts, &err), &err);
	}
	reader = job_open_all(test);
	assert_int_equal(store_reader_host_count(reader), 3);
	store_reader_close(reader);
}

static void test_a_clock_corrects_records_tables_and_captures(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000000), b = part_open(test, 1, 6000000);
	struct store_clock clock = {.offset_ns = -900000,
				    .drift = 1e-4,
				    .at_ts = 6000000,
				    .error_ns = 30,
				    .kind = STORE_CLOCK_ALIGNED};
	struct store_reader *reader;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;

	add_tables(&b, 0x400000, 40);
	part_task(&b, 6100000, 40, 6000500);
	part_close(&a, 5001000);
	part_close(&b, 6200000);
	reader = job_open_all(test);
	assert_int_equal(store_reader_set_clock(reader, 2, &clock), -EINVAL);
	assert_int_equal(store_reader_set_clock(reader, 1, &clock), 0);
	must(store_reader_seek(reader, STORE_ALL, &err), &err);
	assert_int_equal(store_reader_next(reader, &rec, &err), 1);
	assert_int_equal(rec->ts, 5200010);
	assert_int_equal(((const struct waffle_rec_task *)rec)->start_ts, 5100500);
	assert_int_equal(store_reader_mapping(reader, 0)->ts, 5100000);
	assert_int_equal(store_reader_capture(reader, 1)->end_ts, 5300020);
	assert_int_equal(store_reader_meta(reader)->end_ts, 5300020);
	/* A second correction begins with the file's own times again. */
	clock.offset_ns = -1000000;
	clock.drift = 0;
	assert_int_equal(store_reader_set_clock(reader, 1, &clock), 0);
	assert_int_equal(store_reader_mapping(reader, 0)->ts, 5000000);
	assert_int_equal(store_reader_capture(reader, 1)->end_ts, 5200000);
	clock.drift = 2e-3;
	assert_int_equal(store_reader_set_clock(reader, 1, &clock), -EINVAL);
	store_reader_close(reader);
}

static void test_clock_is_monotonic_and_stays_in_range(void **state)
{
	uint64_t random = 1;

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		struct store_clock clock = {
			.offset_ns = (int64_t)(fixture_random(&random) >> (1 + i % 62)),
			.drift = ((double)(fixture_random(&random) % 2001) - 1000) * 1e-6,
			.at_ts = fixture_random(&random) >> (2 + i % 50)};
		uint64_t ts = clock.at_ts, before;

		if (i & 1)
			clock.offset_ns = -clock.offset_ns;
		before = store_clock_apply(&clock, ts);
		for (unsigned step = 0; step < 50; step++) {
			uint64_t after;

			ts += fixture_random(&random) >> (20 + step % 44);
			if (ts > RECORD_TS_MAX)
				break;
			after = store_clock_apply(&clock, ts);
			assert_true(after >= before);
			assert_true(after <= RECORD_TS_MAX);
			before = after;
		}
	}
}

static void test_file_from_before_the_first_host_booted_is_told_apart(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 1, 500000);

	part_close(&a, 6000);
	part_close(&b, 600000);
	must_fail(test, "was recorded before the host of");
}

static void test_file_that_begins_at_no_time_is_damaged(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000000), b = part_open(test, 0, 1ull << 63 | 5);

	part_close(&a, 6000000);
	part_close(&b, 6000000);
	must_fail(test, "1.waffle: is damaged: its begin is no time");
}

/* ---- order ---- */

static int by_ts(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

/* Files whose records are in order give all records in order, in any window. */
static void test_records_of_many_files_come_in_order_of_time(void **state)
{
	struct job_test *test = *state;
	uint64_t random = 7, *all = calloc(20000, sizeof(*all)), count = 0;
	struct store_reader *reader;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;

	assert_non_null(all);
	for (unsigned i = 0; i < 9; i++) {
		uint64_t ts = 10000000 + fixture_random(&random) % 1000000;
		struct part part = part_open(test, i % 3, ts);

		for (unsigned k = fixture_random(&random) % 2000; k; k--) {
			ts += fixture_random(&random) % 2000;
			part_task(&part, ts, 40 + i, 1);
			all[count++] = ts - i % 3 * AHEAD;
		}
		part_close(&part, ts + 1);
	}
	qsort(all, count, sizeof(*all), by_ts);
	reader = job_open_all(test);
	for (unsigned window = 0; window < 20; window++) {
		uint64_t from = window ? all[fixture_random(&random) % count] : 0;
		uint64_t to = window ? from + fixture_random(&random) % 500000 : UINT64_MAX;
		uint64_t at = 0;

		while (at < count && all[at] < from)
			at++;
		must(store_reader_seek(reader, (struct store_window){from, to}, &err), &err);
		while (store_reader_next(reader, &rec, &err) > 0) {
			if (!store_reader_number(reader))
				continue;
			assert_true(at < count && all[at] <= to);
			assert_int_equal(rec->ts, all[at++]);
		}
		assert_true(at == count || all[at] > to);
	}
	store_reader_close(reader);
	free(all);
}

/* With far fewer descriptors than files. */
static void test_more_files_than_descriptors_can_be_read(void **state)
{
	struct job_test *test = *state;
	struct rlimit before, few = {64, 64};
	struct store_reader *reader;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;
	unsigned seen = 0;

	for (unsigned i = 0; i < FILES_MAX; i++) {
		struct part part = part_open(test, i % 3, 5000000 + i);

		for (unsigned k = 0; k < 20; k++)
			part_task(&part, 5000000 + i + k * 100, 40 + i, 1);
		part_close(&part, 5010000);
	}
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few.rlim_max = before.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	reader = job_open_all(test);
	while (store_reader_next(reader, &rec, &err) > 0)
		seen++;
	assert_string_equal(err.message, "");
	assert_int_equal(seen, FILES_MAX * 20);
	store_reader_close(reader);
	setrlimit(RLIMIT_NOFILE, &before);
}

static void test_replaced_file_is_an_error(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 0, 5001);
	struct store_reader *reader;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;
	int ret;

	part_task(&a, 5100, 40, 1);
	part_task(&b, 5100, 41, 1);
	part_close(&a, 6000);
	part_close(&b, 6000);
	reader = job_open_all(test);
	unlink(test->paths[1]);
	write_file(test->paths[1], "replaced", 8);
	while ((ret = store_reader_next(reader, &rec, &err)) > 0)
		;
	assert_int_equal(ret, -ESTALE);
	assert_non_null(strstr(err.message, "was replaced"));
	store_reader_close(reader);
}

/* ---- what can't be joined, and what is missing ---- */

static void test_same_capture_twice_is_an_error(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 0, 5000);

	part_close(&a, 6000);
	part_close(&b, 6000);
	must_fail(test, "are the same capture; give it once");
	test->list[1] = test->list[0];
	must_fail(test, "are the same capture; give it once");
}

static void test_files_of_two_jobs_are_an_error(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 1, 2000000),
		    c = part_open(test, 2, 3000000);

	part_rank(&a, 40, 0, 2, "pmi:1");
	part_rank(&b, 40, 0, 2, "slurm:1");
	part_rank(&c, 40, 1, 2, "slurm:2");
	part_close(&a, 6000);
	part_close(&b, 2100000);
	part_close(&c, 3100000);
	must_fail(test, "1.waffle is of job slurm:1, and");
}

static void test_process_traced_twice_at_a_time_is_an_error(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 0, 5500);

	part_process(&a, 40, "train --fast");
	part_process(&b, 40, "train --fast");
	part_task(&a, 5100, 40, 900);
	part_task(&b, 5600, 40, 900);
	part_close(&a, 6000);
	part_close(&b, 6500);
	must_fail(test, "both traced process 40 (train --fast) at the same time");
}

/* Its file comes between the two that overlap, and so does its time. */
static void test_process_traced_twice_is_found_among_others(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 0, 7000),
		    c = part_open(test, 0, 5500);

	part_process(&a, 40, "train");
	part_process(&b, 40, "train");
	part_process(&c, 40, "train");
	part_task(&a, 5100, 40, 900);
	part_task(&b, 7100, 40, 900);
	part_task(&c, 5600, 40, 900);
	part_close(&a, 6000);
	part_close(&b, 8000);
	part_close(&c, 6500);
	must_fail(test, "both traced process 40");
}

/* A process in between, with the same pid in a capture that lasts longer, hides nothing. */
static void test_pid_used_again_hides_no_process_traced_twice(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 1, 2005000), b = part_open(test, 1, 2005500),
		    c = part_open(test, 1, 2006000);

	part_process(&a, 40, "sh");
	part_process(&b, 40, "train");
	part_process(&c, 40, "train");
	part_task(&a, 2005100, 40, 900);
	part_task(&b, 2005600, 40, 2005550);
	part_task(&c, 2006100, 40, 2005550);
	part_close(&a, 2009000);
	part_close(&b, 2006500);
	part_close(&c, 2008000);
	must_fail(test, "1.waffle and ");
}

static void write_job(struct job_test *test, struct store_reader *reader);

static void test_merged_file_and_an_original_are_an_error(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 0, 5500),
		    c = part_open(test, 0, 5700);
	struct store_reader *reader;

	part_process(&a, 40, "left");
	part_process(&b, 41, "right");
	part_task(&a, 5100, 40, 900);
	part_task(&b, 5600, 41, 901);
	part_process(&c, 41, "right");
	part_task(&c, 5710, 41, 901);
	part_close(&a, 5200);
	part_close(&b, 6500);
	part_close(&c, 6600);
	test->count = 2;
	reader = job_open_all(test);
	test->count = 3;
	write_job(test, reader);
	store_reader_close(reader);
	test->count = 2;
	test->list[0] = test->paths[3];
	must_fail(test, "both contain the capture ");
	test->list[1] = test->paths[0];
	must_fail(test, "both contain the capture ");
	/* Another capture of a process whose own one is the second of the merged file. */
	test->list[1] = test->paths[2];
	must_fail(test, "both traced process 41 (right)");
	test->count = 4;
}

static void test_pid_that_was_used_again_or_traced_later_is_none(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 0, 5500),
		    c = part_open(test, 0, 7000);

	part_process(&a, 40, "sh");
	part_process(&b, 40, "train");
	part_process(&c, 40, "train");
	part_task(&a, 5100, 40, 900);
	part_task(&b, 5600, 40, 5550);
	part_task(&c, 7100, 40, 5550);
	part_close(&a, 6000);
	part_close(&b, 6500);
	part_close(&c, 8000);
	store_reader_close(job_open_all(test));
}

static void warnings_must_be(struct job_test *test, unsigned first)
{
	char expected[256];

	assert_int_equal(test->warning_count, first + 2);
	snprintf(expected, sizeof(expected),
		 "%s is still being recorded, or was cut off: its last records are missing",
		 test->paths[1]);
	assert_string_equal(test->warnings[first], expected);
	assert_string_equal(test->warnings[first + 1],
			    "no file has ranks 0, 3-4, 6-7 of 8 of job openmpi:9, so what they did "
			    "is unknown");
}

/* A merged file says the same as its files. */
static void test_missing_ranks_and_cut_off_files_are_told(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 1, 2000000);
	struct error err = ERROR_INIT;
	struct store_reader *job;

	part_rank(&a, 40, 1, 8, "openmpi:9");
	part_rank(&a, 41, 2, 8, "openmpi:9");
	part_rank(&b, 40, 5, 8, "openmpi:9");
	part_close(&a, 6000);
	must(store_writer_publish(b.writer, &err), &err);
	must(store_writer_flush(b.writer, fixture_counts, &err), &err);
	store_writer_discard(b.writer);
	job = job_open_all(test);
	warnings_must_be(test, 0);
	write_job(test, job);
	store_reader_close(job);
	test->list[0] = test->list[2];
	test->count = 1;
	store_reader_close(job_open_all(test));
	warnings_must_be(test, 2);
	test->count = 3;
}

static void test_missing_ranks_of_several_jobs_are_told_by_job(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 1, 2000000);
	char expected[256];

	part_process(&a, 40, "solver");
	part_process(&b, 40, "solver");
	part_rank(&a, 40, 0, 2, "openmpi:9");
	part_rank(&b, 40, 1, 2, "");
	part_close(&a, 6000);
	part_close(&b, 2001000);
	store_reader_close(job_open_all(test));
	assert_int_equal(test->warning_count, 2);
	snprintf(expected, sizeof(expected),
		 "no file has rank 0 of 2 of the job in %s, so what it did is unknown",
		 test->paths[1]);
	assert_string_equal(test->warnings[0], expected);
	assert_string_equal(test->warnings[1],
			    "no file has rank 1 of 2 of job openmpi:9, so what it did is unknown");
}

/* ---- one file of a job ---- */

static void write_job(struct job_test *test, struct store_reader *reader)
{
	struct store_written written;
	struct error err = ERROR_INIT;

	must(store_reader_write(reader, path_add(test, "all"), &written, &err), &err);
	assert_int_equal(written.left_out, 0);
}

static void compare_records(struct store_reader *a, struct store_reader *b)
{
	const struct waffle_rec *left, *right;
	struct error err = ERROR_INIT;
	int ret;

	must(store_reader_seek(a, STORE_ALL, &err), &err);
	must(store_reader_seek(b, STORE_ALL, &err), &err);
	while ((ret = store_reader_next(a, &left, &err)) > 0) {
		assert_int_equal(store_reader_next(b, &right, &err), 1);
		assert_int_equal(record_size(left, RECORD_BYTES_MAX),
				 record_size(right, RECORD_BYTES_MAX));
		assert_memory_equal(left, right, record_size(left, RECORD_BYTES_MAX));
	}
	assert_int_equal(ret, 0);
	assert_int_equal(store_reader_next(b, &right, &err), 0);
}

static void compare_hosts(const struct store_reader *a, const struct store_reader *b)
{
	assert_int_equal(store_reader_host_count(a), store_reader_host_count(b));
	for (uint32_t i = 0; i < store_reader_host_count(a); i++) {
		const struct store_host *left = store_reader_host(a, i);
		const struct store_host *right = store_reader_host(b, i);

		assert_string_equal(left->name, right->name);
		assert_string_equal(left->boot_id, right->boot_id);
		assert_int_equal(left->cpu_base, right->cpu_base);
		assert_int_equal(left->clock.offset_ns, right->clock.offset_ns);
		assert_true(left->clock.drift == right->clock.drift);
		assert_int_equal(left->clock.kind, right->clock.kind);
		assert_int_equal(left->clock.error_ns, right->clock.error_ns);
	}
}

static void compare_captures(const struct store_reader *a, const struct store_reader *b)
{
	assert_int_equal(store_reader_capture_count(a), store_reader_capture_count(b));
	for (uint32_t i = 0; i < store_reader_capture_count(a); i++) {
		const struct store_capture *left = store_reader_capture(a, i);
		const struct store_capture *right = store_reader_capture(b, i);

		assert_string_equal(left->file, right->file);
		assert_int_equal(left->host, right->host);
		assert_int_equal(left->start_ts, right->start_ts);
		assert_int_equal(left->end_ts, right->end_ts);
		assert_int_equal(left->first_process, right->first_process);
		assert_int_equal(left->process_count, right->process_count);
	}
}

/* Random records of all kinds. Their times may exceed what a wall clock can shift, so all files are
 * of one host or have the same clock. */
static void test_written_job_reads_like_its_files(void **state)
{
	struct job_test *test = *state;
	struct store_reader *job, *one;

	for (unsigned i = 0; i < 3; i++) {
		struct record_source source = FIXTURE_SOURCE(i + 1);
		struct part part = part_open(test, i % 2, 6000000 + i);

		for (unsigned site = 0; site < FIXTURE_SITES; site++)
			part_site(&part, (site + i) % FIXTURE_SITES);
		part_process(&part, 40 + i, "train");
		part_rank(&part, 40 + i, i, 3, "slurm:1");
		add_tables(&part, 0xffffffff81000000 + i, 40 + i);
		append_random(part.writer, &source, 3000);
		part_close(&part, 7000000 + i);
	}
	job = job_open_all(test);
	write_job(test, job);
	one = open_reader(test->paths[3]);
	compare_records(job, one);
	compare_hosts(job, one);
	compare_captures(job, one);
	assert_int_equal(store_reader_site_count(job), store_reader_site_count(one));
	assert_int_equal(store_reader_rank_count(one), 3);
	assert_int_equal(store_reader_rank(one, 1)->rank, 1);
	assert_int_equal(store_reader_rank(one, 1)->pid, store_reader_process(job, 1)->pid);
	assert_int_equal(store_reader_set_clock(one, 1, &(struct store_clock){0}), -ENOTSUP);
	store_reader_close(job);
	store_reader_close(one);
	/* The hosts of a merged file can't be separated again. */
	test->list[0] = test->list[3];
	test->count = 2;
	must_fail(test, "was merged from files of 2 hosts");
	test->count = 4;
}

/* ---- the model of a job ---- */

static uint32_t thread_of(const struct model *model, uint32_t tid)
{
	for (uint32_t i = 0; i < model->threads.len; i++)
		if (model->threads.data[i].tid == tid)
			return i;
	fail_msg("no thread %u", tid);
	return MODEL_NONE;
}

static struct model *load(struct store_reader *reader)
{
	struct model *model = NULL;
	struct error err = ERROR_INIT;

	must(model_load(&model, reader, STORE_ALL, NULL, &err), &err);
	return model;
}

static void add_wait_between(struct part *part, uint32_t tid, uint64_t from_ts, uint64_t to_ts)
{
	struct waffle_rec_wait wait = {.rec = {to_ts, tid, WAFFLE_REC_WAIT, 0}, .from_ts = from_ts};

	part_add(part, &wait);
}

/* A switch from one file's process to the other's is in both files. */
static void test_switch_between_two_captures_is_one(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 0, 5001);
	struct store_reader *reader;
	const struct model_wait *wait;
	struct model *model;

	part_process(&a, 40, "left");
	part_process(&b, 41, "right");
	part_state(&a, 5010, 40, WAFFLE_THREAD_RUNNING, false);
	part_state(&b, 5011, 41, WAFFLE_THREAD_BLOCKED, false);
	part_switch(&a, 5100, 40, 41, WAFFLE_SWITCH_PREV_TRACED);
	part_switch(&b, 5103, 40, 41, WAFFLE_SWITCH_NEXT_TRACED | WAFFLE_SWITCH_WOKEN);
	part_switch(&b, 5300, 41, 40, WAFFLE_SWITCH_PREV_TRACED);
	part_switch(&a, 5302, 41, 40, WAFFLE_SWITCH_NEXT_TRACED | WAFFLE_SWITCH_WOKEN);
	part_switch(&b, 5400, 40, 41, WAFFLE_SWITCH_NEXT_TRACED);
	part_switch(&a, 5402, 40, 41, WAFFLE_SWITCH_PREV_TRACED);
	add_wait_between(&b, 41, 5011, 5103);
	add_wait_between(&a, 40, 5402, 5900);
	part_close(&a, 6000);
	part_close(&b, 6000);
	reader = job_open_all(test);
	model = load(reader);
	assert_int_equal(model->switches.len, 3);
	assert_int_equal(model->switches.data[0].ts, 5100);
	assert_int_equal(model->switches.data[0].flags, WAFFLE_SWITCH_PREV_TRACED |
								WAFFLE_SWITCH_NEXT_TRACED |
								WAFFLE_SWITCH_WOKEN);
	assert_int_equal(model->switches.data[1].ts, 5300);
	/* The second capture saw it later than the first. */
	wait = model_wait_at(model, thread_of(model, 41), 5011);
	assert_non_null(wait);
	assert_int_equal(wait->to_ts, 5100);
	assert_non_null(model_wait_at(model, thread_of(model, 40), 5400));
	assert_int_equal(model->threads.data[thread_of(model, 40)].running_ns, 90 + 100);
	assert_int_equal(model->threads.data[thread_of(model, 41)].running_ns, 200 + 600);
	model_free(model);
	store_reader_close(reader);
}

/* The state of a thread after the end of its file is unknown. */
static void test_each_capture_ends_on_its_own(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000), b = part_open(test, 0, 5001);
	struct waffle_rec_span_end end = {
		.rec = {8000, 41, WAFFLE_REC_SPAN_END, 0}, .span_id = 77, .tgid = 41, .site = 1};
	struct {
		struct waffle_rec_hit hit;
		uint64_t frame[4];
	} hit = {{.rec = {5200, 40, WAFFLE_REC_HIT, 1}, .tgid = 40, .site = 0, .frame_bytes = 32},
		 {5, 0, 0, 0}};
	struct store_reader *reader;
	struct model *model;
	uint32_t span;

	part_site(&a, 1);
	part_site(&b, 0);
	part_site(&b, 1);
	part_process(&a, 40, "left");
	part_process(&b, 41, "right");
	part_state(&a, 5010, 40, WAFFLE_THREAD_RUNNING, false);
	part_state(&b, 5011, 41, WAFFLE_THREAD_BLOCKED, false);
	part_switch(&a, 5100, 40, 0, WAFFLE_SWITCH_PREV_TRACED);
	part_add(&a, &hit);
	part_add(&b, &end);
	part_close(&a, 6000);
	part_close(&b, 9000);
	reader = job_open_all(test);
	model = load(reader);
	assert_int_equal(model->end_ts, 9000);
	assert_int_equal(model->threads.data[thread_of(model, 40)].blocked_ns +
				 model->threads.data[thread_of(model, 40)].running_ns,
			 6000 - 5010);
	span = model_span_find(model, 5);
	assert_int_equal(model->spans.data[span].end_ts, 6000);
	assert_true(model->spans.data[span].flags & MODEL_SPAN_UNFINISHED);
	span = model_span_find(model, 77);
	assert_int_equal(model->spans.data[span].start_ts, 5001);
	model_free(model);
	store_reader_close(reader);
}

static void add_loss(struct part *part, uint64_t from_ts, uint64_t to_ts)
{
	struct waffle_rec_loss loss = {.rec = {to_ts, 0, WAFFLE_REC_LOSS, 0},
				       .source = WAFFLE_SOURCE_SCHED,
				       .from_ts = from_ts,
				       .count = 3};

	part_add(part, &loss);
}

static void test_loss_on_one_host_leaves_the_states_of_others_known(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000000), b = part_open(test, 1, 6000000);
	struct store_reader *reader;
	struct model *model;

	part_process(&a, 40, "left");
	part_process(&b, 40, "right");
	part_state(&a, 5000000, 40, WAFFLE_THREAD_BLOCKED, false);
	part_state(&b, 6000000, 40, WAFFLE_THREAD_BLOCKED, false);
	add_loss(&b, 6000100, 6000200);
	part_close(&a, 5001000);
	part_close(&b, 6001000);
	reader = job_open_all(test);
	model = load(reader);
	assert_int_equal(model->host_count, 2);
	assert_false(model->aligned);
	assert_int_equal(model->threads.data[thread_of(model, 40)].blocked_ns, 1000);
	assert_int_equal(model->threads.data[thread_of(model, 1u << 22 | 40)].blocked_ns, 100);
	assert_int_equal(model_host_of(model, thread_of(model, 1u << 22 | 40)), 1);
	model_free(model);
	store_reader_close(reader);
}

static void test_model_has_rank_and_host_of_processes(void **state)
{
	struct job_test *test = *state;
	struct part a = part_open(test, 0, 5000000), b = part_open(test, 1, 6000000);
	const struct model_process *process;
	struct store_reader *reader;
	struct model *model;

	part_rank(&a, 40, 0, 2, "slurm:1");
	part_rank(&b, 40, 1, 2, "slurm:1");
	part_task(&b, 6000100, 40, 1);
	part_close(&a, 5001000);
	part_close(&b, 6001000);
	reader = job_open_all(test);
	model = load(reader);
	process = model_process_of(model, thread_of(model, 1u << 22 | 40));
	assert_non_null(process);
	assert_int_equal(process->rank, 1);
	assert_int_equal(process->world_size, 2);
	assert_int_equal(process->host, 1);
	assert_string_equal(strtab_get(model->strings, process->job), "slurm:1");
	assert_string_equal(model->hosts[process->host]->name, "node-b");
	assert_null(model_process_of(model, MODEL_NONE));
	model_free(model);
	store_reader_close(reader);
}

#define JOB_TEST(test) cmocka_unit_test_setup_teardown(test, job_setup, job_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		JOB_TEST(test_equal_numbers_of_two_hosts_differ_in_the_job),
		JOB_TEST(test_tables_follow_each_other_and_records_refer_to_their_own),
		JOB_TEST(test_equal_sites_of_files_are_one),
		JOB_TEST(test_sites_with_long_strings_take_little_memory),
		JOB_TEST(test_sites_that_no_record_uses_take_little_memory),
		JOB_TEST(test_files_of_one_boot_share_a_clock),
		JOB_TEST(test_older_files_are_of_one_boot_if_name_and_boot_time_agree),
		JOB_TEST(test_a_clock_corrects_records_tables_and_captures),
		cmocka_unit_test(test_clock_is_monotonic_and_stays_in_range),
		JOB_TEST(test_file_from_before_the_first_host_booted_is_told_apart),
		JOB_TEST(test_file_that_begins_at_no_time_is_damaged),
		JOB_TEST(test_records_of_many_files_come_in_order_of_time),
		JOB_TEST(test_more_files_than_descriptors_can_be_read),
		JOB_TEST(test_replaced_file_is_an_error),
		JOB_TEST(test_same_capture_twice_is_an_error),
		JOB_TEST(test_files_of_two_jobs_are_an_error),
		JOB_TEST(test_process_traced_twice_at_a_time_is_an_error),
		JOB_TEST(test_process_traced_twice_is_found_among_others),
		JOB_TEST(test_pid_used_again_hides_no_process_traced_twice),
		JOB_TEST(test_merged_file_and_an_original_are_an_error),
		JOB_TEST(test_pid_that_was_used_again_or_traced_later_is_none),
		JOB_TEST(test_missing_ranks_and_cut_off_files_are_told),
		JOB_TEST(test_missing_ranks_of_several_jobs_are_told_by_job),
		JOB_TEST(test_written_job_reads_like_its_files),
		JOB_TEST(test_switch_between_two_captures_is_one),
		JOB_TEST(test_each_capture_ends_on_its_own),
		JOB_TEST(test_loss_on_one_host_leaves_the_states_of_others_known),
		JOB_TEST(test_model_has_rank_and_host_of_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
