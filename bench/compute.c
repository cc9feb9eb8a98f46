// SPDX-License-Identifier: Apache-2.0
/*
 * Computes, a fifth of the time in the kernel, below some functions that call one another. An
 * operation is one call of the outermost (window.h).
 *
 *	compute CPU SECONDS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "window.h"

#define DEPTH 12

static int zero;

__attribute__((noinline)) static unsigned compute(unsigned depth)
{
	static char bytes[16384];
	volatile unsigned sum = 0;

	if (depth)
		return compute(depth - 1) + 1;
	for (unsigned i = 0; i < 8000; i++)
		sum = sum + i;
	if (read(zero, bytes, sizeof(bytes)) < 0)
		exit(1);
	return sum;
}

int main(int argc, char **argv)
{
	struct window window;

	if (argc != 3) {
		fprintf(stderr, "usage: compute CPU SECONDS\n");
		return 2;
	}
	window_pin(atoi(argv[1]));
	zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	window = window_begin(atof(argv[2]));
	do
		compute(DEPTH);
	while (window_count(&window, 1));
	return 0;
}
