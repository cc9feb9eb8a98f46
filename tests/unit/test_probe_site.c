// SPDX-License-Identifier: Apache-2.0
/* The place of a function's probe, by its first instructions. bench/run.py --only placement
 * measures what the kernel does with the instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>

#include "probe/find/probe_site.h"

static const struct probe_site_kernel linux_6_18 = {.version = 6018, .optimised_nop = 5};
static const struct probe_site_kernel linux_6_1 = {.version = 6001};

/* A function as the assembler reads it and as it writes it. */
struct function {
	const char *text;
	const char *code;
	size_t bytes;
	uint16_t shift;
	uint8_t cost;
};
#define CODE(code) code, sizeof(code) - 1

// clang-format off
static const struct function x86_functions[] = {
	{"push %rbp; mov %rsp,%rbp; ret", CODE("\x55\x48\x89\xe5\xc3"), 0, OBJECT_COST_EMULATED},
	{"push %r15; push %r14; ret", CODE("\x41\x57\x41\x56\xc3"), 0, OBJECT_COST_EMULATED},
	{"nop; push %rbp; ret", CODE("\x90\x55\xc3"), 0, OBJECT_COST_EMULATED},
	{".byte 0x0f,0x1f,0x44,0,0; push %rbp; ret", CODE("\x0f\x1f\x44\x00\x00\x55\xc3"), 5, OBJECT_COST_EMULATED},
	{".byte 0x0f,0x1f,0x44,0,0; mov %edi,%eax; ret", CODE("\x0f\x1f\x44\x00\x00\x89\xf8\xc3"), 5, OBJECT_COST_STEPPED},
	{".byte 0x0f,0x1f,0x44,0,0; mov %edi,%eax; push %rbx; ret", CODE("\x0f\x1f\x44\x00\x00\x89\xf8\x53\xc3"), 7, OBJECT_COST_EMULATED},
	{".byte 0x0f,0x1f,0x44,0,0; lock incl (%rdi); ret", CODE("\x0f\x1f\x44\x00\x00\xf0\xff\x07\xc3"), 0, OBJECT_COST_REFUSED},
	{".byte 0x0f,0x1f,0x44,0,0; 1: dec %rdi; jne 1b; ret", CODE("\x0f\x1f\x44\x00\x00\x48\xff\xcf\x75\xfb\xc3"), 0, OBJECT_COST_REFUSED},
	{".byte 0x0f,0x1f,0x44,0,0", CODE("\x0f\x1f\x44\x00\x00"), 0, OBJECT_COST_REFUSED},
	{"data16 data16 data16 data16 nop; ret", CODE("\x66\x66\x66\x66\x90\xc3"), 5, OBJECT_COST_STEPPED},
	{".byte 0x66,0x0f,0x1f,0x44,0,0; ret", CODE("\x66\x0f\x1f\x44\x00\x00\xc3"), 0, OBJECT_COST_EMULATED},
	{"jmp .+5; ret", CODE("\xe9\x00\x00\x00\x00\xc3"), 0, OBJECT_COST_REFUSED},
	{"lea 0(%rsi,%riz),%rsi; ret", CODE("\x48\x8d\x74\x26\x00\xc3"), 0, OBJECT_COST_REFUSED},
	{"lea 8(%rsp),%rsi; ret", CODE("\x48\x8d\x74\x24\x08\xc3"), 0, OBJECT_COST_STEPPED},
	{"mov %rsi,8(%rsp); ret", CODE("\x48\x89\x74\x24\x08\xc3"), 0, OBJECT_COST_STEPPED},
	{"jmp .+0x1000; ret", CODE("\xe9\xfb\x0f\x00\x00\xc3"), 0, OBJECT_COST_EMULATED},
	{"jmp .+9; ret", CODE("\xeb\x07\xc3"), 0, OBJECT_COST_EMULATED},
	{"call .+0x1000; ret", CODE("\xe8\xfb\x0f\x00\x00\xc3"), 0, OBJECT_COST_EMULATED},
	{"endbr64; push %rbp; ret", CODE("\xf3\x0f\x1e\xfa\x55\xc3"), 4, OBJECT_COST_EMULATED},
	{"endbr64; push %r12; ret", CODE("\xf3\x0f\x1e\xfa\x41\x54\xc3"), 4, OBJECT_COST_EMULATED},
	{"endbr64; .byte 0x0f,0x1f,0x44,0,0; push %rbp; ret", CODE("\xf3\x0f\x1e\xfa\x0f\x1f\x44\x00\x00\x55\xc3"), 9, OBJECT_COST_EMULATED},
	{"endbr64; .byte 0x0f,0x1f,0x44,0,0; mov %edi,%eax; ret", CODE("\xf3\x0f\x1e\xfa\x0f\x1f\x44\x00\x00\x89\xf8\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; jmp .+5; ret", CODE("\xf3\x0f\x1e\xfa\xe9\x00\x00\x00\x00\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; mov %rdi,%rax; lea 8(%rsp),%r10; xor %r11d,%r11d; test %rsi,%rsi; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x48\x89\xf8\x4c\x8d\x54\x24\x08\x45\x31\xdb\x48\x85\xf6\x53\xc3"), 18, OBJECT_COST_EMULATED},
	{"endbr64; mov 0x10(%rdi),%rax; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x48\x8b\x47\x10\x53\xc3"), 8, OBJECT_COST_EMULATED},
	{"mov %rbx,-8(%rsp); push %rbp; ret", CODE("\x48\x89\x5c\x24\xf8\x55\xc3"), 0, OBJECT_COST_STEPPED},
	{"mov %rbx,(%rsi); push %rbp; ret", CODE("\x48\x89\x1e\x55\xc3"), 0, OBJECT_COST_STEPPED},
	{"mov %rbx,8(%rsp); push %rbp; ret", CODE("\x48\x89\x5c\x24\x08\x55\xc3"), 0, OBJECT_COST_STEPPED},
	{"movups %xmm8,-8(%rsp); push %rbp; ret", CODE("\x44\x0f\x11\x44\x24\xf8\x55\xc3"), 0, OBJECT_COST_STEPPED},
	{"mov %rbx,-8(%rsp,%rax,1); push %rbp; ret", CODE("\x48\x89\x5c\x04\xf8\x55\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; mov %rsi,%rdi; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x48\x89\xf7\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; mov %eax,%esi; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x89\xc6\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; mov $1,%r9b; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x41\xb1\x01\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; mov $1,%dh; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\xb6\x01\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; mul %rbx; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x48\xf7\xe3\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; rep stosb; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\xf3\xaa\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; pxor %xmm0,%xmm0; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x66\x0f\xef\xc0\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; pxor %xmm9,%xmm9; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x66\x45\x0f\xef\xc9\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; sub $8,%rsp; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x48\x83\xec\x08\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; pop %rax; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x58\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"sub $24,%rsp; call .+0x1000; ret", CODE("\x48\x83\xec\x18\xe8\xfb\x0f\x00\x00\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; ret; push %rbx", CODE("\xf3\x0f\x1e\xfa\xc3\x53"), 0, OBJECT_COST_STEPPED},
	{"endbr64; mov %ecx,%eax; syscall; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x89\xc8\x0f\x05\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; jmp *%rax", CODE("\xf3\x0f\x1e\xfa\xff\xe0"), 0, OBJECT_COST_STEPPED},
	{"endbr64; test %rdi,%rdi; je 1f; mov %rdi,%rax; 1: ret", CODE("\xf3\x0f\x1e\xfa\x48\x85\xff\x74\x03\x48\x89\xf8\xc3"), 7, OBJECT_COST_EMULATED},
	{"endbr64; test %rdi,%rdi; je .+0x1000; ret", CODE("\xf3\x0f\x1e\xfa\x48\x85\xff\x0f\x84\xfa\x0f\x00\x00\xc3"), 7, OBJECT_COST_EMULATED},
	{"endbr64; 1: test %rdi,%rdi; je 2f; mov (%rdi),%rdi; jmp 1b; 2: ret", CODE("\xf3\x0f\x1e\xfa\x48\x85\xff\x74\x05\x48\x8b\x3f\xeb\xf6\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; test %rdi,%rdi; je 2f; 1: mov (%rdi),%rdi; test %rdi,%rdi; jne 1b; 2: ret", CODE("\xf3\x0f\x1e\xfa\x48\x85\xff\x74\x08\x48\x8b\x3f\x48\x85\xff\x75\xf8\xc3"), 7, OBJECT_COST_EMULATED},
	{"endbr64; test %rdi,%rdi; je 2f; jmp *%rax; 2: ret", CODE("\xf3\x0f\x1e\xfa\x48\x85\xff\x74\x02\xff\xe0\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; 1: nop; dec %rdi; jne 1b; ret", CODE("\xf3\x0f\x1e\xfa\x90\x48\xff\xcf\x75\xfa\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; jmp .+0x1000", CODE("\xf3\x0f\x1e\xfa\xe9\xfb\x0f\x00\x00"), 4, OBJECT_COST_EMULATED},
	{"endbr64; .byte 0x06; push %rbx", CODE("\xf3\x0f\x1e\xfa\x06\x53"), 0, OBJECT_COST_STEPPED},
	{"endbr64; test %rdi,%rdi; je 2f; .byte 0x06; 2: ret", CODE("\xf3\x0f\x1e\xfa\x48\x85\xff\x74\x01\x06\xc3"), 0, OBJECT_COST_STEPPED},
	{"data16 call 1f; 1: ret", CODE("\x66\xe8\x00\x00\xc3"), 0, OBJECT_COST_STEPPED},
	{"rex.W push %rbp; ret", CODE("\x48\x55\xc3"), 0, OBJECT_COST_STEPPED},
	{"lock incl (%rdi); ret", CODE("\xf0\xff\x07\xc3"), 0, OBJECT_COST_REFUSED},
	{"pushf; pop %rax; ret", CODE("\x9c\x58\xc3"), 0, OBJECT_COST_REFUSED},
	{"vxorps %xmm0,%xmm0,%xmm0; ret", CODE("\xc5\xf8\x57\xc0\xc3"), 0, OBJECT_COST_STEPPED},
	{"syscall; ret", CODE("\x0f\x05\xc3"), 0, OBJECT_COST_REFUSED},
	{"int $0x80; ret", CODE("\xcd\x80\xc3"), 0, OBJECT_COST_REFUSED},
	{"rep stosq; ret", CODE("\xf3\x48\xab\xc3"), 0, OBJECT_COST_REFUSED},
	{"rep movsb; ret", CODE("\xf3\xa4\xc3"), 0, OBJECT_COST_REFUSED},
	{"stosq; ret", CODE("\x48\xab\xc3"), 0, OBJECT_COST_STEPPED},
	{"repz ret", CODE("\xf3\xc3"), 0, OBJECT_COST_STEPPED},
	{"incl (%rdi); dec %rsi; jne f; ret", CODE("\xff\x07\x48\xff\xce\x75\xf9\xc3"), 0,
	 OBJECT_COST_REFUSED},
	{"xor %eax,%eax; 1: push %rbx; pop %rbx; dec %rdi; jne 1b; ret",
	 CODE("\x31\xc0\x53\x5b\x48\xff\xcf\x75\xf9\xc3"), 0, OBJECT_COST_STEPPED},
	{"vpcmpeqd %xmm0,%xmm0,%xmm0; ret", CODE("\xc5\xf9\x76\xc0\xc3"), 0, OBJECT_COST_REFUSED},
	{"vpor %xmm8,%xmm0,%xmm0; ret", CODE("\xc4\xc1\x79\xeb\xc0\xc3"), 0, OBJECT_COST_REFUSED},
	{"vpbroadcastb %esi,%ymm17; ret", CODE("\x62\xe2\x7d\x28\x7a\xce\xc3"), 0, OBJECT_COST_REFUSED},
	{"vzeroupper; ret", CODE("\xc5\xf8\x77\xc3"), 0, OBJECT_COST_REFUSED},
	{"vmovd %esi,%xmm0; ret", CODE("\xc5\xf9\x6e\xc6\xc3"), 0, OBJECT_COST_STEPPED},
	{"endbr64; vpxorq %xmm16,%xmm16,%xmm16; push %rbx; ret", CODE("\xf3\x0f\x1e\xfa\x62\xa1\xfd\x00\xef\xc0\x53\xc3"), 0, OBJECT_COST_STEPPED},
	{".byte 0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0; push %rbp; ret", CODE("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\x55\xc3"), 10, OBJECT_COST_EMULATED},
};

static const struct function arm64_functions[] = {
	{"stp x29,x30,[sp,#-16]!; mov x29,sp; ret", CODE("\xfd\x7b\xbf\xa9\xfd\x03\x00\x91\xc0\x03\x5f\xd6"), 0, OBJECT_COST_STEPPED},
	{"bti c; stp x29,x30,[sp,#-16]!; ret", CODE("\x5f\x24\x03\xd5\xfd\x7b\xbf\xa9\xc0\x03\x5f\xd6"), 0, OBJECT_COST_STEPPED},
	{"bti c; nop; ret", CODE("\x5f\x24\x03\xd5\x1f\x20\x03\xd5\xc0\x03\x5f\xd6"), 4, OBJECT_COST_EMULATED},
	{"nop; ret", CODE("\x1f\x20\x03\xd5\xc0\x03\x5f\xd6"), 0, OBJECT_COST_EMULATED},
	{"b .+0x1000", CODE("\x00\x04\x00\x14"), 0, OBJECT_COST_EMULATED},
	{"bti c; b .+0x1000", CODE("\x5f\x24\x03\xd5\x00\x04\x00\x14"), 4, OBJECT_COST_EMULATED},
	{"bti c; adrp x16, .; ret", CODE("\x5f\x24\x03\xd5\x10\x00\x00\x90\xc0\x03\x5f\xd6"), 4, OBJECT_COST_EMULATED},
	{"paciasp; nop; ret", CODE("\x3f\x23\x03\xd5\x1f\x20\x03\xd5\xc0\x03\x5f\xd6"), 0, OBJECT_COST_STEPPED},
	{"cbz x0, .+8; ret", CODE("\x40\x00\x00\xb4\xc0\x03\x5f\xd6"), 0, OBJECT_COST_EMULATED},
	{"bti c; 1: nop; cbnz x0, 1b; ret", CODE("\x5f\x24\x03\xd5\x1f\x20\x03\xd5\xe0\xff\xff\xb5\xc0\x03\x5f\xd6"), 0, OBJECT_COST_STEPPED},
	{"bti c; 1: nop; tbz x0,#3,1b; ret", CODE("\x5f\x24\x03\xd5\x1f\x20\x03\xd5\xe0\xff\x1f\x36\xc0\x03\x5f\xd6"), 0, OBJECT_COST_STEPPED},
	{"bti c; 1: nop; b.ne 1b; ret", CODE("\x5f\x24\x03\xd5\x1f\x20\x03\xd5\xe1\xff\xff\x54\xc0\x03\x5f\xd6"), 0, OBJECT_COST_STEPPED},
	{"bti c; 1: nop; b 1b", CODE("\x5f\x24\x03\xd5\x1f\x20\x03\xd5\xff\xff\xff\x17"), 0, OBJECT_COST_STEPPED},
	{"bti c; nop; br x3", CODE("\x5f\x24\x03\xd5\x1f\x20\x03\xd5\x60\x00\x1f\xd6"), 0, OBJECT_COST_STEPPED},
	{"subs x0,x0,#1; b.ne f; ret", CODE("\x00\x04\x00\xf1\xe1\xff\xff\x54\xc0\x03\x5f\xd6"), 0, OBJECT_COST_REFUSED},
	{"bti c; cbnz x0, f; ret", CODE("\x5f\x24\x03\xd5\xe0\xff\xff\xb5\xc0\x03\x5f\xd6"), 0, OBJECT_COST_REFUSED},
	{"nop; tbz x0,#3,f; ret", CODE("\x1f\x20\x03\xd5\xe0\xff\x1f\x36\xc0\x03\x5f\xd6"), 0, OBJECT_COST_REFUSED},
	{"nop; b f", CODE("\x1f\x20\x03\xd5\xff\xff\xff\x17"), 0, OBJECT_COST_REFUSED},
	{"nop; bl f; ret", CODE("\x1f\x20\x03\xd5\xff\xff\xff\x97\xc0\x03\x5f\xd6"), 0, OBJECT_COST_EMULATED},
	{"nop; 1: subs x0,x0,#1; b.ne 1b; ret", CODE("\x1f\x20\x03\xd5\x00\x04\x00\xf1\xe1\xff\xff\x54\xc0\x03\x5f\xd6"), 0, OBJECT_COST_EMULATED},
	{"ldr x3, .+8; ret", CODE("\x43\x00\x00\x58\xc0\x03\x5f\xd6"), 0, OBJECT_COST_EMULATED},
	{"ldr x3, [x0]; ret", CODE("\x03\x00\x40\xf9\xc0\x03\x5f\xd6"), 0, OBJECT_COST_STEPPED},
};
// clang-format on

static struct probe_site place_of(const struct probe_site_kernel *kernel, uint16_t machine,
				  const struct function *function)
{
	return probe_site_function(kernel, machine, (const uint8_t *)function->code,
				   function->bytes, true, 0x1000);
}

static void check(uint16_t machine, const struct function *functions, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct probe_site place = place_of(&linux_6_18, machine, &functions[i]);

		if (place.shift != functions[i].shift || place.cost != functions[i].cost)
			fail_msg("%s: +%u, cost %u; expected +%u, %u", functions[i].text,
				 place.shift, place.cost, functions[i].shift, functions[i].cost);
	}
}

static void test_x86_probes_move_only_past_what_changes_nothing(void **state)
{
	(void)state;
	check(EM_X86_64, x86_functions, sizeof(x86_functions) / sizeof(*x86_functions));
}

static void test_aarch64_probes_move_past_landing_pads_only(void **state)
{
	(void)state;
	check(EM_AARCH64, arm64_functions, sizeof(arm64_functions) / sizeof(*arm64_functions));
}

static void test_function_cut_at_any_byte_is_placed_within_its_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(x86_functions) / sizeof(*x86_functions); i++) {
		struct function cut = x86_functions[i];

		for (cut.bytes = 0; cut.bytes < x86_functions[i].bytes; cut.bytes++) {
			struct probe_site place = place_of(&linux_6_18, EM_X86_64, &cut);

			assert_true(place.shift == 0 || place.shift < cut.bytes);
			place = place_of(&linux_6_18, EM_AARCH64, &cut);
			assert_true(place.shift == 0 || place.shift < cut.bytes);
		}
	}
}

static void test_part_of_a_function_is_left_only_for_a_push(void **state)
{
	static const uint8_t push[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55};
	static const uint8_t nop[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x90};

	(void)state;
	assert_int_equal(
		probe_site_function(&linux_6_18, EM_X86_64, push, sizeof(push), false, 0).shift, 4);
	assert_int_equal(
		probe_site_function(&linux_6_18, EM_X86_64, nop, sizeof(nop), true, 0).shift, 4);
	assert_int_equal(
		probe_site_function(&linux_6_18, EM_X86_64, nop, sizeof(nop), false, 0).shift, 0);
}

static void test_older_kernels_step_what_they_do_not_emulate(void **state)
{
	static const struct function nop5 = {"", CODE("\x0f\x1f\x44\x00\x00\xc3"), 0, 0};
	static const struct function nop1 = {"", CODE("\x90\xc3"), 0, 0};
	static const struct function arm64_nop = {"", CODE("\x1f\x20\x03\xd5"), 0, 0};

	(void)state;
	assert_int_equal(place_of(&linux_6_1, EM_X86_64, &nop5).cost, OBJECT_COST_STEPPED);
	assert_int_equal(place_of(&linux_6_1, EM_X86_64, &nop1).cost, OBJECT_COST_EMULATED);
	assert_int_equal(place_of(&linux_6_1, EM_AARCH64, &arm64_nop).cost, OBJECT_COST_STEPPED);
}

/* Nops that the kernel would replace by a call, which not every program survives. */
static void test_nop_is_refused_where_the_kernel_replaces_it(void **state)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0, 0, 0xc3};

	(void)state;
	assert_int_equal(probe_site_cost(&linux_6_18, EM_X86_64, nop5, sizeof(nop5), 0x1ffb),
			 OBJECT_COST_REFUSED);
	assert_int_equal(probe_site_cost(&linux_6_18, EM_X86_64, nop5, sizeof(nop5), 0x1ffc),
			 OBJECT_COST_EMULATED);
}

static void test_later_kernels_optimise_the_longer_nop(void **state)
{
	static const struct probe_site_kernel later = {.version = 7002, .optimised_nop = 10};
	static const uint8_t nop10[] = {0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0};

	(void)state;
	assert_int_equal(probe_site_cost(&later, EM_X86_64, nop10, sizeof(nop10), 0x1000),
			 OBJECT_COST_OPTIMISED);
	/* A kernel that does not optimise it refuses or loses the probe because of its prefix. */
	assert_int_equal(probe_site_cost(&linux_6_18, EM_X86_64, nop10, sizeof(nop10), 0x1000),
			 OBJECT_COST_REFUSED);
}

static void test_functions_of_go_are_probed_behind_the_look_at_their_stack(void **state)
{
	static const struct function functions[] = {
		{"cmp 0x10(%r14),%rsp; jbe .+5; push %rbp; ret",
		 CODE("\x49\x3b\x66\x10\x76\x03\x55\x5d\xc3"), 6, OBJECT_COST_EMULATED},
		{"lea -8(%rsp),%r12; cmp 0x10(%r14),%r12; jbe .+0x90; sub $8,%rsp; ret",
		 CODE("\x4c\x8d\x64\x24\xf8\x4d\x3b\x66\x10\x0f\x86\x8a\x00\x00\x00"
		      "\x48\x83\xec\x08\xc3"),
		 15, OBJECT_COST_STEPPED},
		{"mov $1,%eax; push %rbp; ret", CODE("\xb8\x01\x00\x00\x00\x55\xc3"), 0,
		 OBJECT_COST_STEPPED},
		{"cmp 0x10(%r14),%rsp; je .+5; push %rbp", CODE("\x49\x3b\x66\x10\x74\x03\x55"), 0,
		 OBJECT_COST_STEPPED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		const struct function *function = &functions[i];
		struct probe_site place =
			probe_site_go(&linux_6_18, EM_X86_64, (const uint8_t *)function->code,
				      function->bytes, 0x1000);

		if (place.shift != function->shift || place.cost != function->cost)
			fail_msg("%s: +%u, cost %u", function->text, place.shift, place.cost);
		for (size_t bytes = 0; bytes < function->bytes; bytes++)
			assert_true(probe_site_go(&linux_6_18, EM_X86_64,
						  (const uint8_t *)function->code, bytes, 0x1000)
					    .shift <= bytes);
	}
}

static void test_other_machines_are_probed_at_the_entry(void **state)
{
	struct probe_site place = place_of(&linux_6_18, EM_RISCV, &x86_functions[7]);

	(void)state;
	assert_int_equal(place.shift, 0);
	assert_int_equal(place.cost, OBJECT_COST_UNKNOWN);
}

static void test_running_kernel_is_known(void **state)
{
	struct probe_site_kernel kernel = probe_site_kernel_running();

	(void)state;
	assert_true(kernel.version >= 5000);
	assert_true(kernel.optimised_nop == 0 || kernel.optimised_nop == 5 ||
		    kernel.optimised_nop == 10);
}

static void test_any_bytes_are_placed_within_themselves(void **state)
{
	uint64_t random = 88172645463325252ull;

	(void)state;
	for (unsigned i = 0; i < 2000; i++) {
		uint8_t code[96];

		for (unsigned k = 0; k < sizeof(code); k++) {
			random ^= random << 13; /* Marsaglia, Xorshift RNGs */
			random ^= random >> 7;
			random ^= random << 17;
			code[k] = (uint8_t)random;
		}
		for (unsigned machine = 0; machine < 2; machine++) {
			struct probe_site place =
				probe_site_function(&linux_6_18, machine ? EM_AARCH64 : EM_X86_64,
						    code, i % 97, true, 0);

			assert_true(place.shift == 0 || place.shift < i % 97);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_x86_probes_move_only_past_what_changes_nothing),
		cmocka_unit_test(test_aarch64_probes_move_past_landing_pads_only),
		cmocka_unit_test(test_function_cut_at_any_byte_is_placed_within_its_bytes),
		cmocka_unit_test(test_part_of_a_function_is_left_only_for_a_push),
		cmocka_unit_test(test_older_kernels_step_what_they_do_not_emulate),
		cmocka_unit_test(test_nop_is_refused_where_the_kernel_replaces_it),
		cmocka_unit_test(test_later_kernels_optimise_the_longer_nop),
		cmocka_unit_test(test_functions_of_go_are_probed_behind_the_look_at_their_stack),
		cmocka_unit_test(test_other_machines_are_probed_at_the_entry),
		cmocka_unit_test(test_running_kernel_is_known),
		cmocka_unit_test(test_any_bytes_are_placed_within_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
