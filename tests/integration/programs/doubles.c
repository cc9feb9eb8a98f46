// SPDX-License-Identifier: Apache-2.0
/* A USDT probe with floating-point arguments: a double in a register, a double in memory, a float.
 */
#include <stdio.h>

#if defined(__x86_64__)
#define OPERANDS "8f@%[first] -4@%k[turn] 8f@%[second] 4f@%k[third]"
#else
#define OPERANDS "8f@%[first] -4@%w[turn] 8f@%[second] 4f@%w[third]"
#endif

/* The code that <sys/sdt.h> makes for a probe with these arguments. */
#define PROBE(name, a, b, c, d)                                                                    \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt, \"\", \"note\"\n"                            \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b, 0, 0\n"                                                \
			 ".asciz \"doubles\"\n"                                                    \
			 ".asciz \"" name "\"\n"                                                   \
			 ".asciz \"" OPERANDS "\"\n"                                               \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n" ::[first] "r"(a),                                         \
			 [turn] "r"(b), [second] "m"(c), [third] "r"(d))

int main(void)
{
	double second = -1e-300;

	for (int turn = 0; turn < 5; turn++) {
		double first = turn * 1.25 - 2;

		second *= 1e100;
		PROBE("measured", first, turn, second, (float)turn);
		printf("measured first=%.17g turn=%d second=%.17g\n", first, turn, second);
	}
	return 0;
}
