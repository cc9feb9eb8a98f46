// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/stack.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "usdt/ring/signals.h"
#include "usdt/ring/ticks.h"

#define STACK_BYTES (256u << 10)
#define GUARD_BYTES (64u << 10) /* the largest page */

/*
 * Calls work(arg) with the stack pointer at `top`. The frame pointer keeps the thread's own stack
 * pointer, from which debuggers and the unwinder find the callers.
 */
void stack_switch(void (*work)(void *arg), void *arg, void *top)
	__attribute__((visibility("hidden")));

// clang-format off
__asm__(".pushsection .text.stack_switch,\"ax\",%progbits\n"
	"\t.balign 16\n"
	"\t.globl stack_switch\n"
	"\t.hidden stack_switch\n"
	"\t.type stack_switch, %function\n"
	"stack_switch:\n"
	"\t.cfi_startproc\n"
#ifdef __x86_64__
	"\tpushq %rbp\n"
	"\t.cfi_def_cfa_offset 16\n"
	"\t.cfi_offset %rbp, -16\n"
	"\tmovq %rsp, %rbp\n"
	"\t.cfi_def_cfa_register %rbp\n"
	"\tmovq %rdx, %rsp\n"
	"\tmovq %rdi, %rax\n"
	"\tmovq %rsi, %rdi\n"
	"\tcall *%rax\n"
	"\tmovq %rbp, %rsp\n"
	"\tpopq %rbp\n"
	"\t.cfi_def_cfa %rsp, 8\n"
#else
	"\tstp x29, x30, [sp, #-16]!\n"
	"\t.cfi_def_cfa_offset 16\n"
	"\t.cfi_offset x29, -16\n"
	"\t.cfi_offset x30, -8\n"
	"\tmov x29, sp\n"
	"\t.cfi_def_cfa_register x29\n"
	"\tmov sp, x2\n"
	"\tmov x9, x0\n"
	"\tmov x0, x1\n"
	"\tblr x9\n"
	"\tmov sp, x29\n"
	"\t.cfi_def_cfa_register sp\n"
	"\tldp x29, x30, [sp], #16\n"
	"\t.cfi_def_cfa_offset 0\n"
	"\t.cfi_restore x29\n"
	"\t.cfi_restore x30\n"
#endif
	"\tret\n"
	"\t.cfi_endproc\n"
	"\t.size stack_switch, .-stack_switch\n"
	".popsection\n");
// clang-format on

/* NULL: out of memory. What is below the stack can't be touched. */
static unsigned char *stack_map(void)
{
	void *memory = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	if (!mprotect(memory, GUARD_BYTES, PROT_NONE))
		return memory;
	munmap(memory, GUARD_BYTES + STACK_BYTES);
	return NULL;
}

void stack_run(void (*work)(void *arg), void *arg)
{
	unsigned char *stack = stack_map();
	bool forbidden = ticks_was_forbidden();
	uint64_t before = signals_block();
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	if (forbidden)
		prctl(PR_SET_TSC, PR_TSC_ENABLE);
	if (stack)
		stack_switch(work, arg, stack + GUARD_BYTES + STACK_BYTES);
	else
		work(arg);
	if (forbidden)
		prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
	pthread_setcancelstate(state, NULL);
	signals_restore(before);
	if (stack)
		munmap(stack, GUARD_BYTES + STACK_BYTES);
}
