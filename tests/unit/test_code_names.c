// SPDX-License-Identifier: Apache-2.0
/* Functions among the values of calls get their names, and armed sites are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>

#include <cmocka.h>

#include "capture/arming/armed.h"
#include "capture/enrich/code_names.h"
#include "store_helpers.h"

/* A kernel of this program, named by its symbol table. */
void kernel_of_test(void);
__attribute__((noinline)) void kernel_of_test(void)
{
	__asm__ volatile("");
}

/* The name that CUDA's compilers give the host's side of a kernel. */
void stub_of_saxpy(void) __asm__("__device_stub__Z5saxpyifPfS_");
__attribute__((noinline)) void stub_of_saxpy(void)
{
	__asm__ volatile("nop");
}

/* The static variable of such a stub, where CUDA 13 stores the
 * kernel's handle; and one without a handle yet. */
uint64_t kept_handle __asm__("_ZZ28__device_stub__Z5saxpyifPfS_ifPfS_E8__handle");
uint64_t kept_handle = 0x4000;
uint64_t no_handle __asm__("_ZZL24__device_stub__Z4gemmifiifE8__handle");
uint64_t no_handle;

static const struct site_info launch = {
	.name = "launch",
	.category = "cuda",
	.kind = WAFFLE_SITE_EVENT,
	.role = SITE_ROLE_LAUNCH,
	.call = true,
	.key_count = 2,
	.keys = {{WAFFLE_KEY_CODE, "kernel"}, {WAFFLE_KEY_DIM3, "grid"}},
};
static const struct site_info name_site = {
	.name = "cuModuleGetFunction",
	.kind = WAFFLE_SITE_SPAN,
	.role = SITE_ROLE_NAME,
	.call = true,
	.key_count = 2,
	.keys = {{WAFFLE_KEY_STR, "kernel"}, {WAFFLE_KEY_CODE, "function"}},
};
static const struct site_info handle_site = {
	.name = "__cudaGetKernel",
	.kind = WAFFLE_SITE_SPAN,
	.role = SITE_ROLE_HANDLE,
	.call = true,
	.key_count = 2,
	.keys = {{WAFFLE_KEY_CODE, "host"}, {WAFFLE_KEY_CODE, "function"}},
};

struct naming_test {
	struct store_test *files;
	struct address_spaces *spaces;
	struct store_writer *writer;
	struct code_names *names;
	struct store_reader *reader;
};

static struct naming_test begin(void **state)
{
	struct naming_test test = {.files = *state};
	struct error err = ERROR_INIT;

	test.writer = open_writer(test.files->path);
	must(address_spaces_open(&test.spaces, NULL, test.writer, &err), &err);
	must(code_names_open(&test.names, NULL, test.spaces, test.writer, &err), &err);
	return test;
}

static void report(struct naming_test *test, const struct mmap_event *event)
{
	struct error err = ERROR_INIT;

	address_spaces_push(test->spaces, event, true);
	must(address_spaces_begin_round(test->spaces, event->ts + 1, &err), &err);
	must(address_spaces_advance(test->spaces, event->ts, &err), &err);
}

static void hit_at(struct naming_test *test, const struct site_info *site, uint64_t id,
		   uint64_t word, const char *text, uint64_t ts)
{
	struct record_buffer buffer = {
		.hit = {.rec = {.kind = WAFFLE_REC_HIT, .ts = ts}, .tgid = (uint32_t)getpid()}};
	uint64_t *frame = (uint64_t *)(&buffer.hit + 1);
	struct error err = ERROR_INIT;

	frame[0] = id;
	frame[4] = text ? strlen(text) : word;
	buffer.hit.frame_bytes = site == &launch ? 56 : 40;
	if (text) {
		memcpy(&frame[5], text, strlen(text));
		buffer.hit.frame_bytes += (strlen(text) + 7) & ~7u;
	}
	must(code_names_record(test->names, site, 0, &buffer.rec, &err), &err);
}

static void hit(struct naming_test *test, const struct site_info *site, uint64_t id, uint64_t word,
		const char *text)
{
	hit_at(test, site, id, word, text, 0);
}

static void returns_at(struct naming_test *test, const struct site_info *site, uint64_t id,
		       uint64_t handle, uint64_t ts)
{
	struct record_buffer buffer = {.ret = {.rec = {.kind = WAFFLE_REC_RETURN, .ts = ts},
					       .tgid = (uint32_t)getpid(),
					       .span_id = id,
					       .frame_bytes = 8}};
	struct error err = ERROR_INIT;

	*(uint64_t *)(&buffer.ret + 1) = handle;
	must(code_names_record(test->names, site, 1, &buffer.rec, &err), &err);
}

static void returns(struct naming_test *test, const struct site_info *site, uint64_t id,
		    uint64_t handle)
{
	returns_at(test, site, id, handle, 0);
}

/* The names in the file, "value=name " each, in their order. */
static void assert_names(struct naming_test *test, const char *expected)
{
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	char text[1024] = "";

	assert_true(code_names_wait(test->names, UINT64_MAX));
	must(code_names_write(test->names, &err), &err);
	code_names_close(test->names);
	address_spaces_close(test->spaces);
	close_writer(test->writer, 1);
	reader = open_reader(test->files->path);
	for (uint32_t i = 0; i < store_reader_name_count(reader); i++) {
		const struct store_name *name = store_reader_name(reader, i);

		assert_int_equal(name->pid, getpid());
		if (name->value > 0xffffff)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s ",
				 name->name);
		else
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%x=%s ",
				 (unsigned)name->value, name->name);
		if (name->since)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "from %u ",
				 (unsigned)name->since);
	}
	assert_string_equal(text, expected);
	store_reader_close(reader);
}

static void test_function_of_the_process_is_named_once(void **state)
{
	struct naming_test test = begin(state);

	for (int i = 0; i < 3; i++)
		hit(&test, &launch, 10, (uintptr_t)kernel_of_test, NULL);
	hit(&test, &launch, 11, (uintptr_t)kernel_of_test + 1, NULL); /* not where it begins */
	hit(&test, &launch, 12, 0, NULL);
	assert_names(&test, "kernel_of_test ");
}

static void test_address_at_which_something_else_is_mapped_loses_its_name(void **state)
{
	struct mmap_event event = {.kind = MMAP_MAPPED,
				   .pid = getpid(),
				   .ts = 200,
				   .mapping = {.start = (uintptr_t)kernel_of_test,
					       .end = (uintptr_t)kernel_of_test + 1,
					       .path = (char *)""}};
	struct naming_test test = begin(state);
	struct error err = ERROR_INIT;

	hit_at(&test, &launch, 10, (uintptr_t)kernel_of_test, NULL, 100);
	assert_true(code_names_wait(test.names, UINT64_MAX));
	must(code_names_write(test.names, &err), &err);
	hit_at(&test, &launch, 11, (uintptr_t)kernel_of_test, NULL, 199);
	report(&test, &event); /* by no file's code */
	hit_at(&test, &launch, 12, (uintptr_t)kernel_of_test, NULL, 200);
	hit_at(&test, &launch, 13, (uintptr_t)kernel_of_test, NULL, 300);
	/* It may be a handle now, so it is looked up. */
	assert_names(&test, "kernel_of_test 4000=saxpy(int, float, float*, float*)  from 200 ");
}

static void test_stub_is_named_as_the_kernel_that_it_launches(void **state)
{
	struct naming_test test = begin(state);

	hit(&test, &launch, 10, (uintptr_t)stub_of_saxpy, NULL);
	assert_names(&test, "saxpy(int, float, float*, float*) ");
}

static void test_handle_has_the_name_that_it_was_got_by(void **state)
{
	struct naming_test test = begin(state);

	hit(&test, &name_site, 10, 0, "_Z4gemmi");
	hit(&test, &name_site, 11, 0, "plain");
	returns(&test, &name_site, 11, 0x2000);
	returns(&test, &name_site, 10, 0x1000);
	returns(&test, &name_site, 10, 0x3000); /* has returned already */
	hit(&test, &name_site, 12, 0, "failed");
	returns(&test, &name_site, 12, 0);
	hit(&test, &launch, 13, 0x1000, NULL);
	assert_names(&test, "2000=plain 1000=gemm(int) ");
}

/* __cudaRegisterFunction: the function is an argument, not what is returned. */
static void test_function_has_the_name_that_it_was_registered_under(void **state)
{
	static const struct site_info site = {
		.role = SITE_ROLE_NAME,
		.call = true,
		.key_count = 2,
		.keys = {{WAFFLE_KEY_CODE, "function"}, {WAFFLE_KEY_STR, "kernel"}},
	};
	struct record_buffer buffer = {.ret = {.rec.kind = WAFFLE_REC_RETURN,
					       .tgid = (uint32_t)getpid(),
					       .span_id = 10,
					       .frame_bytes = 16}};
	uint64_t *values = (uint64_t *)(&buffer.ret + 1);
	struct naming_test test = begin(state);
	struct error err = ERROR_INIT;

	hit(&test, &site, 10, 0x5000, NULL);
	values[0] = 8;
	memcpy(&values[1], "_Z4gemmi", 8);
	must(code_names_record(test.names, &site, 1, &buffer.rec, &err), &err);
	assert_names(&test, "5000=gemm(int) ");
}

static void test_handle_has_the_name_of_its_function(void **state)
{
	struct naming_test test = begin(state);

	hit(&test, &handle_site, 10, (uintptr_t)kernel_of_test, NULL);
	returns(&test, &handle_site, 10, 0x1000);
	/* The function itself is a value, too. */
	assert_names(&test, "kernel_of_test 1000=kernel_of_test ");
}

static void test_handle_from_before_is_found_in_the_variable_that_keeps_it(void **state)
{
	struct naming_test test = begin(state);

	hit(&test, &launch, 10, 0x1234, NULL); /* a handle that nobody knows */
	hit(&test, &launch, 11, 0x4000, NULL);
	assert_names(&test, "4000=saxpy(int, float, float*, float*) ");
}

static void test_handle_that_is_got_again_has_its_new_name_from_then_on(void **state)
{
	struct naming_test test = begin(state);

	hit(&test, &name_site, 10, 0, "first");
	returns_at(&test, &name_site, 10, 0x1000, 500);
	hit(&test, &launch, 11, 0x1000, NULL);
	hit(&test, &name_site, 12, 0, "second");
	returns_at(&test, &name_site, 12, 0x1000, 600);
	hit(&test, &launch, 13, 0x1000, NULL);
	hit(&test, &name_site, 14, 0, NULL); /* its name can't be read */
	returns_at(&test, &name_site, 14, 0x1000, 700);
	assert_names(&test, "1000=first from 500 1000=second from 600 1000= from 700 ");
}

static void test_handles_that_are_never_given_back_do_not_pile_up(void **state)
{
	struct naming_test test = begin(state);

	for (uint64_t i = 1; i < 10000; i++)
		hit(&test, &name_site, i, 0, "lost");
	returns(&test, &name_site, 1, 0x1000);
	returns(&test, &name_site, 9999, 0x2000); /* there was no room for it */
	hit(&test, &name_site, 10001, 0, "late");
	returns(&test, &name_site, 10001, 0x3000);
	assert_names(&test, "1000=lost 3000=late ");
}

/* Each file with a function stays open. One call's argument is in the `number`th file. */
static void hit_in_file(struct naming_test *test, unsigned number)
{
	struct mmap_event event = {.kind = MMAP_MAPPED, .pid = getpid(), .ts = number};
	struct stat status;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/file", test->files->folder);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(fstat(fd, &status), 0);
	close(fd);
	event.mapping = (struct mapping){.start = number * 0x1000ull,
					 .end = (number + 1) * 0x1000ull,
					 .ino = status.st_ino,
					 .dev = major(status.st_dev) << 20 | minor(status.st_dev),
					 .executable = true,
					 .path = path};
	report(test, &event);
	hit_at(test, &launch, number, event.mapping.start, NULL, number);
	unlink(path);
}

static void test_functions_of_too_many_files_are_reported(void **state)
{
	struct naming_test test = begin(state);
	struct rlimit files = {0};

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	assert_true(files.rlim_max > 5000);
	for (unsigned i = 1; i <= 4096; i++)
		hit_in_file(&test, i);
	assert_null(code_names_warning(test.names));
	hit_in_file(&test, 4097);
	assert_non_null(code_names_warning(test.names));
	assert_names(&test, "");
}

static void test_what_is_armed_is_told_in_words(void **state)
{
	static const struct {
		struct armed_counts counts;
		const char *text;
	} rows[] = {
		{{0}, "nothing"},
		{{.sites = 1}, "1 site"},
		{{.sites = 3, .cuda = 50, .nccl = 7, .probes = 2},
		 "3 sites, 57 CUDA and NCCL calls, 2 probes"},
		{{.cuda = 1}, "1 CUDA call"},
		{{.probes = 1, .functions = 2}, "1 probe, 2 Python functions"},
		{{.hip = 2}, "2 HIP calls"},
		{{.cuda = 1, .hip = 2, .nccl = 3}, "6 CUDA and HIP and NCCL calls"},
		{{.nccl = 9, .probes = 1}, "9 NCCL calls, 1 probe"},
		{{.sites = UINT64_MAX,
		  .cuda = UINT64_MAX / 2,
		  .nccl = UINT64_MAX / 2,
		  .probes = UINT64_MAX,
		  .functions = UINT64_MAX},
		 "18446744073709551615 sites, 18446744073709551614 CUDA and NCCL calls, "
		 "18446744073709551615 probes, 18446744073709551615 Python functions"},
	};
	struct armed_counts counted = {0};
	char text[ARMED_TEXT];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(armed_text(text, &rows[i].counts), rows[i].text);
	armed_count(&counted, &launch);
	armed_count(&counted, &(struct site_info){.category = "nccl", .call = true});
	armed_count(&counted, &(struct site_info){.category = "cuda"}); /* a macro's */
	armed_count(&counted, &(struct site_info){.category = "hip"});
	armed_count(&counted, &(struct site_info){.category = "", .call = true});
	assert_string_equal(armed_text(text, &counted), "2 sites, 2 CUDA and NCCL calls, 1 probe");
}

static void test_sites_without_functions_are_no_concern(void **state)
{
	static const struct site_info plain = {
		.call = true, .key_count = 1, .keys = {{WAFFLE_KEY_PTR, "stream"}}};

	(void)state;
	assert_true(code_names_concern(&launch));
	assert_true(code_names_concern(&name_site));
	assert_false(code_names_concern(&plain));
}

#define with_folder(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_folder(test_function_of_the_process_is_named_once),
		with_folder(test_address_at_which_something_else_is_mapped_loses_its_name),
		with_folder(test_stub_is_named_as_the_kernel_that_it_launches),
		with_folder(test_handle_has_the_name_that_it_was_got_by),
		with_folder(test_function_has_the_name_that_it_was_registered_under),
		with_folder(test_handle_has_the_name_of_its_function),
		with_folder(test_handle_from_before_is_found_in_the_variable_that_keeps_it),
		with_folder(test_handle_that_is_got_again_has_its_new_name_from_then_on),
		with_folder(test_handles_that_are_never_given_back_do_not_pile_up),
		with_folder(test_functions_of_too_many_files_are_reported),
		cmocka_unit_test(test_what_is_armed_is_told_in_words),
		cmocka_unit_test(test_sites_without_functions_are_no_concern),
	};

	return cmocka_run_group_tests_name("functions", tests, NULL, NULL);
}
