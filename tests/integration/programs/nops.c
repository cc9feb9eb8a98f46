// SPDX-License-Identifier: Apache-2.0
/*
 * Nops of five bytes, which Linux 6.18 replaces by a call of its own when a probe there is hit: at
 * a function's entry, and as USDT probes in the body of a leaf function, which has its data below
 * the stack pointer. All of them are called, many times, then by a child of fork(), too. Prints the
 * sums, which are right if nothing was overwritten, and how the child ended.
 */
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "waffle.h"

enum { CALLS = 300 };

#define NOP5 ".byte 0x0f, 0x1f, 0x44, 0, 0\n"
#define NOP10 ".byte 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0\n"

/* A note of <sys/sdt.h>, with an argument in rdi. */
#define NOTE(name, semaphore)                                                                      \
	".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n"                                    \
	".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"                \
	"993: .8byte 990b, nops_base, " semaphore "\n"                                             \
	".asciz \"nops\"\n.asciz \"" name "\"\n.asciz \"8@%rdi\"\n994: .balign 4\n.popsection\n"

#define FUNCTION(name, code)                                                                       \
	".globl " name "\n.type " name ", @function\n" name ":\n" code ".size " name ", .-" name   \
	"\n"

#define LEAF(note)                                                                                 \
	"mov %rdi, -8(%rsp)\nmov %rdi, -24(%rsp)\n990: " note                                      \
	"mov -8(%rsp), %rax\nadd -24(%rsp), %rax\nret\n"

__asm__(".pushsection .stapsdt.base, \"a\"\nnops_base: .space 1\n.popsection\n"
	".pushsection .probes, \"aw\"\n.balign 2\nnops_semaphore: .2byte 0\n.popsection\n"
	".text\n"
	/* clang-format off */
	FUNCTION("nops_head", NOP5 "lea (%rdi,%rdi), %rax\nret\n")
	FUNCTION("nops_leaf", LEAF(NOP5 NOTE("leaf", "0")))
	FUNCTION("nops_asked", LEAF(NOP5 NOTE("asked", "nops_semaphore")))
	FUNCTION("nops_long_head", NOP10 "lea (%rdi,%rdi), %rax\nret\n")
	FUNCTION("nops_long_leaf", LEAF(NOP10 NOTE("long_leaf", "0")))
	FUNCTION("nops_short", LEAF("nop\n" NOTE("short", "0")))
	/* clang-format on */
);

long nops_head(long n), nops_leaf(long n), nops_asked(long n), nops_short(long n);
long nops_long_head(long n), nops_long_leaf(long n);

static long sum(void)
{
	static long (*const functions[])(long) = {nops_head,      nops_leaf,      nops_asked,
						  nops_long_head, nops_long_leaf, nops_short};
	long total = 0;

	for (unsigned i = 0; i < sizeof(functions) / sizeof(*functions); i++)
		for (long n = 0; n < CALLS; n++)
			total += functions[i](n) - 2 * n;
	WAFFLE_EVENT("nops sum", KV_I64("total", total));
	return total;
}

int main(void)
{
	int status = -1;
	pid_t child;

	printf("parent %ld\n", sum());
	fflush(stdout);
	child = fork();
	if (!child) {
		printf("child %ld\n", sum());
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, &status, 0);
	printf("status %d, parent %ld\n", status, sum());
	return 0;
}
