// SPDX-License-Identifier: Apache-2.0
/* Functions that begin with instructions at which the kernel sets no probe, and one that does not.
 */
#include <stdio.h>

int odd_lock(int *count), odd_halt(int *count), odd_plain(int *count);

__asm__(".text\n"
	".globl odd_lock\n.type odd_lock, @function\n"
	"odd_lock:\n\tlock incl (%rdi)\n\tmov (%rdi), %eax\n\tret\n.size odd_lock, .-odd_lock\n"
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
		fflush(stdout);
	}
	return 0;
}
