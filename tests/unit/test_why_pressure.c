// SPDX-License-Identifier: Apache-2.0
/* The limit of memory that stands above the causes, and the neighbours at a disk. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "why_capture.h"

#define MS 1000000ull

/* Thread 11 waits for 12 from 2 to 9 ms. `faulting` has page faults of `fault_ns` in that time, or
 * before it. The cgroup of thread 11 had reached its limit at 9 ms. */
static struct why *ask_limited(struct capture *capture, uint32_t faulting, uint64_t fault_ns)
{
	uint64_t from = faulting == 11 ? 1000 : 3 * MS;
	struct waffle_rec_fault fault = {.rec = {from + fault_ns, faulting, WAFFLE_REC_FAULT, 0},
					 .from_ts = from,
					 .total_ns = fault_ns,
					 .count = 100};
	struct waffle_rec_memory memory = {.rec = {9 * MS, 11, WAFFLE_REC_MEMORY, 0},
					   .cgroup = 7,
					   .limit_bytes = 64 << 20,
					   .used_bytes = 64 << 20};

	capture_begin(capture, true);
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	gets(capture, 1001, 2, 0, 12, 0, 0, 0);
	if (faulting == 11)
		capture_add(capture, &fault);
	waits(capture, 2 * MS, 1, 11, 0, S, NR_READ, 3, 0, 0);
	if (faulting == 12)
		capture_add(capture, &fault);
	gets(capture, 9 * MS, 1, 0, 11, 12, 9 * MS, 0);
	capture_add(capture, &memory);
	return ask(capture, 10 * MS,
		   &(struct why_query){.tid = 11, .from_ts = 1000, .to_ts = 10 * MS});
}

static void test_the_limit_is_shown_if_the_threads_own_page_faults_take_a_tenth(void **state)
{
	static const struct {
		uint32_t faulting;
		uint64_t fault_ns;
		bool shown;
	} rows[] = {{11, 15 * MS / 10, true}, {11, MS / 2, false}, {12, 4 * MS, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why = ask_limited(&capture, rows[i].faulting, rows[i].fault_ns);
		const char *text = strtab_get(why->texts, why->instances.data[0].memory);

		if (rows[i].shown)
			assert_non_null(strstr(text, "memory.max 64.0 MiB of "));
		else
			assert_string_equal(text, "");
		done(&capture, why);
	}
}

/* Thread 11 reads a file, object 1 or not known (0), in waits of 10 ms, of which those whose bits
 * are in `stacks` have a stack. Its cgroup has reached its limit at the end of the waits whose bits
 * are in `full`. */
static struct why *ask_reading(struct capture *capture, const char *function, unsigned full,
			       unsigned stacks, uint32_t file, uint32_t flags)
{
	const char *functions[] = {"io_schedule", function, "vfs_read"};
	uint64_t at = MS;

	capture_begin(capture, true);
	file_on(capture, "/data/shard", 8);
	kernel_stack_of(capture, 0xffff000000001000, functions, 3);
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	for (unsigned i = 0; i < 4; i++, at += 20 * MS) {
		uint64_t end = at + 10 * MS;
		struct waffle_rec_memory memory = {.rec = {end, 11, WAFFLE_REC_MEMORY, 0},
						   .cgroup = 7,
						   .limit_bytes = 48 << 20,
						   .used_bytes = 48 << 20,
						   .flags = flags};

		waits(capture, at, 1, 11, 0, D, NR_READ, 3, 0, 0);
		io_done(capture, at + 1000, end - 1000, 11, 0);
		gets(capture, end, 1, 0, 11, 0, end, HARD);
		if (full & 1u << i)
			capture_add(capture, &memory);
		wait_details(capture, at, end, 11, file, stacks >> i & 1, 0);
	}
	return ask(capture, at, &(struct why_query){.tid = 11, .from_ts = 1000, .to_ts = at});
}

static void test_a_full_cgroup_is_shown_if_reads_of_pages_take_a_quarter(void **state)
{
	static const struct {
		const char *function;
		unsigned full, stacks;
		bool shown;
	} rows[] = {
		{"filemap_read", 15, 15, true},
		{"filemap_read", 9, 15, true},
		{"filemap_read", 15, 4, true}, /* few of very frequent waits have a stack */
		{"filemap_read", 15, 0, false},
		{"filemap_read", 0, 15, false},
		{"filemap_read", 14, 15, false}, /* it filled up meanwhile */
		{"filemap_read", 7, 15, false},
		{"iomap_dio_rw", 15, 15, false}, /* past the memory for files */
		{"iomap_dio_rw", 15, 4, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why =
			ask_reading(&capture, rows[i].function, rows[i].full, rows[i].stacks, 1, 0);
		const char *text = strtab_get(why->texts, why->instances.data[0].memory);

		assert_string_equal(text, rows[i].shown ? "memory.max 48.0 MiB of cgroup 7 used "
							  "up; pages of files are dropped early"
							: "");
		done(&capture, why);
	}
}

static void test_a_read_of_an_unknown_file_does_not_take_the_stack_of_another(void **state)
{
	struct capture capture;
	struct why *why = ask_reading(&capture, "filemap_read", 15, 4, 0, 0);

	(void)state;
	assert_string_equal(strtab_get(why->texts, why->instances.data[0].memory), "");
	done(&capture, why);
}

static void test_a_limit_has_the_name_of_the_file_that_has_it(void **state)
{
	static const struct {
		uint32_t flags;
		const char *name;
	} rows[] = {
		{0, "memory.max 48.0 MiB of cgroup 7 used up"},
		{WAFFLE_MEMORY_HIGH, "memory.high 48.0 MiB of cgroup 7 used up"},
		{WAFFLE_MEMORY_OLD, "memory.limit_in_bytes 48.0 MiB of cgroup 7 used up"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why = ask_reading(&capture, "filemap_read", 15, 15, 1, rows[i].flags);

		check_why_text(why, rows[i].name);
		done(&capture, why);
	}
}

/* ---- CPUs ---- */

/* Thread 11 waits for a CPU behind `other` for `wait_ms` of 20 ms. */
static void begin_waiting(struct capture *capture, uint64_t wait_ms, uint32_t other)
{
	capture_begin(capture, true);
	for (uint32_t tid = 11; tid < 14; tid++)
		named(capture, tid, 11, "worker");
	named(capture, 60, 60, "neighbour");
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	gets(capture, MS, 1, 11, other, 0, 0, 0);
	gets(capture, MS + wait_ms * MS, 1, other, 11, 0, 0, 0);
}

/* The threads from `first` on that have a limit; `dev` is 3. */
struct bound {
	uint32_t first, count;
	uint64_t limit;
	uint32_t kind;
};

static struct why *ask_bound(struct capture *capture, const struct bound *bound)
{
	for (uint32_t tid = bound->first; tid < bound->first + bound->count; tid++)
		capture_add(capture, &(struct waffle_rec_io_limit){
					     .rec = {20 * MS, tid, WAFFLE_REC_IO_LIMIT, 0},
					     .limit = bound->limit,
					     .dev = 3,
					     .kind = bound->kind});
	return ask(capture, 20 * MS,
		   &(struct why_query){.tid = 11, .from_ts = 1000, .to_ts = 20 * MS});
}

static void test_a_thread_that_waits_for_a_cpu_says_what_keeps_it_from_it(void **state)
{
	static const struct {
		uint64_t wait_ms;
		uint32_t other; /* has the CPU */
		struct bound bound;
		const char *text;
	} rows[] = {
		{5,
		 12,
		 {11, 1, 1, WAFFLE_IO_LIMIT_CPUS},
		 "it may run on cpu 3 only (affinity or cpuset)"},
		{5,
		 12,
		 {11, 3, 1, WAFFLE_IO_LIMIT_CPUS},
		 "it and 2 more threads of its process may run on cpu 3 only (affinity or cpuset)"},
		{5,
		 12,
		 {11, 1, 4, WAFFLE_IO_LIMIT_CPUS},
		 "it may run on 4 CPUs only (affinity or cpuset)"},
		{5, 12, {11, 1, 10, WAFFLE_IO_LIMIT_NICE}, "its nice value is 10"},
		{5,
		 60,
		 {11, 1, 4, WAFFLE_IO_LIMIT_WEIGHT},
		 "its cgroup cgroup 0 has cpu.weight 4, not 100"},
		{5,
		 60,
		 {11, 1, 2, WAFFLE_IO_LIMIT_WEIGHT | WAFFLE_IO_LIMIT_OLD},
		 "its cgroup cgroup 0 has cpu.shares 2, not 1024"},
		{1, 12, {11, 1, 1, WAFFLE_IO_LIMIT_CPUS}, ""}, /* it hardly waits */
		{5, 12, {12, 2, 1, WAFFLE_IO_LIMIT_CPUS}, ""}, /* only others */
		/* The one that has the CPU is no better off. */
		{5, 12, {11, 2, 10, WAFFLE_IO_LIMIT_NICE}, ""},
		{5, 12, {11, 1, 4, WAFFLE_IO_LIMIT_WEIGHT}, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why;

		begin_waiting(&capture, rows[i].wait_ms, rows[i].other);
		why = ask_bound(&capture, &rows[i].bound);
		assert_string_equal(strtab_get(why->texts, why->instances.data[0].cpus),
				    rows[i].text);
		if (*rows[i].text)
			check_why_text(why, rows[i].text);
		done(&capture, why);
	}
}

static void test_a_thread_that_has_ended_has_no_limit_of_a_later_one(void **state)
{
	static const struct bound bound = {11, 1, 1, WAFFLE_IO_LIMIT_CPUS};
	struct capture capture;
	struct why *why;

	(void)state;
	begin_waiting(&capture, 5, 12);
	capture_gone(&capture, 15 * MS, 11, WAFFLE_REC_EXIT);
	why = ask_bound(&capture, &bound);
	assert_string_equal(strtab_get(why->texts, why->instances.data[0].cpus), "");
	done(&capture, why);
}

/* Thread 11 waits for a CPU for 0.5 ms, and from 2 to 10 ms for 12, which waits for one for 6 ms.
 */
static void test_a_thread_that_hardly_waits_for_a_cpu_is_not_the_one_with_the_limit(void **state)
{
	static const struct bound bound = {11, 2, 1, WAFFLE_IO_LIMIT_CPUS};
	struct capture capture;
	struct why *why;

	(void)state;
	capture_begin(&capture, true);
	named(&capture, 11, 11, "front");
	named(&capture, 12, 12, "worker");
	named(&capture, 60, 60, "neighbour");
	named(&capture, 61, 61, "neighbour");
	gets(&capture, 1000, 1, 0, 11, 0, 0, 0);
	gets(&capture, 1001, 2, 0, 12, 0, 0, 0);
	gets(&capture, MS, 1, 11, 60, 0, 0, 0);
	gets(&capture, MS + MS / 2, 1, 60, 11, 0, 0, 0);
	waits(&capture, 2 * MS, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(&capture, 3 * MS, 2, 12, 61, 0, 0, 0);
	gets(&capture, 9 * MS, 2, 61, 12, 0, 0, 0);
	gets(&capture, 10 * MS, 1, 0, 11, 12, 10 * MS, 0);
	why = ask_bound(&capture, &bound);
	assert_string_equal(strtab_get(why->texts, why->instances.data[0].cpus),
			    "worker (12) may run on cpu 3 only (affinity or cpuset)");
	done(&capture, why);
}

/* ---- the disk ---- */

static void request(struct capture *capture, uint64_t from, uint64_t to, uint32_t tid,
		    uint32_t bytes)
{
	struct waffle_rec_io rec = {.rec = {to, tid, WAFFLE_REC_IO, 0},
				    .issue_ts = from,
				    .bytes = bytes,
				    .dev = 8,
				    .disk = 80,
				    .flags = WAFFLE_IO_WRITE |
					     (tid >= 60 ? WAFFLE_IO_NEIGHBOUR : 0)};

	capture_add(capture, &rec);
}

/* A request of a neighbour, thread 60 or 61, in the middle of a wait of 10 ms. */
struct meanwhile {
	uint32_t tid, bytes;
	uint64_t ns;
};

/* Thread 11 syncs a file for 10 ms and computes for 1 ms, again and again. */
static struct why *ask_sharing(struct capture *capture, const struct meanwhile *meanwhile,
			       size_t count)
{
	uint64_t at = MS;

	capture_begin(capture, true);
	file_on(capture, "/data/log", 8);
	kernel_stack(capture, 0xffff000000001000, "folio_wait_writeback");
	named(capture, 60, 60, "gcc");
	named(capture, 61, 61, "backup");
	for (size_t i = 0; i < count; i++) {
		char name[] = {(char)('a' + i), 0};

		if (meanwhile[i].tid > 61)
			named(capture, meanwhile[i].tid, meanwhile[i].tid, name);
	}
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	for (size_t i = 0; i < count; i++, at += 11 * MS) {
		uint64_t end = at + 10 * MS;

		waits(capture, at, 1, 11, 0, D, NR_FSYNC, 3, 0, 0);
		if (meanwhile[i].tid)
			request(capture, at + MS, at + MS + meanwhile[i].ns, meanwhile[i].tid,
				meanwhile[i].bytes);
		request(capture, at + 1000, end - 1000, 11, 4096);
		gets(capture, end, 1, 0, 11, 0, end, HARD);
		wait_details(capture, at, end, 11, 1, 1, 0);
	}
	return ask(capture, at, &(struct why_query){.tid = 11, .from_ts = 1000, .to_ts = at});
}

/* Thread 11 syncs a file for 10 ms, and the disk works for 1 ms of that. */
static struct why *ask_throttled(struct capture *capture, uint32_t kind)
{
	struct waffle_rec_io_limit limit = {.rec = {12 * MS, 11, WAFFLE_REC_IO_LIMIT, 0},
					    .cgroup = 7,
					    .limit = 1000,
					    .dev = 80,
					    .kind = kind};

	capture_begin(capture, true);
	file_on(capture, "/data/log", 8);
	named(capture, 11, 11, "writer");
	kernel_stack(capture, 0xffff000000001000, "folio_wait_writeback");
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	waits(capture, MS, 1, 11, 0, D, NR_FSYNC, 3, 0, 0);
	request(capture, 10 * MS, 11 * MS - 1000, 11, 4096);
	gets(capture, 11 * MS, 1, 0, 11, 0, 11 * MS, HARD);
	wait_details(capture, MS, 11 * MS, 11, 1, 1, 0);
	capture_add(capture, &limit);
	return ask(capture, 12 * MS,
		   &(struct why_query){.tid = 11, .from_ts = 1000, .to_ts = 12 * MS});
}

static void test_waits_with_different_neighbours_are_one_cause_with_the_largest(void **state)
{
	static const struct meanwhile meanwhile[] = {
		{60, 1 << 20, 5 * MS}, {0}, {61, 3 << 20, 6 * MS}, {60, 1 << 20, 5 * MS}};
	struct capture capture;
	struct why *why = ask_sharing(&capture, meanwhile, 4);
	const struct why_part *part = part_of(why, 0);

	(void)state;
	check_part(why, 0, "disk-write", 40 * MS, 11, "certain", "/data/log (ext4)");
	assert_int_equal(part->stretches, 4);
	assert_string_equal(model_thread_name(why->model, part->neighbour.thread), "backup");
	assert_int_equal(part->neighbour.bytes, 3 << 20);
	done(&capture, why);
}

static void test_a_limit_of_a_disk_is_named_by_the_file_that_sets_it(void **state)
{
	static const struct {
		uint32_t kind;
		const char *file;
	} rows[] = {
		{WAFFLE_IO_LIMIT_WRITES, "io.max"},
		{WAFFLE_IO_LIMIT_WRITES | WAFFLE_IO_LIMIT_OLD, "blkio.throttle.write_bps_device"},
		{WAFFLE_IO_LIMIT_WRITES | WAFFLE_IO_LIMIT_COUNT | WAFFLE_IO_LIMIT_OLD,
		 "blkio.throttle.write_iops_device"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why = ask_throttled(&capture, rows[i].kind);
		const char *object = strtab_get(why->texts, part_of(why, 0)->object);
		char end[64];

		snprintf(end, sizeof(end), "a second (%s)", rows[i].file);
		assert_non_null(strstr(object, end));
		done(&capture, why);
	}
}

static void test_a_neighbour_is_named_from_a_tenth_of_the_waits_on(void **state)
{
	static const struct {
		struct meanwhile waits[2];
		uint64_t bytes;
	} rows[] = {
		/* 8 KiB in half a millisecond are more than the thread's own, but delay nothing. */
		{{{60, 8192, MS / 2}, {0}}, 0},
		{{{60, 16384, 2 * MS}, {0}}, 16384},
		{{{60, 16384, 2 * MS - 1}, {0}}, 0},
		/* Its share is summed up. */
		{{{60, 16384, MS}, {60, 16384, MS}}, 32768},
		/* The thread itself moves 8 KiB. */
		{{{60, 4096, 8 * MS}, {60, 4096, 8 * MS}}, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why = ask_sharing(&capture, rows[i].waits, 2);

		assert_int_equal(part_of(why, 0)->neighbour.bytes, rows[i].bytes);
		done(&capture, why);
	}
}

/* One wait of 10 ms from MS on. */
static struct why *ask_queued(struct capture *capture, const uint64_t (*requests)[2], size_t count)
{
	uint64_t end = 11 * MS;

	capture_begin(capture, true);
	file_on(capture, "/data/log", 8);
	kernel_stack(capture, 0xffff000000001000, "folio_wait_writeback");
	named(capture, 60, 60, "gcc");
	gets(capture, 1000, 1, 0, 11, 0, 0, 0);
	waits(capture, MS, 1, 11, 0, D, NR_FSYNC, 3, 0, 0);
	request(capture, MS + 1000, MS + 2000, 11, 4096);
	for (size_t i = 0; i < count; i++)
		request(capture, requests[i][0], requests[i][1], 60, 8192);
	gets(capture, end, 1, 0, 11, 0, end, HARD);
	wait_details(capture, MS, end, 11, 1, 1, 0);
	return ask(capture, 20 * MS, &(struct why_query){.tid = 11, .from_ts = MS, .to_ts = end});
}

static void test_overlapping_requests_of_a_neighbour_count_once_and_within_the_wait(void **state)
{
	static const struct {
		uint64_t requests[3][2];
		size_t count;
		uint64_t bytes, ns;
	} rows[] = {
		/* A long one ends after a short one. */
		{{{6 * MS, 7 * MS}, {2 * MS, 10 * MS}}, 2, 16384, 8 * MS},
		/* Two overlap, one does not. */
		{{{2 * MS, 4 * MS}, {6 * MS, 8 * MS}, {7 * MS, 9 * MS}}, 3, 24576, 5 * MS},
		/* One began before the wait, and one ends after it. */
		{{{MS / 2, 3 * MS}, {6 * MS, 13 * MS}}, 2, 8192, 7 * MS},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct capture capture;
		struct why *why = ask_queued(&capture, rows[i].requests, rows[i].count);

		assert_int_equal(part_of(why, 0)->neighbour.bytes, rows[i].bytes);
		assert_int_equal(part_of(why, 0)->neighbour.ns, rows[i].ns);
		done(&capture, why);
	}
}

#define NAMES (4 * WHY_NEIGHBOURS_MAX)

#define LAST 4
#define MIB (1u << 20)

/* So that the search for a name does not grow with their number. */
static void test_a_cause_tells_few_names_of_neighbours_apart(void **state)
{
	(void)state;
	for (uint32_t others = WHY_NEIGHBOURS_MAX - 1; others <= WHY_NEIGHBOURS_MAX; others++) {
		struct meanwhile meanwhile[WHY_NEIGHBOURS_MAX + LAST];
		struct capture capture;
		struct why *why;

		for (uint32_t i = 0; i < others + LAST; i++)
			meanwhile[i] = (struct meanwhile){i < others ? 62 + i : 61, MIB, 8 * MS};
		why = ask_sharing(&capture, meanwhile, others + LAST);
		assert_int_equal(part_of(why, 0)->neighbour.bytes,
				 others < WHY_NEIGHBOURS_MAX ? LAST * MIB : 0);
		done(&capture, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_the_limit_is_shown_if_the_threads_own_page_faults_take_a_tenth),
		cmocka_unit_test(test_a_full_cgroup_is_shown_if_reads_of_pages_take_a_quarter),
		cmocka_unit_test(test_a_read_of_an_unknown_file_does_not_take_the_stack_of_another),
		cmocka_unit_test(test_a_limit_has_the_name_of_the_file_that_has_it),
		cmocka_unit_test(test_a_thread_that_waits_for_a_cpu_says_what_keeps_it_from_it),
		cmocka_unit_test(test_a_thread_that_has_ended_has_no_limit_of_a_later_one),
		cmocka_unit_test(
			test_a_thread_that_hardly_waits_for_a_cpu_is_not_the_one_with_the_limit),
		cmocka_unit_test(
			test_waits_with_different_neighbours_are_one_cause_with_the_largest),
		cmocka_unit_test(test_a_limit_of_a_disk_is_named_by_the_file_that_sets_it),
		cmocka_unit_test(test_a_neighbour_is_named_from_a_tenth_of_the_waits_on),
		cmocka_unit_test(
			test_overlapping_requests_of_a_neighbour_count_once_and_within_the_wait),
		cmocka_unit_test(test_a_cause_tells_few_names_of_neighbours_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
