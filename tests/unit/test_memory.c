// SPDX-License-Identifier: Apache-2.0
/* What is known of the mappings of processes that are gone, by what the kernel told of them. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "capture/enrich/memory_internal.h"
#include "capture/address_space/mmap_queue.h"
#include "store_helpers.h"
#include "target/process/program_facts.h"
#include "target/worker/worker.h"
#include "target/worker/worker_queue.h"

#define GONE 0x7ffffff0 /* more than any pid */

/* A stand-in for kernel/kernel.c that knows one process. */
struct kernel {
	uint64_t since;
};

uint64_t kernel_program_since(const struct kernel *kernel, pid_t pid)
{
	return pid == getpid() ? kernel->since : UINT64_MAX;
}

bool kernel_program_is_private(const struct kernel *kernel, pid_t pid)
{
	(void)kernel, (void)pid;
	return false;
}

struct memory_test {
	struct store_test *files;
	struct store_writer *writer;
	struct memory *memory;
	struct mapping code; /* this program's, of a file that is there */
	struct mappings mine;
};

static struct memory_test begin_with(void **state, const struct kernel *kernel)
{
	struct memory_test test = {.files = *state};
	struct error err = ERROR_INIT;

	test.writer = open_writer(test.files->path);
	must(memory_open(&test.memory, kernel, test.writer, &err), &err);
	must(process_mappings(&test.mine, getpid(), &err), &err);
	test.code = test.mine.list.data[0];
	return test;
}

static struct memory_test begin(void **state)
{
	return begin_with(state, NULL);
}

static void tell_of(struct memory_test *test, enum mmap_event_kind kind, uint64_t ts,
		    uint64_t start, uint64_t end, bool may_get_rights)
{
	struct mmap_event event = {.kind = kind, .pid = GONE, .ts = ts, .mapping = test->code};
	struct error err = ERROR_INIT;

	event.mapping.start = start;
	event.mapping.end = end;
	must(memory_told(test->memory, &event, may_get_rights, &err), &err);
}

static void tell(struct memory_test *test, enum mmap_event_kind kind, uint64_t ts, uint64_t start,
		 uint64_t end)
{
	tell_of(test, kind, ts, start, end, false);
}

static void exec(struct memory_test *test, uint64_t ts, bool has_rights)
{
	struct error err = ERROR_INIT;

	must(memory_exec(test->memory, GONE, ts, has_rights, &err), &err);
}

/* How many of a caller's frames from the second on are in code: of 0x1800, and of each page of the
 * first eight. */
static void assert_code(struct memory_test *test, const char *pages)
{
	for (uint64_t i = 0; pages[i]; i++) {
		const uint64_t addresses[] = {0x1800, i * 0x1000 + 8};

		assert_int_equal(memory_code(test->memory, GONE, UINT64_MAX, addresses, 2),
				 pages[i] == 'x' ? 2 : 1);
	}
}

/* Rows of the capture: "ts:start-end+offset ". */
static void assert_written(struct memory_test *test, const char *expected)
{
	struct store_reader *reader;
	char text[1024] = "";

	close_writer(test->writer, 1);
	reader = open_reader(test->files->path);
	for (uint32_t i = 0; i < store_reader_mapping_count(reader); i++) {
		const struct store_mapping *row = store_reader_mapping(reader, i);

		assert_int_equal(row->pid, GONE);
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d:%x-%x%s ",
			 (int)row->ts, (unsigned)row->start, (unsigned)row->end,
			 *row->path ? "" : "?");
		if (!*row->path)
			continue;
		assert_int_equal(row->ino, test->code.ino);
		assert_string_equal(row->path, test->code.path);
		assert_true(row->segment_count > 0);
	}
	assert_string_equal(text, expected);
	store_reader_close(reader);
	memory_close(test->memory);
	mappings_free(&test->mine);
}

static void test_mappings_take_the_place_of_those_before(void **state)
{
	struct memory_test test = begin(state);

	tell(&test, MMAP_EXEC, 1, 0, 0);
	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x8000);
	assert_code(&test, " xxxxxxx ");
	test.code.executable = false;
	tell(&test, MMAP_MAPPED, 3, 0x3000, 0x5000); /* splits it */
	assert_code(&test, " xx  xxx ");
	tell(&test, MMAP_MAPPED, 4, 0x7000, 0x9000); /* cuts it */
	assert_code(&test, " xx  xx  ");
	test.code.executable = true;
	tell(&test, MMAP_MAPPED, 5, 0x2000, 0x9000); /* covers four */
	assert_code(&test, " xxxxxxxx ");
	tell(&test, MMAP_MAPPED, 6, 0x2000, 0x9000);
	assert_code(&test, " xxxxxxxx ");
	memory_forget(test.memory, GONE);
	assert_code(&test, "xxxxxxxxxx"); /* nothing is known */
	assert_written(&test, "2:1000-8000 3:3000-5000? 4:7000-9000? 5:2000-9000 ");
}

static void test_exec_leaves_what_the_new_program_has_mapped(void **state)
{
	struct memory_test test = begin(state);

	tell(&test, MMAP_EXEC, 1, 0, 0);
	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	exec(&test, 3, false);
	tell(&test, MMAP_MAPPED, 4, 0x5000, 0x6000);
	assert_code(&test, " x   x  ");
	tell(&test, MMAP_EXEC, 5, 0, 0);
	tell(&test, MMAP_MAPPED, 6, 0x1000, 0x3000);
	exec(&test, 7, false);
	assert_code(&test, " xx     ");
	exec(&test, 9, false); /* of which nothing was told */
	assert_code(&test, "xxxxxxxx");
	assert_written(&test, "2:1000-2000 4:5000-6000 6:1000-3000 ");
}

/* The kernel maps a program before its exec is done and tells whether it has rights. */
static void test_mappings_wait_until_it_is_known_that_the_exec_gave_no_rights(void **state)
{
	struct memory_test test = begin(state);

	tell_of(&test, MMAP_EXEC, 1, 0, 0, true);
	tell_of(&test, MMAP_MAPPED, 2, 0x1000, 0x2000, true);
	tell_of(&test, MMAP_MAPPED, 3, 0x2000, 0x3000, true);
	exec(&test, 4, true);
	assert_code(&test, "xxxxx"); /* nothing is known */
	tell_of(&test, MMAP_EXEC, 5, 0, 0, true);
	tell_of(&test, MMAP_MAPPED, 6, 0x3000, 0x4000, true);
	exec(&test, 7, false);
	tell_of(&test, MMAP_MAPPED, 8, 0x5000, 0x6000, true);
	assert_code(&test, "   x x ");
	/* What is lost with its exec's record is not guessed. */
	tell_of(&test, MMAP_EXEC, 9, 0, 0, true);
	for (uint64_t i = 0; i < 1000; i++)
		tell_of(&test, MMAP_MAPPED, 10, 0x1000 * i, 0x1000 * (i + 1), true);
	tell_of(&test, MMAP_LOST, 11, 0, 0, true);
	tell_of(&test, MMAP_MAPPED, 12, 0x1000, 0x2000, true);
	exec(&test, 13, true);
	assert_written(&test, "6:3000-4000 8:5000-6000 ");
}

static void test_what_may_be_lost_is_not_taken_for_missing(void **state)
{
	struct memory_test test = begin(state);

	tell(&test, MMAP_EXEC, 1, 0, 0);
	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	assert_code(&test, " x   ");
	tell(&test, MMAP_LOST, 3, 0, 0);
	assert_code(&test, "xxxxx");
	exec(&test, 4, false); /* whether before or after: nobody knows */
	tell(&test, MMAP_MAPPED, 5, 0x4000, 0x5000);
	assert_code(&test, "xxxxx");
	assert_written(&test, "2:1000-2000 5:4000-5000 ");
}

static void test_file_that_is_another_at_its_path_is_not_written(void **state)
{
	struct memory_test test = begin(state);
	char nowhere[] = "/nowhere/libnothing.so";

	tell(&test, MMAP_EXEC, 1, 0, 0);
	test.code.ino++;
	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	test.code.ino--;
	test.code.dev++;
	tell(&test, MMAP_MAPPED, 3, 0x2000, 0x3000);
	test.code.dev--;
	test.code.path = nowhere;
	test.code.ino += 2;
	tell(&test, MMAP_MAPPED, 4, 0x3000, 0x4000);
	assert_code(&test, " xxx ");
	assert_written(&test, "");
}

static void test_code_that_takes_the_place_of_a_file_is_told(void **state)
{
	struct memory_test test = begin(state);
	struct mapping file = test.code;
	char none[] = "";

	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x4000);
	test.code.path = none;
	test.code.ino = test.code.dev = 0;
	tell(&test, MMAP_MAPPED, 3, 0x3000, 0x8000);
	tell(&test, MMAP_MAPPED, 4, 0x9000, 0xa000); /* where nothing was */
	tell(&test, MMAP_MAPPED, 5, 0x3000, 0x8000); /* made writable and code again */
	test.code.ino = file.ino + 1;                /* a file that is not there */
	tell(&test, MMAP_MAPPED, 6, 0x1000, 0x2000);
	test.code = file;
	assert_written(&test, "2:1000-4000 3:3000-8000? 6:1000-2000? ");
}

/* *described: how many of them have the facts of their files. */
static uint32_t rows_written(struct memory_test *test, uint32_t *described)
{
	struct store_reader *reader;
	uint32_t count;

	close_writer(test->writer, 1);
	reader = open_reader(test->files->path);
	count = store_reader_mapping_count(reader);
	*described = 0;
	for (uint32_t i = 0; i < count; i++)
		*described += store_reader_mapping(reader, i)->segment_count > 0;
	store_reader_close(reader);
	memory_close(test->memory);
	mappings_free(&test->mine);
	return count;
}

static int need(struct memory_test *test, uint64_t ts)
{
	const uint64_t address = (uintptr_t)need;
	struct error err = ERROR_INIT;

	return memory_need(test->memory, getpid(), ts, &address, 1, &err);
}

/* A hit of the old program is often drained when the process runs the new one. */
static void test_mappings_of_a_new_program_are_not_those_of_a_hit_before_its_exec(void **state)
{
	const struct kernel kernel = {.since = 10};
	struct memory_test test = begin_with(state, &kernel);
	uint32_t described;

	assert_int_equal(need(&test, 5), 0);
	assert_int_equal(rows_written(&test, &described), 0);
}

static void test_mappings_that_were_read_do_not_cut_stacks_from_before_the_exec(void **state)
{
	const uint64_t addresses[] = {(uintptr_t)need, 8};
	const struct kernel kernel = {.since = 10};
	struct memory_test test = begin_with(state, &kernel);
	uint32_t described;

	assert_int_equal(need(&test, 20), 0);
	assert_int_equal(memory_code(test.memory, getpid(), 20, addresses, 2), 1);
	assert_int_equal(memory_code(test.memory, getpid(), 5, addresses, 2), 2);
	assert_true(rows_written(&test, &described) > 0);
}

/* The child ran its parent's program at the hit, and another one when its record is drained. */
static void test_hit_of_a_forked_child_before_its_exec_is_in_its_parents_mappings(void **state)
{
	const struct kernel kernel = {.since = 10};
	struct memory_test test = begin_with(state, &kernel);
	uint32_t described;

	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	memory_fork(test.memory, GONE, getpid());
	assert_int_equal(need(&test, 5), 0);
	assert_int_equal(rows_written(&test, &described), 2);
	assert_int_equal(described, 2);
}

/* ---- files that take long to parse ---- */

static _Atomic bool *may_parse; /* shared with the worker */

static int serve_when_allowed(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	while (!*may_parse)
		;
	return program_facts_serve(request, fd, reply, arg);
}

static struct memory_test begin_with_worker(void **state)
{
	static const struct worker_table table = {
		.handlers = {[WORKER_PROGRAM] = {serve_when_allowed, NULL}}};
	struct error err = ERROR_INIT;

	may_parse = mmap(NULL, sizeof(*may_parse), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(may_parse, MAP_FAILED);
	must(worker_start(&table, &err), &err);
	must(worker_queue_open(&err), &err);
	return begin(state);
}

static void end_worker(void)
{
	worker_queue_close();
	worker_stop();
	munmap((void *)may_parse, sizeof(*may_parse));
}

/* A just-in-time compiler may map one file thousands of times. */
static void test_mappings_of_a_file_that_is_being_parsed_wait_for_its_facts(void **state)
{
	struct memory_test test = begin_with_worker(state);
	struct pollfd ready = {worker_queue_fd(), POLLIN, 0};
	struct error err = ERROR_INIT;
	uint32_t described;

	for (uint64_t i = 1; i <= 300; i++)
		tell(&test, MMAP_MAPPED, i, i * 0x1000, (i + 1) * 0x1000);
	*may_parse = true;
	assert_int_equal(poll(&ready, 1, -1), 1);
	must(memory_late(test.memory, true, &err), &err);
	assert_int_equal(memory_unparsed(test.memory), 0);
	end_worker();
	assert_int_equal(rows_written(&test, &described), 300);
	assert_int_equal(described, 300);
}

static void test_mappings_without_the_facts_of_their_files_are_counted(void **state)
{
	struct memory_test test = begin_with_worker(state);
	struct error err = ERROR_INIT;
	uint32_t described;

	for (uint64_t i = 1; i <= 3; i++)
		tell(&test, MMAP_MAPPED, i, i * 0x1000, (i + 1) * 0x1000);
	must(memory_late(test.memory, true, &err), &err);
	assert_int_equal(memory_unparsed(test.memory), 3);
	end_worker();
	assert_int_equal(rows_written(&test, &described), 3);
	assert_int_equal(described, 0);
}

/* ---- keys ---- */

/* A weak hash of a mapping's words and its inverse, as a program could compute them: the table that
 * had no keys but these took two mappings that collide for one. */
#define MIX 0x9e3779b97f4a7c15ull

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * MIX;
	return hash ^ hash >> 29;
}

/* The value for which mix() of a hash has a result. */
static uint64_t unmix(uint64_t hash, uint64_t result)
{
	uint64_t inverse = MIX, product = result;

	for (unsigned i = 0; i < 6; i++)
		inverse *= 2 - MIX * inverse;
	for (unsigned i = 0; i < 3; i++)
		product = result ^ product >> 29;
	return product * inverse ^ hash;
}

static void test_mapping_that_collides_with_another_is_written(void **state)
{
	struct memory_test test = begin(state);
	uint64_t ranges = mix(mix(3, GONE), 0x1000), offset = test.code.offset;

	tell(&test, MMAP_MAPPED, 1, 0x1000, 0x2000);
	test.code.offset = unmix(mix(ranges, 0x3000), mix(mix(ranges, 0x2000), offset));
	assert_int_not_equal(test.code.offset, offset);
	tell(&test, MMAP_MAPPED, 2, 0x1000, 0x3000);
	assert_written(&test, "1:1000-2000 2:1000-3000 ");
}

static void test_file_that_collides_with_another_does_not_get_its_facts(void **state)
{
	struct memory_test test = begin(state);
	struct mapping file = test.code;

	tell(&test, MMAP_MAPPED, 1, 0x1000, 0x2000);
	test.code.dev++;
	test.code.ino = unmix(1, unmix(0, mix(mix(1, file.ino), file.dev)) ^ test.code.dev);
	assert_int_equal(mix(mix(1, test.code.ino), test.code.dev),
			 mix(mix(1, file.ino), file.dev));
	tell(&test, MMAP_MAPPED, 2, 0x4000, 0x5000); /* of a file that is not there */
	test.code = file;
	assert_written(&test, "1:1000-2000 ");
}

static void test_what_cpus_told_comes_in_the_order_of_time(void **state)
{
	static const uint64_t times[] = {30, 10, 10, 40, 20};
	static const pid_t order[] = {1, 2, 4, 0, 3};
	const struct queued_mmap *next;
	struct error err = ERROR_INIT;
	struct mmap_queue *queue;

	(void)state;
	must(mmap_queue_open(&queue, &err), &err);
	for (int i = 0; i < 5; i++)
		mmap_queue_push(queue,
				&(struct mmap_event){.pid = i,
						     .ts = times[i],
						     .mapping.path = (char[]){"/lib/a"}},
				i == 3);
	assert_int_equal(mmap_queue_begin_round(queue, 35), 0);
	for (int i = 0; i < 4; i++) {
		next = mmap_queue_pop(queue, 30);
		assert_non_null(next);
		assert_int_equal(next->event.pid, order[i]);
		assert_string_equal(next->event.mapping.path, "/lib/a");
	}
	assert_null(mmap_queue_pop(queue, 30));
	mmap_queue_push(queue, &(struct mmap_event){.kind = MMAP_LOST, .ts = 36}, false);
	assert_int_equal(mmap_queue_begin_round(queue, 50), 34);
	assert_int_equal(mmap_queue_pop(queue, 49)->event.kind, MMAP_LOST);
	next = mmap_queue_pop(queue, 49);
	assert_int_equal(next->event.pid, order[4]);
	assert_true(next->traced);
	mmap_queue_close(queue);
}

static void test_more_than_fits_is_told_as_lost(void **state)
{
	struct error err = ERROR_INIT;
	struct mmap_queue *queue;
	unsigned given = 0;

	(void)state;
	must(mmap_queue_open(&queue, &err), &err);
	for (uint64_t i = 1; i <= 100000; i++)
		mmap_queue_push(queue, &(struct mmap_event){.kind = MMAP_EXEC, .pid = 1, .ts = i},
				true);
	mmap_queue_begin_round(queue, UINT64_MAX);
	while (mmap_queue_pop(queue, 100000)->event.kind == MMAP_EXEC)
		given++;
	assert_in_range(given, 1000, 99999);
	mmap_queue_close(queue);
}

#define with_folder(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_folder(test_mappings_take_the_place_of_those_before),
		with_folder(test_exec_leaves_what_the_new_program_has_mapped),
		with_folder(test_mappings_wait_until_it_is_known_that_the_exec_gave_no_rights),
		with_folder(test_what_may_be_lost_is_not_taken_for_missing),
		with_folder(test_file_that_is_another_at_its_path_is_not_written),
		with_folder(test_code_that_takes_the_place_of_a_file_is_told),
		with_folder(test_mappings_of_a_new_program_are_not_those_of_a_hit_before_its_exec),
		with_folder(test_mappings_that_were_read_do_not_cut_stacks_from_before_the_exec),
		with_folder(test_hit_of_a_forked_child_before_its_exec_is_in_its_parents_mappings),
		with_folder(test_mappings_of_a_file_that_is_being_parsed_wait_for_its_facts),
		with_folder(test_mappings_without_the_facts_of_their_files_are_counted),
		with_folder(test_mapping_that_collides_with_another_is_written),
		with_folder(test_file_that_collides_with_another_does_not_get_its_facts),
		cmocka_unit_test(test_what_cpus_told_comes_in_the_order_of_time),
		cmocka_unit_test(test_more_than_fits_is_told_as_lost),
	};

	return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
