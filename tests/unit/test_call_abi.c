// SPDX-License-Identifier: Apache-2.0
/* Locations of arguments: the launch functions of CUDA and NCCL on both machines, row by row. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "probe/args/fetch_program.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *const x86_names[] = {"r15", "r14", "r13", "r12", "rbp", "rbx", "r11",
					"r10", "r9",  "r8",  "rax", "rcx", "rdx", "rsi",
					"rdi", "?",   "rip", "cs",  "fl",  "rsp"};

/* "rdi", "[rsp+8]", "[x0+24]", "&[rsp+8]" for an address, with ":4" if it is not a word. */
static void place_text(char *text, size_t size, uint16_t machine, const struct waffle_fetch *fetch)
{
	char reg[16], word[32];

	if (machine == EM_X86_64)
		snprintf(reg, sizeof(reg), "%s", x86_names[fetch->reg]);
	else if (fetch->reg == ARM64_SP)
		snprintf(reg, sizeof(reg), "sp");
	else
		snprintf(reg, sizeof(reg), "x%u", fetch->reg);
	if (fetch->from == WAFFLE_FETCH_SAVED)
		snprintf(reg, sizeof(reg), "saved%u", fetch->reg);
	if (!fetch->loads && !fetch->offset[0])
		snprintf(word, sizeof(word), "%s", reg);
	else
		snprintf(word, sizeof(word), "%s[%s%+d]", fetch->loads ? "" : "&", reg,
			 fetch->offset[0]);
	if (fetch->loads == 2)
		snprintf(text, size, "[%s%+d]", word, fetch->offset[1]);
	else
		snprintf(text, size, "%s", word);
	if (fetch->format == WAFFLE_FORMAT_HIGH)
		strncat(text, "^", size - strlen(text) - 1);
	if (fetch->bytes == 4)
		strncat(text, ":4", size - strlen(text) - 1);
}

/* All fetches of a description's fetch program, one after the other. */
static void fetch_program_text(char *text, size_t size, const char *description, uint16_t machine)
{
	struct spec_tables tables = {.strings = strtab_new()};
	struct error err = ERROR_INIT;
	struct fetch_program_made made;
	struct call_spec spec = {0};
	struct call_at at;
	char one[64];

	text[0] = '\0';
	if (spec_parse_enum(&tables, "enum dtype i8 u8 i32", "test", &err) ||
	    spec_parse_enum(&tables, "enum op sum prod", "test", &err) ||
	    spec_parse_enum(&tables, "enum copy HtoH HtoD DtoH DtoD default", "test", &err) ||
	    spec_parse(&spec, &tables, description, "test", &err))
		fail_msg("%s", err.message);
	call_at_function(&at, abi_find(machine), &spec.sides[0]);
	if (fetch_program_make(&made, &spec, &at, NULL, &err))
		fail_msg("%s", err.message);
	for (int i = 0;
	     i < made.fetch_program.begins + made.fetch_program.saves + made.fetch_program.returns;
	     i++) {
		place_text(one, sizeof(one), machine, &made.fetch_program.fetches[i]);
		snprintf(text + strlen(text), size - strlen(text), "%s%s", i ? " " : "", one);
	}
	spec_free(&spec);
	vec_free(&tables.enums);
	vec_free(&tables.enum_names);
	vec_free(&tables.sequences);
	strtab_free(tables.strings);
}

/* A row of the table: the function with all its arguments named. */
static const struct row {
	const char *function, *x86, *arm64;
} rows[] = {
	{"cudaLaunchKernel(code f, dim3 g, dim3 b, ptr args, size_t smem, ptr stream)",
	 "rdi rsi rdx:4 rcx r8:4 r9 [rsp+8] [rsp+16]", "x0 x1 x2:4 x3 x4:4 x5 x6 x7"},
	{"cudaLaunchKernelExC(ptr cfg, code f, ptr args)", "rdi rsi rdx", "x0 x1 x2"},
	{"cudaLaunchKernelExC(ptr c, code f, ptr) {*(dim3)(c) as grid, *(dim3)(c+12) as block, "
	 "*(size_t)(c+24) as smem, *(ptr)(c+32) as stream}",
	 "rsi [rdi+0] [rdi+8]:4 [rdi+12] [rdi+20]:4 [rdi+24] [rdi+32]",
	 "x1 [x0+0] [x0+8]:4 [x0+12] [x0+20]:4 [x0+24] [x0+32]"},
	{"cuLaunchKernelEx(ptr cfg, code f, ptr params, ptr extra)", "rdi rsi rdx rcx",
	 "x0 x1 x2 x3"},
	{"cuLaunchKernel(code f, xyz grid, xyz block, unsigned smem, ptr stream, ptr params)",
	 "rdi rsi:4 rdx^:4 rcx:4 r8:4 r9^:4 [rsp+8]:4 [rsp+16]:4 [rsp+24] [rsp+32]",
	 "x0 x1:4 x2^:4 x3:4 x4:4 x5^:4 x6:4 x7:4 [sp+0] [sp+8]"},
	{"cudaGraphLaunch(ptr exec, ptr stream)", "rdi rsi", "x0 x1"},
	{"cudaMemcpyAsync(ptr dst, ptr src, size_t n, enum:copy kind, ptr stream)",
	 "rdi rsi rdx rcx:4 r8", "x0 x1 x2 x3:4 x4"},
	{"cudaMemcpy2DAsync(ptr dst, size_t, ptr src, size_t, size_t width, size_t height, "
	 "enum:copy kind, ptr stream)",
	 "rdi rdx r8 r9 [rsp+8]:4 [rsp+16]", "x0 x2 x4 x5 x6:4 x7"},
	{"cudaMemcpyPeerAsync(ptr, int dst, ptr src, int src_dev, size_t n, ptr stream)",
	 "rsi:4 rdx rcx:4 r8 r9", "x1:4 x2 x3:4 x4 x5"},
	{"cuMemcpyHtoDAsync_v2(ptr, ptr, size_t n, ptr stream)", "rdx rcx", "x2 x3"},
	{"cudaMemsetAsync(ptr, int value, size_t n, ptr stream)", "rsi:4 rdx rcx", "x1:4 x2 x3"},
	{"cudaMalloc(out ptr address, size_t n)", "rsi rdi [saved0+0]", "x1 x0 [saved0+0]"},
	{"cudaStreamSynchronize(ptr stream)", "rdi", "x0"},
	{"cudaEventRecord(ptr event, ptr stream)", "rdi rsi", "x0 x1"},
	{"cudaStreamWaitEvent(ptr stream, ptr event, unsigned flags)", "rdi rsi rdx:4",
	 "x0 x1 x2:4"},
	{"ncclAllReduce(ptr, ptr, size_t n, enum:dtype t, enum:op op, ptr comm, ptr stream)",
	 "rdx rcx:4 r8:4 r9 [rsp+8]", "x2 x3:4 x4:4 x5 x6"},
	{"ncclAllGather(ptr, ptr, size_t n, enum:dtype t, ptr comm, ptr stream)", "rdx rcx:4 r8 r9",
	 "x2 x3:4 x4 x5"},
	{"ncclBroadcast(ptr, ptr, size_t n, enum:dtype t, int root, ptr comm, ptr stream)",
	 "rdx rcx:4 r8:4 r9 [rsp+8]", "x2 x3:4 x4:4 x5 x6"},
	{"ncclReduce(ptr, ptr, size_t n, enum:dtype t, enum:op op, int root, ptr comm, ptr stream)",
	 "rdx rcx:4 r8:4 r9:4 [rsp+8] [rsp+16]", "x2 x3:4 x4:4 x5:4 x6 x7"},
	{"ncclSend(ptr buf, size_t n, enum:dtype t, int peer, ptr comm, ptr stream)",
	 "rdi rsi rdx:4 rcx:4 r8 r9", "x0 x1 x2:4 x3:4 x4 x5"},
	{"ncclCommInitRank(out ptr comm, int nranks, blob:128, int rank)",
	 "rsi:4 rdx:4 rdi [saved0+0]", "x1:4 x3:4 x0 [saved0+0]"},
	{"ncclCommInitRankConfig(out ptr comm, int nranks, blob:128, int rank, ptr config)",
	 "rsi:4 rdx:4 rcx rdi [saved0+0]", "x1:4 x3:4 x4 x0 [saved0+0]"},
	{"ncclCommInitRankScalable(ptr, int nranks, int rank, int nId, ptr ids, ptr config)",
	 "rsi:4 rdx:4 rcx:4 r8 r9", "x1:4 x2:4 x3:4 x4 x5"},
	{"ncclCommInitAll(ptr comms, int ndev, ptr list)", "rdi rsi:4 rdx", "x0 x1:4 x2"},
	{"ncclCommSplit(ptr parent, int color, int key, out ptr comm, ptr config)",
	 "rdi rsi:4 rdx:4 r8 rcx [saved0+0]", "x0 x1:4 x2:4 x4 x3 [saved0+0]"},
	{"ncclCommShrink(ptr, ptr list, int n, out ptr comm, ptr config, int flags)",
	 "rsi rdx:4 r8 r9:4 rcx [saved0+0]", "x1 x2:4 x4 x5:4 x3 [saved0+0]"},
};

static void test_each_row_of_the_launch_table_on_both_machines(void **state)
{
	char description[512], text[512];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		snprintf(description, sizeof(description), "uprobe:lib:%s", rows[i].function);
		fetch_program_text(text, sizeof(text), description, EM_X86_64);
		assert_string_equal(text, rows[i].x86);
		fetch_program_text(text, sizeof(text), description, EM_AARCH64);
		assert_string_equal(text, rows[i].arm64);
	}
	(void)state;
}

static void test_struct_that_does_not_fit_in_registers_goes_to_the_stack_whole(void **state)
{
	char text[512];

	/* x86-64 uses the remaining register, aarch64 does not. */
	fetch_program_text(text, sizeof(text),
			   "uprobe:lib:f(long, long, long, long, long, dim3 d, int x)", EM_X86_64);
	assert_string_equal(text, "[rsp+8] [rsp+16]:4 r9:4");
	fetch_program_text(
		text, sizeof(text),
		"uprobe:lib:f(long, long, long, long, long, long, long, dim3 d, int x, int y)",
		EM_AARCH64);
	assert_string_equal(text, "[sp+0] [sp+8]:4 [sp+16]:4 [sp+24]:4");
	(void)state;
}

static void test_place_of_a_returned_struct_is_an_argument_on_x86_only(void **state)
{
	static const char description[] = "uprobe:lib:f(struct_return, ptr self, int x)";
	char text[512];

	fetch_program_text(text, sizeof(text), description, EM_X86_64);
	assert_string_equal(text, "rsi rdx:4");
	fetch_program_text(text, sizeof(text), description, EM_AARCH64);
	assert_string_equal(text, "x0 x1:4");
	(void)state;
}

static void test_floating_point_arguments_take_no_register_of_the_others(void **state)
{
	char text[512];

	fetch_program_text(text, sizeof(text), "uprobe:lib:f(double, int a, float, long b)",
			   EM_X86_64);
	assert_string_equal(text, "rdi:4 rsi");
	/* The ninth is on the stack. */
	fetch_program_text(
		text, sizeof(text),
		"uprobe:lib:f(double, double, double, double, double, double, double, double, "
		"double, long, long, long, long, long, long, long b)",
		EM_X86_64);
	assert_string_equal(text, "[rsp+16]");
	(void)state;
}

static void test_long_double_lies_where_the_machine_has_it(void **state)
{
	static const struct row longs[] = {
		{"f(long double, int q)", "rdi:4", "x0:4"},
		{"f(long double, long, long, long, long, long, long, long g, long h, long i)",
		 "[rsp+24] [rsp+32] [rsp+40]", "x6 x7 [sp+0]"},
		/* It is aligned to 16 bytes, so a word before it stays unused. */
		{"f(long, long, long, long, long, long, long g, long double, long h, long i)",
		 "[rsp+8] [rsp+40] [rsp+48]", "x6 x7 [sp+0]"},
		/* The ninth is on the stack of both. */
		{"f(double, double, double, double, double, double, double, double, long, long, "
		 "long, long, long, long, long, long, long i, long double, long j)",
		 "[rsp+24] [rsp+56]", "[sp+0] [sp+32]"},
		{"f(double long, double, int q) -> long double", "rdi:4", "x0:4"},
		{"f(long double *p, int q)", "rdi rsi:4", "x0 x1:4"},
	};
	char description[256], text[512];

	for (size_t i = 0; i < COUNT_OF(longs); i++) {
		snprintf(description, sizeof(description), "uprobe:lib:%s", longs[i].function);
		fetch_program_text(text, sizeof(text), description, EM_X86_64);
		assert_string_equal(text, longs[i].x86);
		fetch_program_text(text, sizeof(text), description, EM_AARCH64);
		assert_string_equal(text, longs[i].arm64);
	}
	(void)state;
}

static void test_words_of_an_integer_stand_in_any_order(void **state)
{
	char text[512];

	fetch_program_text(text, sizeof(text),
			   "uprobe:lib:f(long unsigned int a, int short unsigned, unsigned b, "
			   "long long int d, int signed e)",
			   EM_X86_64);
	assert_string_equal(text, "rdi rdx:4 rcx r8:4");
	(void)state;
}

static void test_values_at_the_return_come_from_what_was_saved(void **state)
{
	char text[512];

	fetch_program_text(
		text, sizeof(text),
		"uprobe:lib:f(ptr p, out int n, out long m) {out *(int)(p+4) as after} -> int ret",
		EM_X86_64);
	assert_string_equal(text, "rsi rdx rdi [saved0+0]:4 [saved1+0] [saved2+4]:4 rax:4");
	(void)state;
}

static void test_nested_addresses_become_loads(void **state)
{
	char text[512];

	fetch_program_text(text, sizeof(text), "uprobe:lib:f(ptr r) {*(int)(*(ptr)(r+16)+8) as x}",
			   EM_X86_64);
	assert_string_equal(text, "[[rdi+16]+8]:4");
	fetch_program_text(text, sizeof(text),
			   "uprobe:lib:f(long,long,long,long,long,long, ptr r) {*(int)(r-8) as x}",
			   EM_X86_64);
	assert_string_equal(text, "[[rsp+8]-8]:4");
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_row_of_the_launch_table_on_both_machines),
		cmocka_unit_test(
			test_struct_that_does_not_fit_in_registers_goes_to_the_stack_whole),
		cmocka_unit_test(test_place_of_a_returned_struct_is_an_argument_on_x86_only),
		cmocka_unit_test(test_floating_point_arguments_take_no_register_of_the_others),
		cmocka_unit_test(test_long_double_lies_where_the_machine_has_it),
		cmocka_unit_test(test_words_of_an_integer_stand_in_any_order),
		cmocka_unit_test(test_values_at_the_return_come_from_what_was_saved),
		cmocka_unit_test(test_nested_addresses_become_loads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
