// SPDX-License-Identifier: Apache-2.0
/* A function in the form of Go's compiler for x86-64: the argument is in rax, and r14 points to a
 * struct with the limit of the stack. At that limit the function switches to another stack and
 * starts again. */
#include <stdio.h>

__attribute__((section(".go.buildinfo"), used)) static const char mark[16] = "go";

struct g {
	unsigned long unused[2], limit;
};

__asm__(".text\n"
	".globl \"main.work\"\n.type \"main.work\", @function\n\"main.work\":\n"
	"	lea -0x198(%rsp), %r12\n"
	"	cmp 0x10(%r14), %r12\n"
	"	jbe 1f\n"
	"	push %rbp\n"
	"	lea 1(%rax, %rbx), %rax\n"
	"	pop %rbp\n"
	"	ret\n"
	"1:	movq $0, 0x10(%r14)\n"
	"	jmp \"main.work\"\n"
	".size \"main.work\", .-\"main.work\"\n");

static long work(struct g *g, long first, long second)
{
	/* Behind the red zone. */
	__asm__ volatile("sub $128, %%rsp; mov %2, %%r14; call \"main.work\"; add $128, %%rsp"
			 : "+a"(first), "+b"(second)
			 : "r"(g)
			 : "r12", "r14", "memory", "cc");
	return first;
}

int main(void)
{
	for (long n = 0; n < 5; n++) {
		struct g g = {.limit = n % 2 ? -1ul : 0};

		printf("work n=%ld ret=%ld\n", n, work(&g, n, 10 * n));
	}
	return 0;
}
