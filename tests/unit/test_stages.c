// SPDX-License-Identifier: Apache-2.0
/* The path of a record from the drain to the file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "capture/stages_internal.h"
#include "store_helpers.h"

/* ---- stand-ins for the functions of kernel/ and of capture/arming that the stages call ---- */

bool kernel_program_is_privileged(const struct kernel *kernel, pid_t pid)
{
	(void)kernel;
	(void)pid;
	return false;
}

uint64_t kernel_program_since(const struct kernel *kernel, pid_t pid)
{
	(void)kernel;
	(void)pid;
	return 0;
}

uint32_t kernel_stack_number(struct kernel *kernel)
{
	(void)kernel;
	return 1;
}

bool kernel_stacks_wanted(const struct kernel *kernel)
{
	(void)kernel;
	return false;
}

uint32_t kernel_wait_sources(const struct kernel *kernel)
{
	(void)kernel;
	return 0;
}

bool kernel_waits_for_descriptor(int syscall)
{
	(void)syscall;
	return false;
}

bool kernel_symbol_find(const struct kernel *kernel, uint64_t address, struct kernel_symbol *symbol)
{
	(void)kernel;
	(void)address;
	(void)symbol;
	return false;
}

void kernel_stack_file(struct kernel *kernel, const struct waffle_inode *inode,
		       const struct waffle_stack_file *file)
{
	(void)kernel;
	(void)inode;
	(void)file;
}

int kernel_stack_process(struct kernel *kernel, pid_t pid,
			 const struct waffle_stack_process *process)
{
	(void)kernel;
	(void)pid;
	(void)process;
	return 0;
}

int kernel_unwind_reserve(struct kernel *kernel, uint64_t count)
{
	(void)kernel;
	(void)count;
	return -ENOSPC;
}

int64_t kernel_unwind_pages(struct kernel *kernel, uint32_t count)
{
	(void)kernel;
	(void)count;
	return -ENOSPC;
}

struct waffle_unwind_page *kernel_unwind_page(struct kernel *kernel, uint32_t page)
{
	(void)kernel;
	(void)page;
	return NULL;
}

static const struct site_info launch = {.name = "launch",
					.category = "cuda",
					.kind = WAFFLE_SITE_EVENT,
					.role = SITE_ROLE_LAUNCH,
					.call = true,
					.key_count = 1,
					.begin_keys = 1,
					.keys = {{WAFFLE_KEY_CODE, "kernel"}}};

/* The second one is redacted. */
static const struct arming_site sites[] = {
	{.info = &launch, .original = &launch, .number = 1, .concerns = true},
	{.info = &launch, .original = &launch, .redacted = 1, .number = 2, .concerns = true},
};

bool arming_concerns_functions(const struct arming *arming)
{
	(void)arming;
	return true;
}

const struct arming_site *arming_site(const struct arming *arming, uint32_t number)
{
	(void)arming;
	return number < 2 ? &sites[number] : NULL;
}

uint32_t arming_site_at(struct arming *arming, pid_t pid, uint64_t probe_addr)
{
	(void)arming;
	(void)pid;
	return probe_addr == 0x1000 ? 1 : WAFFLE_SITE_UNKNOWN;
}

uint32_t arming_number(struct arming *arming, uint32_t site)
{
	(void)arming;
	return site < 2 ? sites[site].number : WAFFLE_SITE_UNKNOWN;
}

/* ---- tests ---- */

/* A function of this program, named by its symbol table. */
void kernel_of_test(void);
__attribute__((noinline)) void kernel_of_test(void)
{
	__asm__ volatile("");
}

struct path_test {
	struct store_test *files;
	struct stages stages;
	struct error err;
};

static void begin(struct path_test *test, void **state)
{
	*test = (struct path_test){.files = *state, .err = ERROR_INIT};
	test->stages = (struct stages){
		.writer = open_writer(test->files->path), .redacts = true, .err = &test->err};
	must(address_spaces_open(&test->stages.spaces, NULL, test->stages.writer, &test->err),
	     &test->err);
	must(enrich_open(&test->stages.enrich, NULL, test->stages.spaces, test->stages.writer,
			 &test->err),
	     &test->err);
	must(code_names_open(&test->stages.names, NULL, test->stages.spaces, test->stages.writer,
			     &test->err),
	     &test->err);
}

static struct store_reader *end(struct path_test *test)
{
	assert_true(code_names_wait(test->stages.names, UINT64_MAX));
	must(code_names_write(test->stages.names, &test->err), &test->err);
	code_names_close(test->stages.names);
	enrich_close(test->stages.enrich);
	address_spaces_close(test->stages.spaces);
	close_writer(test->stages.writer, 1000);
	return open_reader(test->files->path);
}

static void pass(struct path_test *test, struct waffle_rec *rec)
{
	must(stages_pass(&test->stages, rec), &test->err);
}

static void pass_launch(struct path_test *test, uint32_t site, uint64_t ts)
{
	struct record_buffer buffer = {
		.hit = {.rec = {.kind = WAFFLE_REC_HIT, .ts = ts, .tid = (uint32_t)getpid()},
			.tgid = (uint32_t)getpid(),
			.site = site,
			.frame_bytes = sizeof(struct waffle_frame) + 8}};
	uint64_t *values = (uint64_t *)((char *)(&buffer.hit + 1) + sizeof(struct waffle_frame));

	values[0] = (uintptr_t)kernel_of_test;
	pass(test, &buffer.rec);
}

static const void *next(struct store_reader *reader, unsigned kind)
{
	struct error err = ERROR_INIT;
	const struct waffle_rec *rec;

	assert_int_equal(store_reader_next(reader, &rec, &err), 1);
	assert_int_equal(rec->kind, kind);
	return rec;
}

static void test_records_have_the_file_s_numbers_and_no_marks_of_the_kernel(void **state)
{
	struct record_buffer fork = {
		.child = {.rec = {.kind = WAFFLE_REC_FORK, .ts = 10, .tid = 70},
			  .tgid = 70,
			  .child_tgid = 71 | WAFFLE_FORK_SHARES}};
	struct record_buffer exec = {.end = {.rec = {.kind = WAFFLE_REC_EXEC, .ts = 11, .tid = 71},
					     .tgid = 71,
					     .code = 70 | WAFFLE_EXEC_PRIVILEGED}};
	struct waffle_rec_trace trace = {.rec = {.kind = WAFFLE_REC_TRACE, .ts = 12}, .number = 5};
	struct waffle_rec_stack stack = {.rec = {.kind = WAFFLE_REC_STACK, .ts = 13}};
	struct record_buffer span_end = {
		.span_end = {.rec = {.kind = WAFFLE_REC_SPAN_END, .ts = 14, .tid = 71},
			     .span_id = 1,
			     .tgid = 71,
			     .site = WAFFLE_SITE_UNKNOWN,
			     .probe_addr = 0x1000}};
	struct store_reader *reader;
	struct path_test test;

	begin(&test, state);
	pass(&test, &fork.rec);
	pass(&test, &exec.rec);
	pass(&test, &trace.rec); /* never in a file */
	assert_int_equal(stages_pass(&test.stages, &stack.rec), -EINVAL);
	pass(&test, &span_end.rec);
	pass_launch(&test, 0, 15);
	reader = end(&test);
	assert_int_equal(
		((const struct waffle_rec_fork *)next(reader, WAFFLE_REC_FORK))->child_tgid, 71);
	assert_int_equal(((const struct waffle_rec_exit *)next(reader, WAFFLE_REC_EXEC))->code, 70);
	assert_int_equal(
		((const struct waffle_rec_span_end *)next(reader, WAFFLE_REC_SPAN_END))->site, 2);
	assert_int_equal(((const struct waffle_rec_hit *)next(reader, WAFFLE_REC_HIT))->site, 1);
	assert_at_end(reader);
	store_reader_close(reader);
}

static void test_redacted_value_is_in_no_table(void **state)
{
	struct store_reader *reader;
	const struct waffle_rec_hit *hit;
	struct path_test test;

	begin(&test, state);
	pass_launch(&test, 1, 10);
	reader = end(&test);
	hit = next(reader, WAFFLE_REC_HIT);
	assert_int_equal(hit->frame_bytes, sizeof(struct waffle_frame));
	assert_int_equal(store_reader_name_count(reader), 0);
	store_reader_close(reader);
}

/* Another process of the same number may run another program. */
static void test_process_whose_exit_was_lost_leaves_no_names_to_the_next(void **state)
{
	struct store_reader *reader;
	struct path_test test;

	begin(&test, state);
	pass_launch(&test, 0, 10);
	pass_launch(&test, 0, 11);
	stages_forget(&test.stages, getpid());
	pass_launch(&test, 0, 12);
	reader = end(&test);
	assert_int_equal(store_reader_name_count(reader), 2);
	store_reader_close(reader);
}

#define with_folder(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_folder(test_records_have_the_file_s_numbers_and_no_marks_of_the_kernel),
		with_folder(test_redacted_value_is_in_no_table),
		with_folder(test_process_whose_exit_was_lost_leaves_no_names_to_the_next),
	};

	return cmocka_run_group_tests_name("stages", tests, NULL, NULL);
}
