// SPDX-License-Identifier: Apache-2.0
/* Finds the returns of functions by their code. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "probe/find/return_sites_internal.h"

#define AT 0x1000

static enum cfi_stack stack_at(uint64_t address, void *arg)
{
	return address == *(const uint64_t *)arg ? CFI_STACK_USED : CFI_STACK_UNKNOWN;
}

#define X86(...) X86_USED(0, __VA_ARGS__)
/* `used`: the address where something is on the stack. */
#define X86_USED(used, ...)                                                                        \
	return_sites_add(&returns, EM_X86_64, (const uint8_t[]){__VA_ARGS__},                      \
			 sizeof((const uint8_t[]){__VA_ARGS__}), AT, stack_at, &(uint64_t){used})

#define ARM64(...)                                                                                 \
	return_sites_add(&returns, EM_AARCH64, (const uint8_t *)(const uint32_t[]){__VA_ARGS__},   \
			 sizeof((const uint32_t[]){__VA_ARGS__}), AT, stack_at, &(uint64_t){0})

static void test_all_returns_and_what_is_jumped_to_are_found(void **state)
{
	struct return_sites returns = {0};

	/* test edi, edi; jne AT+5; ret; repz ret; jmp AT+0x100 */
	assert_true(X86(0x85, 0xff, 0x75, 0x01, 0xc3, 0xf3, 0xc3, 0xe9, 0xf4, 0, 0, 0));
	assert_int_equal(returns.count, 2);
	assert_int_equal(returns.list[0], AT + 4);
	assert_int_equal(returns.list[1], AT + 5);
	assert_int_equal(returns.leave_count, 1);
	assert_int_equal(returns.leaves[0], AT + 0x100);
	(void)state;
}

static void test_jump_to_what_a_register_holds_may_leave(void **state)
{
	struct return_sites returns = {0};

	assert_false(X86(0xff, 0xe0, 0xc3));                      /* jmp *rax */
	assert_false(X86(0xff, 0x24, 0xc5, 0, 0x20, 0, 0, 0xc3)); /* jmp *0x2000(, rax, 8) */
	assert_false(X86(0xff, 0x25, 0, 0x20, 0, 0, 0xc3));       /* jmp *0x2000(rip) */
	assert_false(X86(0x48, 0x01, 0xd0, 0xff, 0xe0, 0xc3));    /* add rax, rdx; jmp *rax */
	assert_false(ARM64(0xd61f0000, 0xd65f03c0));              /* br x0; ret */
	/* adrp x16; add x16, x16, #8; br x16: as linkers reach what is far */
	assert_false(ARM64(0x90000010, 0x91002210, 0xd61f0200));
	(void)state;
}

static void test_jump_by_a_table_stays(void **state)
{
	struct return_sites returns = {0};

	/* movslq (rcx, rdi, 4), rax; add rax, rcx; jmp *rax; ret */
	assert_true(X86(0x48, 0x63, 0x04, 0xb9, 0x48, 0x01, 0xc8, 0xff, 0xe0, 0xc3));
	/* notrack jmp *rax; ret */
	assert_true(X86(0x3e, 0xff, 0xe0, 0xc3));
	/* ldrb w11, [x9, x8]; add x10, x10, x11, lsl #2; br x10; ret */
	assert_true(ARM64(0x3868692b, 0x8b0b094a, 0xd61f0140, 0xd65f03c0));
	/* ldrh w1, [x2, w0, uxtw #1]; add x1, x3, w1, sxth #2; br x1; ret */
	assert_true(ARM64(0x78605841, 0x8b21a861, 0xd61f0020, 0xd65f03c0));
	assert_int_equal(returns.count, 4);
	(void)state;
}

static void test_entry_of_a_table_is_of_no_use_long_before_the_jump(void **state)
{
	struct return_sites returns = {0};

	/* movslq (rcx, rdi, 4), rax; 9 nops; add rax, rcx; jmp *rax */
	assert_false(X86(0x48, 0x63, 0x04, 0xb9, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
			 0x90, 0x48, 0x01, 0xc8, 0xff, 0xe0));
	/* movslq (rcx, rdi, 4), rax; add rax, rcx; jmp *rdx */
	assert_false(X86(0x48, 0x63, 0x04, 0xb9, 0x48, 0x01, 0xc8, 0xff, 0xe2));
	(void)state;
}

static void test_function_is_not_left_while_its_stack_is_in_use(void **state)
{
	struct return_sites returns = {0};

	assert_true(X86_USED(AT + 1, 0x50, 0xff, 0xe0, 0x58, 0xc3)); /* push; jmp *rax; pop; ret */
	assert_false(X86_USED(AT, 0x50, 0xff, 0xe0, 0x58, 0xc3));
	(void)state;
}

static void test_code_that_is_cut_short_goes_on_behind(void **state)
{
	struct return_sites returns = {0};

	assert_true(X86(0xc3, 0x0f, 0x05)); /* ret; syscall */
	assert_int_equal(returns.leave_count, 1);
	assert_int_equal(returns.leaves[0], AT + 3);
	returns.leave_count = 0;
	assert_true(X86(0xc3, 0xe8, 0, 0, 0, 0)); /* ret; call of abort() or the like */
	assert_true(X86(0xc3, 0x0f, 0x0b));       /* ret; ud2 */
	assert_true(X86(0x75, 0x01, 0x90, 0xc3));
	assert_true(ARM64(0xd65f03c0, 0x94000000)); /* ret; bl */
	assert_true(ARM64(0xd65f03c0));
	assert_int_equal(returns.leave_count, 0);
	assert_true(ARM64(0xd65f03c0, 0xd4000001)); /* ret; svc */
	assert_int_equal(returns.leave_count, 1);
	(void)state;
}

static void test_code_that_is_not_understood_has_no_known_returns(void **state)
{
	struct return_sites returns = {0};

	assert_false(X86(0x75, 0x01, 0xb8, 0xc3, 0, 0, 0, 0xc3)); /* jne to the 0xc3 of mov */
	assert_false(X86_USED(AT, 0xc3));    /* ret with something on the stack */
	assert_false(X86(0xc3, 0x06));       /* ret; no instruction of 64 bits */
	assert_false(X86(0x48, 0xcf));       /* iretq */
	assert_false(X86(0xc3, 0xe9, 0, 0)); /* cut off */
	assert_false(return_sites_add(&returns, EM_RISCV, (const uint8_t[]){0}, 1, AT, stack_at,
				      &(uint64_t){0}));
	(void)state;
}

static void test_return_probes_are_not_used_where_they_kill_confined_programs(void **state)
{
#ifdef __x86_64__
	static const char *const unsafe[] = {"6.11.0", "6.12.9-amd64", "6.13.0-rc7", "6.12"};

	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++)
		assert_false(return_probe_is_safe(unsafe[i]));
#endif
	static const char *const safe[] = {"6.10.14", "6.1.0-13-amd64", "6.14.2", "7.12.1", "5.15"};

	for (size_t i = 0; i < sizeof(safe) / sizeof(safe[0]); i++)
		assert_true(return_probe_is_safe(safe[i]));
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_returns_and_what_is_jumped_to_are_found),
		cmocka_unit_test(test_jump_to_what_a_register_holds_may_leave),
		cmocka_unit_test(test_jump_by_a_table_stays),
		cmocka_unit_test(test_entry_of_a_table_is_of_no_use_long_before_the_jump),
		cmocka_unit_test(test_function_is_not_left_while_its_stack_is_in_use),
		cmocka_unit_test(test_code_that_is_cut_short_goes_on_behind),
		cmocka_unit_test(test_code_that_is_not_understood_has_no_known_returns),
		cmocka_unit_test(test_return_probes_are_not_used_where_they_kill_confined_programs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
