// SPDX-License-Identifier: Apache-2.0
/* Functions that call each other, each with a pair of USDT probes. Some are left by a jump. */
#include <setjmp.h>
#include <stdio.h>

#if defined(__x86_64__)
#define OPERAND "-4@%k[value]"
#else
#define OPERAND "-4@%w[value]"
#endif

/* The code that <sys/sdt.h> makes for a probe with one argument. */
#define PROBE(name, number)                                                                        \
	__asm__ volatile("990: nop\n"                                                              \
			 ".pushsection .note.stapsdt, \"\", \"note\"\n"                            \
			 ".balign 4\n"                                                             \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                        \
			 "991: .asciz \"stapsdt\"\n"                                               \
			 "992: .balign 4\n"                                                        \
			 "993: .8byte 990b, 0, 0\n"                                                \
			 ".asciz \"left\"\n"                                                       \
			 ".asciz \"" name "\"\n"                                                   \
			 ".asciz \"" OPERAND "\"\n"                                                \
			 "994: .balign 4\n"                                                        \
			 ".popsection\n" ::[value] "r"(number))

static jmp_buf out;

void step(int depth, int leave);
void steps(int depth, int leave);
void catcher(void);

__attribute__((noinline)) void step(int depth, int leave)
{
	PROBE("step__start", depth);
	if (depth == leave)
		longjmp(out, 1);
	if (depth)
		step(depth - 1, leave);
	PROBE("step__done", depth);
}

/* Leaves all that `depth` steps are in when they are at `leave`. */
__attribute__((noinline)) void steps(int depth, int leave)
{
	if (!setjmp(out))
		step(depth, leave);
}

/* Goes on where deeper ones were left. */
__attribute__((noinline)) void catcher(void)
{
	PROBE("step__start", 100);
	steps(3, 1);
	PROBE("step__done", 100);
}

int main(void)
{
	steps(2, -1);
	steps(3, 1);
	steps(2, -1);
	catcher();
	puts("done");
	return 0;
}
