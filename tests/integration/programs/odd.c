// SPDX-License-Identifier: Apache-2.0
/* Functions that begin with instructions at which the kernel sets no probe, and one that does not.
 */
#include <stdio.h>

int odd_lock(int *count), odd_halt(int *count), odd_plain(int *count);

__asm__(".text\n"
	".globl odd_lock\n.type odd_lock, @function\n"
	"odd_lock:\n\tlock incl (%rdi)\n\tmov (%rdi), %eax\n\tret\n.size odd_lock, .-odd_lock\n"
	/* Of AVX; their opcodes are those of a push and of a jump. */
	".globl odd_push\n.type odd_push, @function\n"
	"odd_push:\n\tvxorps %xmm0, %xmm0, %xmm0\n\tmov (%rdi), %eax\n\tret\n"
	".size odd_push, .-odd_push\n"
	".globl odd_jump\n.type odd_jump, @function\n"
	"odd_jump:\n\tvpor %xmm0, %xmm0, %xmm0\n\tmov (%rdi), %eax\n\tret\n"
	".size odd_jump, .-odd_jump\n"
	/* It is never called. */
	".globl odd_halt\n.type odd_halt, @function\n"
	"odd_halt:\n\thlt\n\tret\n.size odd_halt, .-odd_halt\n");

__attribute__((noipa)) int odd_plain(int *count)
{
	return ++*count;
}

int main(void)
{
	char line[16];
	int count = 0;

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%d\n", odd_lock(&count) + odd_plain(&count));
		if (__builtin_cpu_supports("avx"))
			printf("%d\n", odd_push(&count) + odd_jump(&count));
		fflush(stdout);
	}
	return 0;
}
