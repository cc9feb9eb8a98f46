// SPDX-License-Identifier: Apache-2.0
/* Waits at the end of a chain of calls that keeps no frame pointers, in itself and in a child. */
#define _GNU_SOURCE
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "waffle.h"

static __attribute__((noinline)) int inner(volatile int *sum)
{
	volatile char room[40];

	room[0] = 1;
	poll(NULL, 0, 3);
	*sum += room[0];
	return room[0];
}

static __attribute__((noinline)) int outer(volatile int *sum)
{
	volatile char room[24];
	WAFFLE_SPAN("outer");

	room[0] = 1;
	return inner(sum) + room[0];
}

int main(void)
{
	volatile int sum = 0;
	pid_t child;

	puts("ready");
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	for (int i = 0; i < 20; i++)
		outer(&sum);
	child = fork();
	if (!child) {
		for (int i = 0; i < 5; i++)
			outer(&sum);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	return 0;
}
