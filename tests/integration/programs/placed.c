// SPDX-License-Identifier: Apache-2.0
/*
 * Functions of x86-64 that begin with instructions which the kernel single-steps; each returns the
 * sum of its arguments. Their names say which of them are probed.
 */
#define FUNCTION(name, text)                                                                       \
	__asm__(".pushsection .text; .balign 16; .globl " #name "; .type " #name                   \
		", @function; " #name ": " text "; .size " #name ", .-" #name "; .popsection");

FUNCTION(placed_push, "endbr64; push %rbx; lea (%rdi,%rsi), %rax; pop %rbx; ret")
FUNCTION(placed_nop5, "endbr64; .byte 0x0f, 0x1f, 0x44, 0, 0; lea (%rdi,%rsi), %rax; ret")
FUNCTION(placed_je, "endbr64; test %rdi, %rdi; je 1f; lea (%rdi,%rsi), %rax; ret;"
		    "1: mov %rsi, %rax; ret")
/* The seventh argument is on the stack. */
FUNCTION(placed_stack, "endbr64; mov %rdi, %rax; push %rbx; add %rsi, %rax; add %rdx, %rax;"
		       "add %rcx, %rax; add %r8, %rax; add %r9, %rax; add 16(%rsp), %rax;"
		       "pop %rbx; ret")
/* Probed at its entry: a loop passes every other instruction that is emulated. */
FUNCTION(placed_loop, "endbr64; 1: test %rdi, %rdi; je 2f; dec %rdi; inc %rsi; jmp 1b;"
		      "2: mov %rsi, %rax; ret")
/* Probed at its entry: an argument is changed before the push. */
FUNCTION(placed_changed, "endbr64; add %rsi, %rdi; push %rbx; mov %rdi, %rax; pop %rbx; ret")
/* It calls itself, so the tracer must match each return with its call. */
FUNCTION(placed_deep, "endbr64; push %rbx; mov %rdi, %rbx; test %rdi, %rdi; je 1f; dec %rdi;"
		      "call placed_deep; add $1, %rax; pop %rbx; ret;"
		      "1: mov %rsi, %rax; pop %rbx; ret")
