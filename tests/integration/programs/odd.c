// SPDX-License-Identifier: Apache-2.0
/* Functions that begin with instructions at which the kernel sets no probe, or which it takes for
 * others, and one that does not. */
#include <stdio.h>

int odd_lock(int *count), odd_halt(int *count), odd_plain(int *count);
int odd_flags(int *count), odd_equal(int *count), odd_or(int *count),
	zero_first(int *count, int (*then)(int *count));

#define FUNCTION(name, code)                                                                       \
	".globl " name "\n.type " name ", @function\n" name ":\n" code "\n.size " name ", .-" name \
	"\n"

__asm__(".text\n" FUNCTION("odd_lock", "lock incl (%rdi); mov (%rdi), %eax; ret")
	/* In single-step it would push the trap flag. */
	FUNCTION("odd_flags", "pushf; pop %rax; and $0x100, %eax; ret")
	/* It is never called. */
	FUNCTION("odd_halt", "hlt; ret")
	/* Of AVX: taken for jumps they are passed over, and not -1 but 0 comes out. */
	FUNCTION("odd_equal", "vpcmpeqd %xmm1, %xmm1, %xmm1; vmovd %xmm1, %eax; ret")
		FUNCTION("odd_or", "vpor %xmm2, %xmm1, %xmm1; vmovd %xmm1, %eax; ret") FUNCTION(
			"zero_first",
			"vpxor %xmm1, %xmm1, %xmm1; vpcmpeqd %xmm2, %xmm2, %xmm2; jmp *%rsi"));

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
		printf("%d\n", odd_lock(&count) + odd_plain(&count) + odd_flags(&count));
		if (__builtin_cpu_supports("avx"))
			printf("%d %d\n", zero_first(&count, odd_equal),
			       zero_first(&count, odd_or));
		fflush(stdout);
	}
	return 0;
}
