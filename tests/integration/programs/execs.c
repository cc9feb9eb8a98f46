// SPDX-License-Identifier: Apache-2.0
/* Calls a function, and then executes itself again from within another call. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALLED __attribute__((noinline, noclone))

static volatile int64_t sink;

CALLED int64_t work(int64_t number)
{
	sink = number;
	return sink + 1;
}

CALLED int again(char *program, long left)
{
	char text[32];

	snprintf(text, sizeof(text), "%ld", left - 1);
	execl(program, program, text, (char *)NULL);
	return (int)sink;
}

int main(int argc, char **argv)
{
	long left = argc > 1 ? atol(argv[1]) : 0;

	for (int i = 0; i < 3; i++)
		if (work(3 * left + i) == 12345)
			return 2;
	return left ? again(argv[0], left) + 1 : 0;
}
