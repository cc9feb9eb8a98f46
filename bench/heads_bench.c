// SPDX-License-Identifier: Apache-2.0
/*
 * Functions that differ in their first instruction, to see what a probe on it costs. An operation
 * is a call of one of them (window.h).
 *
 *	heads_bench list		prints of each: name, offset in the file, shift and cost
 *					as probe/find/probe_site.h has them
 *	heads_bench NAME CPU SECONDS	calls it
 */
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe/find/probe_site.h"
#include "window.h"

#define HEADS                                                                                      \
	HEAD(push_rbp, "push %rbp; pop %rbp")                                                      \
	HEAD(push_r15, "push %r15; pop %r15")                                                      \
	HEAD(nop, "nop")                                                                           \
	HEAD(nop2, ".byte 0x66, 0x90")                                                             \
	HEAD(nop4, ".byte 0x0f, 0x1f, 0x40, 0")                                                    \
	HEAD(nop5, ".byte 0x0f, 0x1f, 0x44, 0, 0")                                                 \
	HEAD(nop6, ".byte 0x66, 0x0f, 0x1f, 0x44, 0, 0")                                           \
	HEAD(jmp_short, "jmp 1f; 1:")                                                              \
	HEAD(nop5_push, ".byte 0x0f, 0x1f, 0x44, 0, 0; push %rbp; pop %rbp")                       \
	HEAD(jmp_near, ".byte 0xe9, 1, 0, 0, 0; nop")                                              \
	HEAD(je_short, "je 1f; 1:")                                                                \
	HEAD(je_near, ".byte 0x0f, 0x84, 0, 0, 0, 0")                                              \
	HEAD(call, "call 1f; 1: pop %rax")                                                         \
	HEAD(endbr64, "endbr64")                                                                   \
	HEAD(endbr64_push, "endbr64; push %rbp; pop %rbp")                                         \
	HEAD(endbr64_nop5, "endbr64; .byte 0x0f, 0x1f, 0x44, 0, 0; push %rbp; pop %rbp")           \
	HEAD(test_je, "test %rdi, %rdi; je 1f; 1:")                                                \
	HEAD(sub, "sub $8, %rsp; add $8, %rsp")                                                    \
	HEAD(mov, "mov %rdi, %rax")                                                                \
	HEAD(xor, "xor %eax, %eax")                                                                \
	HEAD(lea, "lea 8(%rdi), %rax")                                                             \
	HEAD(pushf, "pushf; pop %rax")

#define HEAD(name, text)                                                                           \
	void head_##name(long argument);                                                           \
	extern const unsigned char end_##name[];                                                   \
	__asm__(".pushsection .text; .balign 64; .globl head_" #name "; .type head_" #name         \
		", @function; head_" #name ": " text "; ret; end_" #name ": .popsection");
HEADS
#undef HEAD

static const struct head {
	const char *name;
	void (*call)(long argument);
	const unsigned char *end;
} heads[] = {
#define HEAD(name, text) {#name, head_##name, end_##name},
	HEADS
#undef HEAD
};

/* The offset of an address of this program in its file. */
static int file_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	uintptr_t *address = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && *address >= start &&
		    *address - start < segment->p_filesz) {
			*address = *address - start + segment->p_offset;
			return 1;
		}
	}
	return 0;
}

static void list(void)
{
	static const char *const costs[] = {
		[OBJECT_COST_UNKNOWN] = "unknown",   [OBJECT_COST_OPTIMISED] = "optimised",
		[OBJECT_COST_EMULATED] = "emulated", [OBJECT_COST_STEPPED] = "stepped",
		[OBJECT_COST_REFUSED] = "refused",
	};
	struct probe_site_kernel kernel = probe_site_kernel_running();

	for (size_t i = 0; i < sizeof(heads) / sizeof(*heads); i++) {
		const unsigned char *code = (const unsigned char *)heads[i].call;
		size_t bytes = (size_t)(heads[i].end - code);
		uintptr_t offset = (uintptr_t)code;
		enum object_probe_cost cost =
			probe_site_cost(&kernel, EM_X86_64, code, bytes, (uintptr_t)code);
		struct probe_site place =
			probe_site_function(&kernel, EM_X86_64, code, bytes, true, (uintptr_t)code);

		dl_iterate_phdr(file_offset, &offset);
		printf("%s %lu %s %u %s\n", heads[i].name, (unsigned long)offset, costs[cost],
		       place.shift, costs[place.cost]);
	}
}

static __attribute__((noinline)) void loop(void (*call)(long argument), long turns)
{
	for (long i = 0; i < turns; i++)
		call(i + 1);
}

int main(int argc, char **argv)
{
	const struct head *head = NULL;
	struct window window;

	if (argc == 2 && !strcmp(argv[1], "list")) {
		list();
		return 0;
	}
	for (size_t i = 0; argc == 4 && i < sizeof(heads) / sizeof(*heads); i++)
		if (!strcmp(argv[1], heads[i].name))
			head = &heads[i];
	if (!head) {
		fprintf(stderr, "usage: heads_bench list | NAME CPU SECONDS\n");
		return 2;
	}
	window_pin(atoi(argv[2]));
	window = window_begin_cpu(atof(argv[3]));
	do
		loop(head->call, 100);
	while (window_count(&window, 100));
	return 0;
}
