// SPDX-License-Identifier: Apache-2.0
/* Spans with a wait in them, each below one more call of a function: 40 to 79. */
#include <poll.h>
#include <stdio.h>

#include "waffle.h"

static __attribute__((noinline)) int leaf(int depth)
{
	WAFFLE_SPAN("leaf", KV_I64("depth", depth));

	/* The deepest is the slowest by far. */
	return poll(NULL, 0, depth < 79 ? 4 : 200) + depth;
}

__attribute__((noinline)) int down(int left, int depth);
static int (*volatile next)(int left, int depth) = down; /* so that no compiler unrolls it */

__attribute__((noinline)) int down(int left, int depth)
{
	volatile int result = left > 1 ? next(left - 1, depth) : leaf(depth);

	return result + 1;
}

int main(void)
{
	int sum = 0;

	puts("ready");
	fflush(stdout);
	if (getchar() == EOF) /* until the tracer is there */
		return 1;
	for (int depth = 40; depth < 80; depth++)
		sum += down(depth, depth);
	return sum < 0;
}
