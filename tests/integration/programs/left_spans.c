// SPDX-License-Identifier: Apache-2.0
/* Leaves more spans by longjmp() than the kernel can hold, and later ends a hundred. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <waffle_macros.h>

static jmp_buf out;

__attribute__((noinline)) static void leave(void)
{
	SPAN("left");
	longjmp(out, 1);
}

static void rest(long ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

__attribute__((noinline)) static void work(int number)
{
	SPAN("work", KV_I64("number", number));
	rest(1);
}

int main(int argc, char **argv)
{
	volatile int count = argc > 1 ? atoi(argv[1]) : 0;

	while (count > 0)
		if (!setjmp(out)) {
			count--;
			leave();
		}
	rest(7500);
	for (int i = 0; i < 100; i++)
		work(i);
	return 0;
}
