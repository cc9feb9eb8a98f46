// SPDX-License-Identifier: Apache-2.0
/* Stacks of a capture as names: this program is the one that was traced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model_capture.h"

#include "render/text/frame.h"
#include "symbolize/stack_names.h"

#define PID 10

extern char _start[]; /* where this program begins */

__attribute__((noinline)) static uint64_t return_address(void)
{
	return (uintptr_t)__builtin_return_address(0);
}

__attribute__((noinline)) static uint64_t traced_function(void)
{
	uint64_t address = return_address();

	__asm__ volatile("" : "+r"(address)); /* no tail call */
	return address;
}

/* Finds the mapping of this program's file that contains an address. */
static struct store_mapping mapping_of(const void *address)
{
	static char path[256];
	struct store_mapping mapping = {.pid = PID, .path = path};
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end, offset;
	char line[512];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %255s", &start, &end, &offset, path) ==
			    4 &&
		    (uintptr_t)address >= start && (uintptr_t)address < end)
			break;
	fclose(maps);
	mapping.start = start;
	mapping.end = end;
	mapping.offset = offset;
	return mapping;
}

static void put_stack(struct capture *capture, struct store_stack stack)
{
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_stack(capture->writer, &stack, &err), err);
}

static void add_stack(struct capture *capture, uint32_t pid, uint32_t count,
		      const uint64_t *addresses)
{
	put_stack(capture, (struct store_stack){addresses, count, pid, false});
}

static void add_stack_cut(struct capture *capture, uint32_t pid, uint32_t count,
			  const uint64_t *addresses)
{
	put_stack(capture, (struct store_stack){addresses, count, pid, true});
}

static void add_mapping(struct capture *capture, struct store_mapping mapping)
{
	struct error err = ERROR_INIT;

	capture_must(store_writer_add_mapping(capture->writer, &mapping, &err), err);
}

static void put_frame(const struct stack_frame *frame, void *arg)
{
	frame_put(arg, frame);
	fputc('\n', arg);
}

static char *stack_printed(struct stack_names *names, uint32_t stack, uint64_t ts)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	stack_names_each(names, stack, ts, put_frame, out);
	fclose(out);
	return text;
}

static bool cut_mark(struct stack_names *names, uint32_t stack)
{
	char *text = stack_printed(names, stack, 2000);
	size_t len = strlen(text);
	bool result = len > 7 && !strcmp(text + len - 7, "\n[cut]\n");

	free(text);
	return result;
}

static void test_user_addresses_are_named_by_what_was_mapped_then(void **state)
{
	uint64_t address = (uintptr_t)traced_function + 1;
	struct capture capture;
	struct stack_names *names;
	struct stack_frame inner;
	char *text;

	(void)state;
	capture_begin(&capture, true);
	/* Before 5000 another file was there, and that one is gone. */
	add_mapping(&capture, (struct store_mapping){.ts = 2000,
						     .pid = PID,
						     .start = address & ~0xfffull,
						     .end = (address & ~0xfffull) + 0x2000,
						     .offset = 0x3000,
						     .path = "/gone/libold.so"});
	{
		struct store_mapping mapping = mapping_of((void *)(uintptr_t)address);

		mapping.ts = 5000;
		add_mapping(&capture, mapping);
	}
	add_stack(&capture, PID, 2, (uint64_t[]){address, 0x10});
	capture_load(&capture, 9000);
	names = stack_names_open(capture.reader, false);

	text = stack_printed(names, 1, 6000);
	assert_ptr_equal(strstr(text, "traced_function (test_stack_text.c:"), text);
	assert_non_null(strstr(text, ")\n0x10\n"));
	free(text);
	assert_true(stack_names_inner(names, 1, 6000, &inner));
	assert_string_equal(inner.function, "traced_function");
	assert_false(inner.kernel);

	text = stack_printed(names, 1, 3000);
	assert_ptr_equal(strstr(text, "libold.so+0x3"), text);
	free(text);
	assert_false(stack_names_inner(names, 1, 3000, &inner));
	stack_names_close(names);
	capture_free(&capture);
}

static void test_kernel_addresses_are_named_by_the_captures_own_table(void **state)
{
	struct store_symbol symbol = {0xffffffff81000010, 0x10, "ext4_file_read_iter [ext4]"};
	struct error err = ERROR_INIT;
	struct capture capture;
	struct stack_names *names;
	char *text;

	(void)state;
	capture_begin(&capture, true);
	add_stack(&capture, 0, 2, (uint64_t[]){0xffffffff81000010, 0xffffffff81000020});
	capture_must(store_writer_add_symbol(capture.writer, &symbol, &err), err);
	capture_load(&capture, 9000);
	names = stack_names_open(capture.reader, false);
	text = stack_printed(names, 1, 2000);
	assert_string_equal(text, "ext4_file_read_iter [ext4]\n[kernel]+0xffffffff81000020\n");
	free(text);
	/* There is no such stack. */
	assert_int_equal(stack_names_each(names, 2, 2000, put_frame, NULL), 0);
	assert_int_equal(stack_names_each(NULL, 1, 2000, put_frame, NULL), 0);
	stack_names_close(names);
	capture_free(&capture);
}

static void test_frames_of_the_c_library_are_not_the_interesting_ones(void **state)
{
	uint64_t in_libc = (uintptr_t)qsort + 1, own = traced_function();
	struct capture capture;
	struct stack_names *names;
	struct stack_frame inner;
	struct store_mapping mapping;

	(void)state;
	capture_begin(&capture, true);
	mapping = mapping_of((void *)(uintptr_t)in_libc);
	add_mapping(&capture, mapping);
	mapping = mapping_of((void *)(uintptr_t)own);
	add_mapping(&capture, mapping);
	add_stack(&capture, PID, 2, (uint64_t[]){in_libc, own});
	capture_load(&capture, 9000);
	names = stack_names_open(capture.reader, false);
	assert_true(stack_names_inner(names, 1, 2000, &inner));
	assert_string_equal(inner.function, "traced_function");
	stack_names_close(names);
	capture_free(&capture);
}

static void test_stack_ends_where_an_address_is_not_behind_a_call(void **state)
{
	uint64_t own = traced_function(), begin = (uintptr_t)traced_function;
	struct capture capture;
	struct stack_names *names;
	struct store_mapping mapping = mapping_of((void *)(uintptr_t)own);
	FILE *nowhere = fopen("/dev/null", "w");

	(void)state;
	capture_begin(&capture, true);
	add_mapping(&capture, mapping);
	add_stack(&capture, PID, 4, (uint64_t[]){own, own, own, own});
	add_stack(&capture, PID, 4, (uint64_t[]){begin + 2, own, begin + 2, own});
	capture_load(&capture, 9000);
	names = stack_names_open(capture.reader, false);
	assert_int_equal(stack_names_each(names, 1, 2000, put_frame, nowhere), 4);
	assert_int_equal(stack_names_each(names, 2, 2000, put_frame, nowhere), 2);
	assert_true(cut_mark(names, 2));
	assert_false(cut_mark(names, 1));
	stack_names_close(names);
	capture_free(&capture);
	fclose(nowhere);
}

static void test_a_stack_that_is_cut_ends_with_a_mark_that_is_no_frame(void **state)
{
	uint64_t own = traced_function();
	struct capture capture;
	struct stack_names *names;
	struct stack_frame inner;
	char *text;

	(void)state;
	capture_begin(&capture, true);
	add_mapping(&capture, mapping_of((void *)(uintptr_t)own));
	add_stack_cut(&capture, 0, 1, (uint64_t[]){0xffffffff81000010});
	add_stack_cut(&capture, PID, 2, (uint64_t[]){own, own});
	add_stack_cut(&capture, PID, 1, (uint64_t[]){(uintptr_t)_start + 4});
	add_stack_cut(&capture, PID, 1, (uint64_t[]){0x10});
	capture_load(&capture, 9000);
	names = stack_names_open(capture.reader, false);
	text = stack_printed(names, 1, 2000);
	assert_string_equal(text, "[kernel]+0xffffffff81000010\n[cut]\n");
	free(text);
	assert_true(cut_mark(names, 2));
	/* Nothing calls that. */
	text = stack_printed(names, 3, 2000);
	assert_string_equal(text, "_start\n");
	free(text);
	assert_false(stack_names_inner(names, 4, 2000, &inner));
	stack_names_close(names);
	capture_free(&capture);
}

#define PACKAGES "/srv/venv/lib/python3.12/site-packages/"

/* A function of Python, whose number is that of its line. */
static void add_python(struct capture *capture, unsigned line, const char *function,
		       const char *file)
{
	char text[128];
	struct store_name name = {.value = STORE_NAMED | line, .pid = PID, .name = text};
	struct error err = ERROR_INIT;

	snprintf(text, sizeof(text), "%s (%s:%u)", function, file, line);
	capture_must(store_writer_add_name(capture->writer, &name, &err), err);
}

/* Python's own library waits. Who called it says for what: a package, which the program called, or
 * the program itself. */
static void test_the_package_that_called_pythons_library_is_found(void **state)
{
	static const struct {
		unsigned lines[4];
		const char *package;
	} rows[] = {
		{{1, 2, 3, 5}, "Pool.take"},
		{{1, 2, 3, 4}, "Pool.take"},
		{{1, 2, 5, 3}, NULL},
		{{3, 4, 5}, NULL},
		{{5, 4}, NULL},
		{{1, 2}, NULL},
	};
	struct stack_frame package;
	struct stack_names *names;
	struct capture capture;

	(void)state;
	capture_begin(&capture, true);
	add_python(&capture, 1, "Condition.wait", "/usr/lib/python3.12/threading.py");
	add_python(&capture, 2, "Queue.get", "/usr/lib/python3.12/queue.py");
	add_python(&capture, 3, "Pool.take", PACKAGES "client/pool.py");
	add_python(&capture, 4, "Client.get", PACKAGES "client/api.py");
	add_python(&capture, 5, "page", "/srv/shop.py");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t frames[4];
		uint32_t count = 0;

		for (; count < 4 && rows[i].lines[count]; count++)
			frames[count] = STORE_NAMED | rows[i].lines[count];
		add_stack(&capture, PID, count, frames);
	}
	capture_load(&capture, 9000);
	names = stack_names_open(capture.reader, false);
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(stack_names_package(names, i + 1, 2000, &package),
				 rows[i].package != NULL);
		if (!rows[i].package)
			continue;
		assert_string_equal(package.function, rows[i].package);
		assert_string_equal(stack_source_in_packages(package.file), "client/pool.py");
	}
	stack_names_close(names);
	capture_free(&capture);
}

static int traced_variables[4];
static int traced_value = 7;

static void test_variables_are_named_wherever_their_file_is_mapped(void **state)
{
	struct capture capture;
	struct stack_names *names;
	struct store_mapping mapping;

	(void)state;
	traced_variables[1] = traced_value;
	capture_begin(&capture, true);
	/* Only the code is mapped; the addresses of variables follow from it. */
	mapping = mapping_of((void *)(uintptr_t)traced_function);
	add_mapping(&capture, mapping);
	capture_load(&capture, 9000);
	names = stack_names_open(capture.reader, false);
	assert_string_equal(stack_names_variable(names, PID, 2000, (uintptr_t)&traced_variables[0]),
			    "traced_variables");
	assert_string_equal(stack_names_variable(names, PID, 2000, (uintptr_t)&traced_variables[2]),
			    "traced_variables+0x8");
	assert_string_equal(stack_names_variable(names, PID, 2000, (uintptr_t)&traced_value),
			    "traced_value");
	/* The same again, and another process. */
	assert_string_equal(stack_names_variable(names, PID, 2000, (uintptr_t)&traced_value),
			    "traced_value");
	assert_null(stack_names_variable(names, PID + 1, 2000, (uintptr_t)&traced_value));
	assert_null(stack_names_variable(names, PID, 2000, (uintptr_t)&capture));
	stack_names_close(names);
	capture_free(&capture);
}

static void test_a_variable_is_of_what_was_mapped_at_the_time(void **state)
{
	struct capture capture;
	struct stack_names *names;
	struct store_mapping data, other;
	uint64_t address = (uintptr_t)&traced_value;

	(void)state;
	capture_begin(&capture, true);
	add_mapping(&capture, mapping_of((void *)(uintptr_t)traced_function));
	data = mapping_of(&traced_value);
	add_mapping(&capture, data);
	other = data;
	other.ts = 5000;
	other.path = "/no/such/program";
	add_mapping(&capture, other);
	capture_load(&capture, 9000);
	names = stack_names_open(capture.reader, false);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(stack_names_variable(names, PID, 2000, address),
				    "traced_value");
		assert_null(stack_names_variable(names, PID, 6000, address));
	}
	stack_names_close(names);
	capture_free(&capture);
}

/* The same file twice at once, and once more where it was before. */
static void test_a_variable_is_of_the_file_as_it_was_loaded_with_it(void **state)
{
	struct store_mapping code = mapping_of((void *)(uintptr_t)traced_function);
	struct store_mapping data = mapping_of(&traced_value);
	uint64_t address = (uintptr_t)&traced_value, far = 1ull << 40, page = 4096;
	struct capture capture;
	struct stack_names *names;

	(void)state;
	capture_begin(&capture, true);
	for (int i = 0; i < 3; i++) {
		uint64_t shift = i == 0 ? far : i == 1 ? 2 * far : 2 * far - page;
		struct store_mapping moved[] = {code, data};

		for (int k = 0; k < 2; k++) {
			moved[k].start += shift;
			moved[k].end += shift;
			moved[k].ts = i < 2 ? 1000 : 5000;
			add_mapping(&capture, moved[k]);
		}
	}
	capture_load(&capture, 9000);
	names = stack_names_open(capture.reader, false);
	assert_string_equal(stack_names_variable(names, PID, 6000, address + 2 * far - page),
			    "traced_value");
	assert_string_equal(stack_names_variable(names, PID, 2000, address + 2 * far),
			    "traced_value");
	assert_string_equal(stack_names_variable(names, PID, 2000, address + far), "traced_value");
	stack_names_close(names);
	capture_free(&capture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user_addresses_are_named_by_what_was_mapped_then),
		cmocka_unit_test(test_kernel_addresses_are_named_by_the_captures_own_table),
		cmocka_unit_test(test_frames_of_the_c_library_are_not_the_interesting_ones),
		cmocka_unit_test(test_stack_ends_where_an_address_is_not_behind_a_call),
		cmocka_unit_test(test_a_stack_that_is_cut_ends_with_a_mark_that_is_no_frame),
		cmocka_unit_test(test_the_package_that_called_pythons_library_is_found),
		cmocka_unit_test(test_variables_are_named_wherever_their_file_is_mapped),
		cmocka_unit_test(test_a_variable_is_of_what_was_mapped_at_the_time),
		cmocka_unit_test(test_a_variable_is_of_the_file_as_it_was_loaded_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
