// SPDX-License-Identifier: Apache-2.0
/*
 * The only thread that waits is on a small stack of its own, as coroutines and goroutines are. The
 * memory below that stack has other data of the program, which have to stay as they are.
 *
 *	inject_fiber main|thread
 *
 * says which thread it is. The end of standard input ends the program; it returns 1 if the data
 * have changed.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define AREA_BYTES (1u << 20)
#define STACK_BYTES (8u << 10)
#define DATA_BYTES (AREA_BYTES - STACK_BYTES)
#define FILLED 0x5a

static char *area;
static ucontext_t own, fiber;

static void wait_for_end(void)
{
	char byte;

	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	for (size_t i = 0; i < DATA_BYTES; i++)
		if (area[i] != FILLED)
			_exit(1);
	(void)!write(STDOUT_FILENO, "end\n", 4);
	_exit(0);
}

static void *enter_fiber(void *unused)
{
	getcontext(&fiber);
	fiber.uc_stack.ss_sp = area + DATA_BYTES;
	fiber.uc_stack.ss_size = STACK_BYTES;
	makecontext(&fiber, wait_for_end, 0);
	swapcontext(&own, &fiber);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	area = mmap(NULL, AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return 2;
	memset(area, FILLED, DATA_BYTES);
	(void)!write(STDOUT_FILENO, "ready\n", 6);
	if (argc > 1 && !strcmp(argv[1], "main"))
		enter_fiber(NULL);
	pthread_create(&thread, NULL, enter_fiber, NULL);
	for (;;) /* it never waits */
		;
}
