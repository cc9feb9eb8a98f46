// SPDX-License-Identifier: Apache-2.0
/* Addresses that can be return addresses, compared with what the assembler and the C library say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <execinfo.h>
#include <string.h>

#include "target/dwarf/callsite.h"

/* All ways to call, as the assembler writes them; each is followed by its address in `returns`. */
#if defined(__x86_64__)
#define MACHINE EM_X86_64
__asm__(".pushsection .text\n"
	"nop; nop; nop; nop; nop; nop; nop\n"
	".macro after insn:vararg\n"
	"\\insn\n"
	"1:	.pushsection .data.rel.local,\"aw\"; .quad 1b; .popsection\n"
	".endm\n"
	".pushsection .data.rel.local,\"aw\"; .globl returns; returns: .popsection\n"
	"after call returns_target\n"
	"after call *%rax\n"
	"after call *%r11\n"
	"after call *(%rax)\n"
	"after call *(%r12)\n"
	"after call *8(%rbx)\n"
	"after call *8(%rsp)\n"
	"after call *0x12345(%rdi)\n"
	"after call *0x12345(%rsp,%rdx,2)\n"
	"after call *(%rax,%rbx,8)\n"
	"after call *0x10(%r9,%r10,8)\n"
	"after call *0x1234(,%rax,8)\n"
	"after call *returns_target(%rip)\n"
	".pushsection .data.rel.local,\"aw\"; .quad 0; .popsection\n"
	".pushsection .data.rel.local,\"aw\"; .globl others; others: .popsection\n"
	"after jmp returns_target\n"
	"after jmp *%rax\n"
	"after push %rbp\n"
	"after mov %rsp, %rbp\n"
	"after lea 0xd(%rip), %rax\n"
	"after incl (%rax)\n"
	"after nopw 0(%rax,%rax,1)\n"
	"after ret\n"
	".pushsection .data.rel.local,\"aw\"; .quad 0; .popsection\n"
	"returns_target: ret\n"
	".popsection\n");
#else
#define MACHINE EM_AARCH64
__asm__(".pushsection .text\n"
	"nop; nop\n"
	".macro after insn:vararg\n"
	"\\insn\n"
	"1:	.pushsection .data.rel.local,\"aw\"; .quad 1b; .popsection\n"
	".endm\n"
	".pushsection .data.rel.local,\"aw\"; .globl returns; returns: .popsection\n"
	"after bl returns_target\n"
	"after blr x8\n"
	"after blr x30\n"
	".pushsection .data.rel.local,\"aw\"; .quad 0; .popsection\n"
	".pushsection .data.rel.local,\"aw\"; .globl others; others: .popsection\n"
	"after b returns_target\n"
	"after br x8\n"
	"after stp x29, x30, [sp, #-16]!\n"
	"after cbz x0, returns_target\n"
	"after nop\n"
	"after ret\n"
	".pushsection .data.rel.local,\"aw\"; .quad 0; .popsection\n"
	"returns_target: ret\n"
	".popsection\n");
#endif
extern const uint64_t returns[], others[];

static bool is_call(uint64_t address)
{
	uint8_t before[CALLSITE_BYTES];

	memcpy(before, (const void *)(uintptr_t)(address - sizeof(before)), sizeof(before));
	return callsite_is_call(before, MACHINE);
}

static void test_behind_every_form_of_call_one_can_return(void **state)
{
	(void)state;
	for (unsigned i = 0; returns[i]; i++)
		if (!is_call(returns[i]))
			fail_msg("call %u is not seen", i);
}

static void test_behind_other_instructions_nobody_returns(void **state)
{
	(void)state;
	for (unsigned i = 0; others[i]; i++)
		if (is_call(others[i]))
			fail_msg("instruction %u is taken for a call", i);
}

static void test_all_return_addresses_of_this_program_are_behind_calls(void **state)
{
	void *stack[64];
	int count = backtrace(stack, 64);

	(void)state;
	assert_true(count > 3);
	/* The last one is in _start, which was not called. */
	for (int i = 0; i < count - 1; i++)
		assert_true(is_call((uintptr_t)stack[i]));
}

static void test_calls_of_aarch64_are_known_and_other_machines_believed(void **state)
{
	static const struct {
		uint32_t word;
		bool call;
	} words[] = {
		{0x94000010, true},  /* bl */
		{0x97fffff0, true},  /* bl, backwards */
		{0xd63f0100, true},  /* blr x8 */
		{0xd73f0909, true},  /* blraa x8, x9 */
		{0xd63f091f, true},  /* blraaz x8 */
		{0x14000010, false}, /* b */
		{0xd61f0100, false}, /* br x8 */
		{0xd65f03c0, false}, /* ret */
		{0xa9bf7bfd, false}, /* stp x29, x30, [sp, #-16]! */
	};
	uint8_t before[CALLSITE_BYTES] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		memcpy(before + CALLSITE_BYTES - 4, &words[i].word, 4);
		assert_int_equal(callsite_is_call(before, EM_AARCH64), words[i].call);
	}
	assert_true(callsite_is_call(before, EM_RISCV));
}

static void check_pause(uint32_t code, uint16_t machine, bool expected)
{
	uint8_t before[CALLSITE_BYTES] = {0};

	memcpy(before + CALLSITE_BYTES - 4, &code, sizeof(code));
	assert_int_equal(callsite_is_pause(before, machine), expected);
}

static void test_the_instruction_of_loops_that_wait_is_known(void **state)
{
	(void)state;
	check_pause(0x90f30000, EM_X86_64, true);   /* pause */
	check_pause(0x90900000, EM_X86_64, false);  /* nop; nop */
	check_pause(0xd5033fdf, EM_AARCH64, true);  /* isb */
	check_pause(0xd503203f, EM_AARCH64, true);  /* yield */
	check_pause(0xd503201f, EM_AARCH64, false); /* nop */
	check_pause(0xd5033bbf, EM_AARCH64, false); /* dmb ish */
	check_pause(0x90f30000, EM_RISCV, false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_behind_every_form_of_call_one_can_return),
		cmocka_unit_test(test_behind_other_instructions_nobody_returns),
		cmocka_unit_test(test_all_return_addresses_of_this_program_are_behind_calls),
		cmocka_unit_test(test_calls_of_aarch64_are_known_and_other_machines_believed),
		cmocka_unit_test(test_the_instruction_of_loops_that_wait_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
