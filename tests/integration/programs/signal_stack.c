// SPDX-License-Identifier: Apache-2.0
/* Calls that a signal interrupts, whose handler has a stack of its own: above that of the thread,
 * or below it. Every second handler is left by siglongjmp(). */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define STACK_SIZE 131072
#define CALLS 21 /* the last one returns */
#define EXPORTED __attribute__((noinline, noclone, visibility("default")))

static sigjmp_buf before;

EXPORTED int signal_inner(int n)
{
	__asm__ volatile("");
	return 3 * n;
}

EXPORTED int signal_handled(int n)
{
	if (signal_inner(n) % 2)
		siglongjmp(before, 1);
	return n;
}

static void handle(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	signal_handled(info->si_value.sival_int);
}

EXPORTED int signal_interrupted(int n)
{
	volatile int sum = signal_inner(n);

	pthread_sigqueue(pthread_self(), SIGUSR1, (union sigval){.sival_int = n});
	sum += signal_inner(n);
	return sum;
}

static void *work(void *stack)
{
	stack_t own = {.ss_sp = stack, .ss_size = STACK_SIZE};

	if (sigaltstack(&own, NULL))
		abort();
	for (volatile int i = 0; i < CALLS; i++)
		if (!sigsetjmp(before, 1))
			printf("returned %d\n", signal_interrupted(i));
	return NULL;
}

int main(void)
{
	struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_ONSTACK | SA_SIGINFO};
	char *stacks = mmap(NULL, 3 * STACK_SIZE, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 2; i++) {
		pthread_attr_t attr;
		pthread_t thread;

		pthread_attr_init(&attr);
		pthread_attr_setstack(&attr, stacks + STACK_SIZE, STACK_SIZE);
		if (pthread_create(&thread, &attr, work, stacks + 2 * i * STACK_SIZE))
			return 1;
		pthread_join(thread, NULL);
	}
	return 0;
}
