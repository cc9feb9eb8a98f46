// SPDX-License-Identifier: Apache-2.0
/* Unwinding by tables, against two independent readers of the same information: elfutils for each
 * row, and the run-time's own _Unwind_Backtrace() for this program's stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <alloca.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

#include "target/dwarf/cfi_index.h"
#include "target/dwarf/unwind.h"
#include "util/vec.h"

static __attribute__((no_sanitize_address)) int stack_read(void *context, __u64 *word,
							   uint64_t address)
{
	(void)context;
	if (address & 7 || address < 4096)
		return -1;
	memcpy(word, (const void *)(uintptr_t)address, sizeof(*word));
	return 0;
}
#define WAFFLE_UNWIND_READ(context, word, address) stack_read(context, word, address)
#include "bpf/unwind_step.h"

#define FRAMES_MAX 128

/* ---- this process ---- */

struct module {
	struct waffle_unwind_mapping mapping;
	struct cfi_table table;
};

struct space {
	VEC(struct module) modules;
};

static void space_open(struct space *space)
{
	struct error err = ERROR_INIT;
	struct mappings mappings;

	*space = (struct space){0};
	assert_int_equal(process_mappings(&mappings, getpid(), &err), 0);
	for (size_t i = 0; i < mappings.list.len; i++) {
		struct elf_segments segments;
		struct module module = {0};
		struct elf_file file;

		if (elf_file_open(&file, mappings.list.data[i].path))
			continue; /* [vdso] */
		elf_file_segments(&file, &segments);
		assert_int_equal(cfi_table_read(&module.table, &file), 0);
		assert_true(unwind_place(&module.mapping, &mappings.list.data[i], &segments,
					 &module.table));
		assert_true(vec_push(&space->modules, module));
		elf_file_close(&file);
	}
	mappings_free(&mappings);
}

static void space_close(struct space *space)
{
	for (size_t i = 0; i < space->modules.len; i++)
		cfi_table_free(&space->modules.data[i].table);
	vec_free(&space->modules);
}

/* Unwinds in the same way as the BPF programs. */
static uint32_t walk(const struct space *space, struct waffle_unwind_regs regs,
		     uint64_t addresses[FRAMES_MAX])
{
	static const struct waffle_unwind_row unknown = {.rule = WAFFLE_UNWIND_UNKNOWN};
	uint32_t count = 0;

	do {
		const struct waffle_unwind_row *row = NULL;
		uint64_t pc = waffle_unwind_pc(&regs);

		addresses[count++] = regs.ip;
		for (size_t i = 0; i < space->modules.len; i++) {
			const struct module *module = &space->modules.data[i];

			if (pc >= module->mapping.start && pc < module->mapping.end)
				row = cfi_table_find(&module->table, pc - module->mapping.base +
									     module->table.base);
		}
		if (!waffle_unwind_step(NULL, row ?: &unknown, &regs))
			break;
	} while (count < FRAMES_MAX);
	return count;
}

struct seen {
	uint64_t walked[FRAMES_MAX];
	uint64_t expected[FRAMES_MAX];
	uint32_t count, expected_count;
};

static struct space here;
static struct seen seen;

static _Unwind_Reason_Code expect(struct _Unwind_Context *context, void *arg)
{
	struct seen *list = arg;

	/* After the outermost function it reports one at 0. */
	if (list->expected_count < FRAMES_MAX && _Unwind_GetIP(context))
		list->expected[list->expected_count++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

/* Both from one function: all callers are the same, what is innermost is not compared. */
static __attribute__((noinline)) int look(void)
{
	struct waffle_unwind_regs regs = {.exact = 1};

#if defined(__x86_64__)
	__asm__ volatile("lea 0f(%%rip), %0\n0:\tmov %%rsp, %1\n\tmov %%rbp, %2"
			 : "=&r"(regs.ip), "=&r"(regs.sp), "=&r"(regs.fp));
#else
	__asm__ volatile("adr %0, 0f\n0:\tmov %1, sp\n\tmov %2, x29\n\tmov %3, x30"
			 : "=&r"(regs.ip), "=&r"(regs.sp), "=&r"(regs.fp), "=&r"(regs.lr));
#endif
	seen.count = walk(&here, regs, seen.walked);
	seen.expected_count = 0;
	_Unwind_Backtrace(expect, &seen);
	__asm__ volatile(""); /* no tail call: this function is innermost for both */
	return (int)seen.expected_count;
}

static void compare(uint32_t at_least)
{
	assert_true(seen.count > at_least);
	assert_int_equal(seen.count, seen.expected_count);
	for (uint32_t i = 1; i < seen.count; i++)
		assert_int_equal(seen.walked[i], seen.expected[i]);
}

static int setup(void **state)
{
	(void)state;
	space_open(&here);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	space_close(&here);
	return 0;
}

static __attribute__((noinline)) int recurse(int depth, volatile int *sum)
{
	volatile char room[40 + 8];

	room[0] = (char)depth;
	*sum += room[0];
	if (!depth)
		return look();
	return recurse(depth - 1, sum) + room[0];
}

static void test_callers_are_those_that_the_run_time_finds(void **state)
{
	volatile int sum = 0;

	(void)state;
	recurse(50, &sum);
	compare(52);
}

/* More than a row has bits for, from one end to the other. */
static __attribute__((noinline)) int recurse_far(volatile int *sum)
{
	volatile char room[40000];

	room[0] = room[sizeof(room) - 1] = 1;
	return recurse(3, sum) + room[0] + room[sizeof(room) - 1];
}

static void test_a_function_with_a_large_frame_has_callers(void **state)
{
	volatile int sum = 0;

	(void)state;
	recurse_far(&sum);
	compare(6);
}

static int order(const void *a, const void *b)
{
	if (!seen.count)
		look();
	return *(const int *)a - *(const int *)b;
}

static void test_a_stack_goes_through_the_c_library(void **state)
{
	int numbers[] = {3, 2, 1};

	(void)state;
	seen.count = 0;
	qsort(numbers, 3, sizeof(numbers[0]), order);
	compare(4);
}

static __attribute__((noinline)) int realign(int count)
{
	_Alignas(128) volatile char aligned[128];
	volatile char *more = alloca((size_t)count);

	aligned[0] = 1;
	more[0] = 2;
	return recurse(3, &(volatile int){0}) + aligned[0] + more[0];
}

static void test_a_function_that_aligns_its_stack_has_callers(void **state)
{
	(void)state;
	realign(100);
	compare(6);
}

/* On aarch64 the kernel's own trampoline is called, which has no table. */
#if defined(__x86_64__)
static void handler(int signo)
{
	(void)signo;
	look();
}

static void test_a_signal_handler_has_what_it_interrupted_as_caller(void **state)
{
	struct sigaction action = {.sa_handler = handler};

	(void)state;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	compare(5);
}
#endif

static void *thread(void *arg)
{
	recurse(5, arg);
	return NULL;
}

static void test_a_thread_ends_at_its_first_function(void **state)
{
	volatile int sum = 0;
	pthread_t id;

	(void)state;
	pthread_create(&id, NULL, thread, (void *)&sum);
	pthread_join(id, NULL);
	compare(7);
}

/* ---- rows ---- */

#if defined(__x86_64__)
enum { FP = 6, SP = 7, RA = 16 };
#else
enum { FP = 29, SP = 31, RA = 30 };
#endif

/* Whether elfutils says that a register is saved at an offset from the CFA. */
static bool is_saved(const Dwarf_Op *ops, size_t count, int64_t *offset)
{
	if (count != 2 || ops[0].atom != DW_OP_call_frame_cfa || ops[1].atom != DW_OP_plus_uconst)
		return false;
	*offset = (int64_t)ops[1].number;
	return true;
}

/* Sets where the caller's frame pointer is: aarch64 has it at the lower end of a frame. */
static void expect_fp(struct waffle_unwind_row *row, int64_t offset)
{
#if defined(__aarch64__)
	if (offset < 8 * INT8_MIN) {
		row->rule |= WAFFLE_UNWIND_FP_AT_REGISTER;
		row->fp = (int8_t)(offset / 8 + row->cfa);
		return;
	}
#endif
	row->rule |= WAFFLE_UNWIND_FP_SAVED;
	row->fp = (int8_t)(offset / 8);
}

/* Converts the rule of elfutils to a row. False: it has a form that is not compared. */
static bool row_expected(Dwarf_Frame *frame, struct waffle_unwind_row *row)
{
	Dwarf_Op memory[3], *ops;
	bool signal, far = false; /* far: no row can say where the return address is by itself */
	int64_t offset;
	size_t count;

	*row = (struct waffle_unwind_row){0};
	dwarf_frame_info(frame, NULL, NULL, &signal);
	if (signal || dwarf_frame_cfa(frame, &ops, &count) || count != 1 ||
	    ops[0].atom != DW_OP_bregx || (ops[0].number != FP && ops[0].number != SP) ||
	    (int64_t)ops[0].number2 < 0)
		return false;
	row->rule = ops[0].number == FP ? WAFFLE_UNWIND_FP : WAFFLE_UNWIND_SP;
	row->cfa = (uint16_t)(ops[0].number2 / 8);
	if (dwarf_frame_register(frame, RA, memory, &ops, &count))
		return false;
	if (!count && ops == memory) { /* undefined */
		*row = (struct waffle_unwind_row){.rule = WAFFLE_UNWIND_END};
		return true;
	}
	if (count && ops[0].atom != DW_OP_call_frame_cfa)
		return false; /* in another register: _Unwind_Resume */
#if defined(__aarch64__)
	if (is_saved(ops, count, &offset)) {
		row->rule |= WAFFLE_UNWIND_RA_SAVED;
		row->fp = (int8_t)(offset / 8); /* unless the frame pointer is saved, too */
		far = offset < 8 * INT8_MIN;
	}
#endif
	if (dwarf_frame_register(frame, FP, memory, &ops, &count))
		return false;
	if (!count && !ops)
		return !far; /* as it was */
	if (!is_saved(ops, count, &offset))
		return false;
	expect_fp(row, offset);
	return true;
}

/* Compares all rows of a file; returns how many. */
static size_t compare_file(const char *path, size_t *left_out)
{
	struct cfi_table table;
	struct elf_file file;
	size_t compared = 0;
	Dwarf_CFI *cfi;

	*left_out = 0;
	assert_int_equal(elf_file_open(&file, path), 0);
	assert_int_equal(cfi_table_read(&table, &file), 0);
	cfi = dwarf_getcfi_elf(file.elf);
	assert_int_equal(table.bad, 0);
	for (size_t i = 0; cfi && i < table.count; i++) {
		const struct waffle_unwind_row *row = &table.rows[i];
		struct waffle_unwind_row expected;
		Dwarf_Frame *frame;

		if (row->rule == WAFFLE_UNWIND_UNKNOWN)
			continue;
		assert_ptr_equal(cfi_table_find(&table, table.base + row->pc), row);
		assert_int_equal(dwarf_cfi_addrframe(cfi, table.base + row->pc, &frame), 0);
		if (row_expected(frame, &expected)) {
			assert_int_equal(row->rule, expected.rule);
			assert_int_equal(row->cfa, expected.cfa);
			assert_int_equal(row->fp, expected.fp);
			compared++;
		} else {
			++*left_out;
		}
		free(frame);
	}
	dwarf_cfi_end(cfi);
	cfi_table_free(&table);
	elf_file_close(&file);
	return compared;
}

static void test_rows_say_what_elfutils_says(void **state)
{
	size_t compared = 0, left_out, all_left_out = 0;
	struct error err = ERROR_INIT;
	struct mappings mappings;

	(void)state;
	assert_int_equal(process_mappings(&mappings, getpid(), &err), 0);
	for (size_t i = 0; i < mappings.list.len; i++) {
		if (mappings.list.data[i].path[0] != '/')
			continue;
		compared += compare_file(mappings.list.data[i].path, &left_out);
		all_left_out += left_out;
	}
	mappings_free(&mappings);
	printf("%zu rows compared, %zu not\n", compared, all_left_out);
	assert_true(compared > 10000);
	assert_true(all_left_out * 100 < compared);
}

/* ---- functions ---- */

#if defined(__x86_64__)
#define RETURN_ADDRESS_WORDS 1
#else
#define RETURN_ADDRESS_WORDS 0
#endif

/* Compares what the index says about a file's functions with its rows. Returns the number of rows
 * in functions that are entered by a call. */
static size_t compare_functions(const char *path)
{
	struct cfi_function function, inside;
	struct cfi_index *index;
	struct cfi_table table;
	struct elf_file file;
	size_t entered = 0;

	assert_int_equal(elf_file_open(&file, path), 0);
	assert_int_equal(cfi_table_read(&table, &file), 0);
	assert_int_equal(cfi_index_open(&index, &file), 0);
	for (size_t i = 0; i < table.count; i++) {
		const struct waffle_unwind_row *row = &table.rows[i];
		uint64_t address = table.base + row->pc;
		enum cfi_stack stack = cfi_index_stack(index, address);

		if (!cfi_index_find(index, address, &function))
			continue;
		assert_true(function.from <= address && address < function.to);
		assert_true(cfi_index_find(index, function.to - 1, &inside));
		assert_int_equal(inside.from, function.from);
		entered += cfi_index_stack(index, function.from) == CFI_STACK_ENTERED;
		if (row->rule == WAFFLE_UNWIND_SP) {
			bool bare = row->cfa == RETURN_ADDRESS_WORDS;

			assert_int_equal(stack, bare ? CFI_STACK_ENTERED : CFI_STACK_USED);
		}
	}
	cfi_index_close(index);
	cfi_table_free(&table);
	elf_file_close(&file);
	return entered;
}

static void test_functions_are_entered_with_nothing_on_the_stack(void **state)
{
	assert_true(compare_functions("/proc/self/exe") > 100);
	(void)state;
}

/* ---- bad input ---- */

static void test_a_damaged_file_is_read_without_harm(void **state)
{
	struct elf_file file;
	GElf_Shdr header = {0};
	Elf_Scn *section = NULL;
	unsigned char *bytes;
	size_t names, size;
	struct stat status;
	char path[] = "/tmp/waffle-cfi-XXXXXX";
	uint64_t random = 1;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(elf_file_open(&file, "/proc/self/exe"), 0);
	assert_int_equal(elf_getshdrstrndx(file.elf, &names), 0);
	while ((section = elf_nextscn(file.elf, section)))
		if (gelf_getshdr(section, &header) &&
		    !strcmp(elf_strptr(file.elf, names, header.sh_name), ".eh_frame"))
			break;
	assert_non_null(section);
	assert_int_equal(fstat(file.fd, &status), 0);
	size = (size_t)status.st_size;
	bytes = malloc(size);
	assert_non_null(bytes);
	assert_int_equal(pread(file.fd, bytes, size, 0), (ssize_t)size);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	free(bytes);
	elf_file_close(&file);
	for (int round = 0; round < 200; round++) {
		struct cfi_index *index;
		struct cfi_table table;

		for (int i = 0; i < 50; i++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			assert_int_equal(pwrite(fd, (char[]){(char)(random >> 40)}, 1,
						(off_t)(header.sh_offset +
							(random >> 20) % (header.sh_size ?: 1))),
					 1);
		}
		assert_int_equal(elf_file_open(&file, path), 0);
		assert_int_equal(cfi_table_read(&table, &file), 0);
		for (size_t i = 1; i < table.count; i++)
			assert_true(table.rows[i].pc > table.rows[i - 1].pc);
		assert_int_equal(cfi_index_open(&index, &file), 0);
		for (size_t i = 0; i < table.count; i++)
			cfi_index_stack(index, table.base + table.rows[i].pc);
		cfi_index_close(index);
		cfi_table_free(&table);
		elf_file_close(&file);
	}
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_callers_are_those_that_the_run_time_finds),
		cmocka_unit_test(test_a_function_with_a_large_frame_has_callers),
		cmocka_unit_test(test_a_stack_goes_through_the_c_library),
		cmocka_unit_test(test_a_function_that_aligns_its_stack_has_callers),
#if defined(__x86_64__)
		cmocka_unit_test(test_a_signal_handler_has_what_it_interrupted_as_caller),
#endif
		cmocka_unit_test(test_a_thread_ends_at_its_first_function),
		cmocka_unit_test(test_rows_say_what_elfutils_says),
		cmocka_unit_test(test_functions_are_entered_with_nothing_on_the_stack),
		cmocka_unit_test(test_a_damaged_file_is_read_without_harm),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
