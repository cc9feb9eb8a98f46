// SPDX-License-Identifier: Apache-2.0
/* Functions that begin with instructions that the kernel refuses to probe or mistakes for others,
 * and one function that it can probe. */
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int odd_lock(int *count), odd_halt(int *count), odd_plain(int *count);
int odd_syscall(int *count), odd_loop(int *count, int rounds);
int odd_repeated(char *to, char *begin, int unused, int count);
int odd_flags(int *count), odd_equal(int *count), odd_or(int *count),
	zero_first(int *count, int (*then)(int *count));

#define FUNCTION(name, code)                                                                       \
	".globl " name "\n.type " name ", @function\n" name ":\n" code "\n.size " name ", .-" name \
	"\n"

__asm__(".text\n" FUNCTION("odd_lock", "lock incl (%rdi); mov (%rdi), %eax; ret")
	/* Single-stepped, it would push the trap flag as well. */
	FUNCTION("odd_flags", "pushf; pop %rax; and $0x100, %eax; ret")
	/* It is never called. */
	FUNCTION("odd_halt", "hlt; ret")
	/* Single-stepped, it would return to another place. */
	FUNCTION("odd_syscall", "syscall; ret")
	/* A probe would be hit in each round of the loop. */
	FUNCTION("odd_repeated", "rep stosb; mov %edi, %eax; sub %esi, %eax; ret")
		FUNCTION("odd_loop", "incl (%rdi); dec %esi; jne odd_loop; mov (%rdi), %eax; ret")
	/* AVX instructions that the kernel takes for jumps and skips. The result is then 0 instead
	 * of -1. */
	FUNCTION("odd_equal", "vpcmpeqd %xmm1, %xmm1, %xmm1; vmovd %xmm1, %eax; ret")
		FUNCTION("odd_or", "vpor %xmm2, %xmm1, %xmm1; vmovd %xmm1, %eax; ret") FUNCTION(
			"zero_first",
			"vpxor %xmm1, %xmm1, %xmm1; vpcmpeqd %xmm2, %xmm2, %xmm2; jmp *%rsi"));

__attribute__((noipa)) int odd_plain(int *count)
{
	return ++*count;
}

static int call_of_number(long number, int (*call)(int *))
{
	long result;

	__asm__ volatile("call *%2"
			 : "=a"(result)
			 : "0"(number), "r"(call)
			 : "rcx", "r11", "rdx", "rsi", "rdi", "r8", "r9", "r10", "memory");
	return (int)result;
}

int main(void)
{
	char line[16];
	int count = 0;

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		printf("%d\n", odd_lock(&count) + odd_plain(&count) + odd_flags(&count));
		printf("%d\n", odd_loop(&count, 5));
		printf("%d\n", odd_repeated(line, line, 0, sizeof(line)));
		printf("%d\n", call_of_number(SYS_getppid, odd_syscall) == getppid());
		if (__builtin_cpu_supports("avx"))
			printf("%d %d\n", zero_first(&count, odd_equal),
			       zero_first(&count, odd_or));
		fflush(stdout);
	}
	return 0;
}
