// SPDX-License-Identifier: Apache-2.0
/* The mappings of processes over time, also of ended ones, and which of them are written. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "capture/address_space/address_spaces.h"
#include "capture/address_space/mmap_queue_internal.h"
#include "store_helpers.h"
#include "target/process/program_facts.h"
#include "target/worker/worker.h"
#include "target/worker/worker_queue.h"
#include "util/clock.h"

#define GONE 0x7ffffff0  /* more than any pid */
#define OTHER 0x7ffffff1 /* the same */

/* A stand-in for kernel/kernel.c. */
struct kernel {
	uint64_t since;     /* start of this program */
	bool is_privileged; /* this program */
	bool target;        /* GONE is a target, whose exec is recorded */
};

uint64_t kernel_program_since(const struct kernel *kernel, pid_t pid)
{
	if (pid == getpid())
		return kernel->since;
	return kernel->target ? 0 : UINT64_MAX;
}

bool kernel_program_is_privileged(const struct kernel *kernel, pid_t pid)
{
	return pid == getpid() && kernel->is_privileged;
}

uint32_t kernel_wait_sources(const struct kernel *kernel)
{
	(void)kernel;
	return UINT32_MAX;
}

bool kernel_stacks_wanted(const struct kernel *kernel)
{
	(void)kernel;
	return false;
}

struct space_test {
	struct store_test *files;
	struct store_writer *writer;
	struct kernel kernel;
	struct address_spaces *spaces;
	struct mapping code; /* this program's, of a file that is there */
	struct mappings mine;
};

static void begin(struct space_test *test, void **state)
{
	struct error err = ERROR_INIT;

	*test = (struct space_test){.files = *state};
	test->writer = open_writer(test->files->path);
	must(address_spaces_open(&test->spaces, &test->kernel, test->writer, &err), &err);
	must(process_mappings(&test->mine, getpid(), &err), &err);
	test->code = test->mine.list.data[0];
}

static void queue(struct space_test *test, enum mmap_event_kind kind, pid_t pid, uint64_t ts,
		  uint64_t start, uint64_t end)
{
	struct mmap_event event = {.kind = kind, .pid = pid, .ts = ts};
	struct error err = ERROR_INIT;

	if (kind == MMAP_MAPPED) {
		event.mapping = test->code;
		event.mapping.start = start;
		event.mapping.end = end;
	}
	address_spaces_push(test->spaces, &event, true);
	must(address_spaces_begin_round(test->spaces, 1, &err), &err);
}

static void report_of(struct space_test *test, enum mmap_event_kind kind, pid_t pid, uint64_t ts,
		      uint64_t start, uint64_t end)
{
	struct error err = ERROR_INIT;

	queue(test, kind, pid, ts, start, end);
	must(address_spaces_advance(test->spaces, ts, &err), &err);
}

static void report(struct space_test *test, enum mmap_event_kind kind, uint64_t ts, uint64_t start,
		   uint64_t end)
{
	report_of(test, kind, GONE, ts, start, end);
}

static void record(struct space_test *test, const struct waffle_rec *rec, bool privileged)
{
	struct error err = ERROR_INIT;

	processes_record(address_spaces_processes(test->spaces), rec, privileged);
	must(address_spaces_record(test->spaces, rec, privileged, &err), &err);
}

static void exec(struct space_test *test, uint64_t ts, bool privileged)
{
	const struct waffle_rec_exit rec = {.rec = {.kind = WAFFLE_REC_EXEC, .ts = ts, .tid = GONE},
					    .tgid = GONE};

	record(test, &rec.rec, privileged);
}

static void fork_of(struct space_test *test, uint64_t ts, pid_t parent, pid_t child)
{
	const struct waffle_rec_fork rec = {
		.rec = {.kind = WAFFLE_REC_FORK, .ts = ts, .tid = (uint32_t)parent},
		.tgid = (uint32_t)parent,
		.child_tgid = (uint32_t)child};

	record(test, &rec.rec, false);
}

/* Counts the frames from the second on that are in code: at 0x1800, and at each of the first eight
 * pages. */
static void assert_code(struct space_test *test, const char *pages)
{
	for (uint64_t i = 0; pages[i]; i++) {
		const uint64_t addresses[] = {0x1800, i * 0x1000 + 8};

		assert_int_equal(
			address_spaces_code_count(test->spaces, GONE, UINT64_MAX, addresses, 2),
			pages[i] == 'x' ? 2 : 1);
	}
}

/* Rows of the capture: "ts:start-end+offset ". */
static void assert_written(struct space_test *test, const char *expected)
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
	address_spaces_close(test->spaces);
	mappings_free(&test->mine);
}

static void test_mappings_take_the_place_of_those_before(void **state)
{
	struct space_test test;

	begin(&test, state);
	report(&test, MMAP_EXEC, 1, 0, 0);
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x8000);
	assert_code(&test, " xxxxxxx ");
	test.code.executable = false;
	report(&test, MMAP_MAPPED, 3, 0x3000, 0x5000); /* splits it */
	assert_code(&test, " xx  xxx ");
	report(&test, MMAP_MAPPED, 4, 0x7000, 0x9000); /* cuts it */
	assert_code(&test, " xx  xx  ");
	test.code.executable = true;
	report(&test, MMAP_MAPPED, 5, 0x2000, 0x9000); /* covers four */
	assert_code(&test, " xxxxxxxx ");
	report(&test, MMAP_MAPPED, 6, 0x2000, 0x9000);
	assert_code(&test, " xxxxxxxx ");
	address_spaces_forget(test.spaces, GONE);
	assert_code(&test, "xxxxxxxxxx"); /* nothing is known */
	assert_written(&test, "2:1000-8000 3:3000-5000? 4:7000-9000? 5:2000-9000 ");
}

static void test_exec_leaves_what_the_new_program_has_mapped(void **state)
{
	struct space_test test;

	begin(&test, state);
	report(&test, MMAP_EXEC, 1, 0, 0);
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	exec(&test, 3, false);
	report(&test, MMAP_MAPPED, 4, 0x5000, 0x6000);
	assert_code(&test, " x   x  ");
	report(&test, MMAP_EXEC, 5, 0, 0);
	report(&test, MMAP_MAPPED, 6, 0x1000, 0x3000);
	exec(&test, 7, false);
	assert_code(&test, " xx     ");
	exec(&test, 9, false); /* without an event */
	assert_code(&test, "xxxxxxxx");
	assert_written(&test, "2:1000-2000 4:5000-6000 6:1000-3000 ");
}

/* The kernel maps a program before its exec's record says whether it is privileged. */
static void test_mappings_wait_until_the_exec_is_known_to_give_no_privileges(void **state)
{
	struct space_test test;

	begin(&test, state);
	test.kernel.target = true;
	report(&test, MMAP_EXEC, 1, 0, 0);
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	report(&test, MMAP_MAPPED, 3, 0x2000, 0x3000);
	exec(&test, 4, true);
	assert_code(&test, "xxxxx"); /* nothing is known */
	report(&test, MMAP_EXEC, 5, 0, 0);
	report(&test, MMAP_MAPPED, 6, 0x3000, 0x4000);
	exec(&test, 7, false);
	report(&test, MMAP_MAPPED, 8, 0x5000, 0x6000);
	assert_code(&test, "   x x ");
	/* If the record of an exec is lost, the new mappings are not guessed. */
	report(&test, MMAP_EXEC, 9, 0, 0);
	for (uint64_t i = 0; i < 1000; i++)
		report(&test, MMAP_MAPPED, 10, 0x1000 * i, 0x1000 * (i + 1));
	report(&test, MMAP_LOST, 11, 0, 0);
	report(&test, MMAP_MAPPED, 12, 0x1000, 0x2000);
	exec(&test, 13, true);
	assert_written(&test, "6:3000-4000 8:5000-6000 ");
}

static void test_what_may_be_lost_is_not_taken_for_missing(void **state)
{
	struct space_test test;

	begin(&test, state);
	report(&test, MMAP_EXEC, 1, 0, 0);
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	assert_code(&test, " x   ");
	report(&test, MMAP_LOST, 3, 0, 0);
	assert_code(&test, "xxxxx");
	exec(&test, 4, false); /* unknown whether before or after */
	report(&test, MMAP_MAPPED, 5, 0x4000, 0x5000);
	assert_code(&test, "xxxxx");
	assert_written(&test, "2:1000-2000 5:4000-5000 ");
}

static void test_file_that_is_another_at_its_path_is_not_written(void **state)
{
	struct space_test test;
	char nowhere[] = "/nowhere/libnothing.so";

	begin(&test, state);
	report(&test, MMAP_EXEC, 1, 0, 0);
	test.code.ino++;
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	test.code.ino--;
	test.code.dev++;
	report(&test, MMAP_MAPPED, 3, 0x2000, 0x3000);
	test.code.dev--;
	test.code.path = nowhere;
	test.code.ino += 2;
	report(&test, MMAP_MAPPED, 4, 0x3000, 0x4000);
	assert_code(&test, " xxx ");
	assert_written(&test, "");
}

static void test_code_that_takes_the_place_of_a_file_is_written(void **state)
{
	struct space_test test;
	struct mapping file;
	char none[] = "";

	begin(&test, state);
	file = test.code;
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x4000);
	test.code.path = none;
	test.code.ino = test.code.dev = 0;
	report(&test, MMAP_MAPPED, 3, 0x3000, 0x8000);
	report(&test, MMAP_MAPPED, 4, 0x9000, 0xa000); /* where nothing was */
	report(&test, MMAP_MAPPED, 5, 0x3000, 0x8000); /* made writable and code again */
	test.code.ino = file.ino + 1;                  /* a file that is not there */
	report(&test, MMAP_MAPPED, 6, 0x1000, 0x2000);
	test.code = file;
	assert_written(&test, "2:1000-4000 3:3000-8000? 6:1000-2000? ");
}

/* *described: how many of them have the facts of their files. */
static uint32_t rows_written(struct space_test *test, uint32_t *described)
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
	address_spaces_close(test->spaces);
	mappings_free(&test->mine);
	return count;
}

static int need(struct space_test *test, uint64_t ts)
{
	const uint64_t address = (uintptr_t)need;
	struct error err = ERROR_INIT;

	return address_spaces_write(test->spaces, getpid(), ts, &address, 1, &err);
}

/* A hit of the old program is often drained when the process runs the new one. */
static void test_mappings_of_a_new_program_are_not_those_of_a_hit_before_its_exec(void **state)
{
	struct space_test test;
	uint32_t described;

	begin(&test, state);
	test.kernel.since = 10;
	assert_int_equal(need(&test, 5), 0);
	assert_int_equal(rows_written(&test, &described), 0);
}

static void test_mappings_that_were_read_do_not_cut_stacks_from_before_the_exec(void **state)
{
	const uint64_t addresses[] = {(uintptr_t)need, 8};
	struct space_test test;
	uint32_t described;

	begin(&test, state);
	test.kernel.since = 10;
	assert_int_equal(need(&test, 20), 0);
	assert_int_equal(address_spaces_code_count(test.spaces, getpid(), 20, addresses, 2), 1);
	assert_int_equal(address_spaces_code_count(test.spaces, getpid(), 5, addresses, 2), 2);
	assert_true(rows_written(&test, &described) > 0);
}

/* The child ran its parent's program at the hit, and another one when its record is drained. */
static void test_hit_of_a_forked_child_before_its_exec_is_in_its_parents_mappings(void **state)
{
	struct space_test test;
	uint32_t described;

	begin(&test, state);
	test.kernel.since = 10;
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	fork_of(&test, 3, GONE, getpid());
	assert_int_equal(need(&test, 5), 0);
	assert_int_equal(rows_written(&test, &described), 2);
	assert_int_equal(described, 2);
}

/* The child is gone when its stack is drained, and its parent has become another program. */
static void test_child_does_not_get_the_mappings_of_its_parents_next_program(void **state)
{
	const uint64_t address = 0x1800;
	struct error err = ERROR_INIT;
	struct space_test test;
	uint32_t described;

	begin(&test, state);
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	fork_of(&test, 3, GONE, OTHER);
	report(&test, MMAP_EXEC, 4, 0, 0);
	exec(&test, 5, false);
	report(&test, MMAP_MAPPED, 6, 0x1000, 0x2000);
	must(address_spaces_write(test.spaces, OTHER, 7, &address, 1, &err), &err);
	assert_int_equal(rows_written(&test, &described), 2);
}

static struct code_place code_of(struct space_test *test, pid_t pid, uint64_t ts, uint64_t address)
{
	return address_spaces_code(test->spaces, pid, ts, address, false);
}

static void end(struct space_test *test)
{
	uint32_t described;

	rows_written(test, &described);
}

/* The record of the exit of the first one was lost. */
static void test_process_with_a_reused_pid_has_nothing_of_the_one_before(void **state)
{
	struct space_test test;

	begin(&test, state);
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	assert_non_null(code_of(&test, GONE, 2, 0x1800).mapping);
	map_set(&address_spaces_notes(test.spaces, GONE)->values, 1, 1);
	fork_of(&test, 3, OTHER, GONE);
	assert_null(code_of(&test, GONE, 4, 0x1800).mapping);
	assert_null(address_spaces_now(test.spaces, GONE));
	assert_int_equal(address_spaces_notes(test.spaces, GONE)->values.len, 0);
	report(&test, MMAP_MAPPED, 4, 0x3000, 0x4000);
	fork_of(&test, 4, OTHER, GONE); /* not later than that */
	assert_non_null(code_of(&test, GONE, 4, 0x3800).mapping);
	end(&test);
}

/* dlclose() is not reported, only what is mapped there next. */
static void test_library_in_the_place_of_a_closed_one_is_another_from_then_on(void **state)
{
	uint64_t version, ino;
	struct space_test test;

	begin(&test, state);
	ino = test.code.ino;
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x4000);
	map_set(&address_spaces_notes(test.spaces, GONE)->sites, 0x1800, 1);
	version = address_spaces_version(test.spaces);
	test.code.ino++;
	queue(&test, MMAP_MAPPED, GONE, 5, 0x1000, 0x3000);
	assert_int_equal(code_of(&test, GONE, 4, 0x1800).mapping->ino, ino);
	report(&test, MMAP_LOST, 5, 0, 0); /* and so the queued one comes */
	report(&test, MMAP_MAPPED, 6, 0x1000, 0x3000);
	assert_int_equal(code_of(&test, GONE, 6, 0x1800).mapping->ino, ino + 1);
	assert_int_equal(code_of(&test, GONE, 6, 0x1800).since, 6);
	assert_null(code_of(&test, GONE, 6, 0x3800).mapping); /* unknown since the loss */
	assert_int_not_equal(address_spaces_version(test.spaces), version);
	assert_int_equal(address_spaces_notes(test.spaces, GONE)->sites.len, 0);
	test.code.ino--;
	end(&test);
}

static void test_what_was_read_is_unknown_before_a_later_change(void **state)
{
	const uint64_t address = (uintptr_t)need, page = address & ~0xfffull;
	struct error err = ERROR_INIT;
	const struct mappings *now;
	struct space_test test;
	uint64_t read_ts;

	begin(&test, state);
	must(address_spaces_scan(test.spaces, getpid(), &now, &err), &err);
	read_ts = clock_monotonic_ns();
	assert_non_null(code_of(&test, getpid(), read_ts, address).mapping);
	queue(&test, MMAP_MAPPED, OTHER, 10, page, page + 0x1000);
	queue(&test, MMAP_MAPPED, getpid(), 11, page + 0x1000, page + 0x2000);
	queue(&test, MMAP_MAPPED, getpid(), read_ts, page, page + 0x1000); /* after the read */
	assert_non_null(code_of(&test, getpid(), 9, address).mapping);
	queue(&test, MMAP_MAPPED, getpid(), 12, page, page + 0x1000);
	assert_null(code_of(&test, getpid(), 9, address).mapping);
	must(address_spaces_advance(test.spaces, 12, &err), &err);
	assert_int_equal(code_of(&test, getpid(), 12, address).since, 12);
	queue(&test, MMAP_LOST, 0, read_ts, 0, 0);
	must(address_spaces_advance(test.spaces, read_ts - 1, &err), &err);
	assert_non_null(code_of(&test, getpid(), 13, address).mapping);
	mappings_free(&test.mine);
	address_spaces_close(test.spaces);
	close_writer(test.writer, 1);
}

/* The kernel reports the mappings of a new program before its exec is recorded. */
static void test_new_program_keeps_what_was_reported_since_its_exec(void **state)
{
	struct space_test test;

	begin(&test, state);
	report(&test, MMAP_MAPPED, 10, 0x1000, 0x2000);
	assert_int_equal(code_of(&test, GONE, 10, 0x1800).since, 10);
	report(&test, MMAP_EXEC, 20, 0, 0);
	assert_null(code_of(&test, GONE, 20, 0x1800).mapping);
	assert_int_equal(code_of(&test, GONE, 20, 0x1800).since, 20);
	report(&test, MMAP_MAPPED, 30, 0x1000, 0x2000);
	exec(&test, 40, false);
	assert_non_null(code_of(&test, GONE, 40, 0x1800).mapping);
	assert_int_equal(code_of(&test, GONE, 40, 0x1800).since, 30);
	assert_int_equal(code_of(&test, GONE, 40, 0x3800).since, 20);
	end(&test);
}

/* Arming reads it. Nobody else sees it, and nothing of it is written. */
static void test_mappings_of_a_privileged_program_are_for_arming_alone(void **state)
{
	const uint64_t addresses[] = {(uintptr_t)need, 8};
	struct error err = ERROR_INIT;
	const struct mappings *now;
	struct space_test test;
	uint32_t described;

	begin(&test, state);
	test.kernel = (struct kernel){.since = UINT64_MAX, .is_privileged = true};
	must(address_spaces_scan(test.spaces, getpid(), &now, &err), &err);
	assert_true(now->list.len > 0);
	assert_ptr_equal(address_spaces_now(test.spaces, getpid()), now);
	assert_null(code_of(&test, getpid(), 5, addresses[0]).mapping);
	assert_int_equal(need(&test, 5), 0);
	assert_int_equal(address_spaces_code_count(test.spaces, getpid(), 5, addresses, 2), 2);
	assert_int_equal(rows_written(&test, &described), 0);
}

static void test_program_that_gains_privileges_keeps_nothing_of_the_one_before(void **state)
{
	struct space_test test;

	begin(&test, state);
	test.kernel.target = true;
	report(&test, MMAP_MAPPED, 2, 0x1000, 0x2000);
	exec(&test, 3, true);
	assert_null(address_spaces_now(test.spaces, GONE));
	assert_null(code_of(&test, GONE, 3, 0x1800).mapping);
	report(&test, MMAP_MAPPED, 4, 0x1000, 0x2000); /* its own */
	assert_null(address_spaces_now(test.spaces, GONE));
	assert_written(&test, "2:1000-2000 ");
}

/* ---- files that take long to parse ---- */

static _Atomic bool *may_parse; /* shared with the worker */

static int serve_when_allowed(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	while (!*may_parse)
		;
	return program_facts_serve(request, fd, reply, arg);
}

static void begin_with_worker(struct space_test *test, void **state)
{
	static const struct worker_table table = {
		.handlers = {[WORKER_PROGRAM] = {serve_when_allowed, NULL}}};
	struct error err = ERROR_INIT;

	/* Facts that an earlier capture kept would need no parsing. */
	assert_int_equal(setenv("WAFFLE_CACHE", "off", 1), 0);
	may_parse = mmap(NULL, sizeof(*may_parse), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(may_parse, MAP_FAILED);
	must(worker_start(&table, &err), &err);
	must(worker_queue_open(&err), &err);
	begin(test, state);
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
	struct space_test test;
	struct pollfd ready;
	struct error err = ERROR_INIT;
	uint32_t described;

	begin_with_worker(&test, state);
	ready = (struct pollfd){worker_queue_fd(), POLLIN, 0};
	for (uint64_t i = 1; i <= 300; i++)
		report(&test, MMAP_MAPPED, i, i * 0x1000, (i + 1) * 0x1000);
	*may_parse = true;
	assert_int_equal(poll(&ready, 1, -1), 1);
	must(address_spaces_finish(test.spaces, &err), &err);
	assert_int_equal(address_spaces_unparsed(test.spaces), 0);
	end_worker();
	assert_int_equal(rows_written(&test, &described), 300);
	assert_int_equal(described, 300);
}

static void test_mappings_without_the_facts_of_their_files_are_counted(void **state)
{
	struct space_test test;
	struct error err = ERROR_INIT;
	uint32_t described;

	begin_with_worker(&test, state);
	for (uint64_t i = 1; i <= 3; i++)
		report(&test, MMAP_MAPPED, i, i * 0x1000, (i + 1) * 0x1000);
	must(address_spaces_finish(test.spaces, &err), &err);
	assert_int_equal(address_spaces_unparsed(test.spaces), 3);
	end_worker();
	assert_int_equal(rows_written(&test, &described), 3);
	assert_int_equal(described, 0);
}

/* ---- keys ---- */

/* A weak hash of a mapping's words and its inverse, as a program could compute them. A table with
 * no keys but these hashes mistook two mappings that collide for one. */
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

static void test_file_that_collides_with_another_does_not_get_its_facts(void **state)
{
	struct space_test test;
	struct mapping file;

	begin(&test, state);
	file = test.code;
	report(&test, MMAP_MAPPED, 1, 0x1000, 0x2000);
	test.code.dev++;
	test.code.ino = unmix(1, unmix(0, mix(mix(1, file.ino), file.dev)) ^ test.code.dev);
	assert_int_equal(mix(mix(1, test.code.ino), test.code.dev),
			 mix(mix(1, file.ino), file.dev));
	report(&test, MMAP_MAPPED, 2, 0x4000, 0x5000); /* of a file that is not there */
	test.code = file;
	assert_written(&test, "1:1000-2000 ");
}

static void test_events_of_all_cpus_come_in_the_order_of_time(void **state)
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

static void test_events_that_do_not_fit_are_reported_as_lost(void **state)
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
		with_folder(test_mappings_wait_until_the_exec_is_known_to_give_no_privileges),
		with_folder(test_what_may_be_lost_is_not_taken_for_missing),
		with_folder(test_file_that_is_another_at_its_path_is_not_written),
		with_folder(test_code_that_takes_the_place_of_a_file_is_written),
		with_folder(test_mappings_of_a_new_program_are_not_those_of_a_hit_before_its_exec),
		with_folder(test_mappings_that_were_read_do_not_cut_stacks_from_before_the_exec),
		with_folder(test_hit_of_a_forked_child_before_its_exec_is_in_its_parents_mappings),
		with_folder(test_child_does_not_get_the_mappings_of_its_parents_next_program),
		with_folder(test_process_with_a_reused_pid_has_nothing_of_the_one_before),
		with_folder(test_library_in_the_place_of_a_closed_one_is_another_from_then_on),
		with_folder(test_what_was_read_is_unknown_before_a_later_change),
		with_folder(test_new_program_keeps_what_was_reported_since_its_exec),
		with_folder(test_mappings_of_a_privileged_program_are_for_arming_alone),
		with_folder(test_program_that_gains_privileges_keeps_nothing_of_the_one_before),
		with_folder(test_mappings_of_a_file_that_is_being_parsed_wait_for_its_facts),
		with_folder(test_mappings_without_the_facts_of_their_files_are_counted),
		with_folder(test_file_that_collides_with_another_does_not_get_its_facts),
		cmocka_unit_test(test_events_of_all_cpus_come_in_the_order_of_time),
		cmocka_unit_test(test_events_that_do_not_fit_are_reported_as_lost),
	};

	return cmocka_run_group_tests_name("address_spaces", tests, NULL, NULL);
}
