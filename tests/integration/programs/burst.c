// SPDX-License-Identifier: Apache-2.0
/* Two threads call a function 10,000 times each when a line arrives on standard input. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>

#define CALLS 10000

__attribute__((noinline)) void tick(uint64_t thread, uint64_t number)
{
	__asm__ volatile("" : : "r"(thread), "r"(number));
}

static void *run(void *thread)
{
	for (uint64_t number = 0; number < CALLS; number++)
		tick((uintptr_t)thread, number);
	return NULL;
}

int main(void)
{
	pthread_t other;

	puts("ready");
	fflush(stdout);
	if (getchar() == EOF || pthread_create(&other, NULL, run, (void *)1))
		return 1;
	run(NULL);
	pthread_join(other, NULL);
	puts("done");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}
