// SPDX-License-Identifier: Apache-2.0
/* Calls two functions and then executes itself again, as often as its argument says. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) void few(int64_t left)
{
	__asm__ volatile("" : : "r"(left));
}

/* Its arguments have more words than the fast path takes, so it gets the other kind of probe. */
__attribute__((noinline)) void many(int64_t left, long b, long c, long d, long e, long f, long g,
				    long h, long i, long j)
{
	__asm__ volatile(""
			 :
			 : "r"(left), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f), "m"(g), "m"(h),
			   "m"(i), "m"(j));
}

int main(int argc, char **argv)
{
	long left = argc > 1 ? atol(argv[1]) : 0;
	char text[32];

	few(left);
	many(left, 1, 2, 3, 4, 5, 6, 7, 8, 9);
	snprintf(text, sizeof(text), "%ld", left - 1);
	if (left)
		execl(argv[0], argv[0], text, (char *)NULL);
	return left != 0;
}
