// SPDX-License-Identifier: Apache-2.0
/*
 * Runs one kind of work in a span until it has taken argv[2] ms of CPU time:
 *	user	its own code
 *	kernel	read() of zeroes
 *	spin	pthread_spin_lock(), whose holder lets go then
 *	flag	a loop that waits for a variable, which the thread of `spin` sets then
 *	both	its own code, and then half as much read()
 *	exec	starts itself again, as "user"
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "waffle.h"

static pthread_spinlock_t lock;
static atomic_int taken, released;
static clockid_t victim;

static long long cpu_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

__attribute__((noinline)) static void gemm_kernel(long ms)
{
	long long end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;
	volatile unsigned sum = 0;

	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (unsigned i = 0; i < 200000; i++)
			sum = sum + i;
}

static void read_zeroes(long ms)
{
	long long end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000;
	static char bytes[1 << 20];
	int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		if (read(zero, bytes, sizeof(bytes)) < 0)
			exit(1);
	close(zero);
}

static void *hold(void *arg)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	long long end;

	pthread_spin_lock(&lock);
	end = cpu_ns(victim) + *(long *)arg * 1000000;
	taken = 1;
	while (cpu_ns(victim) < end)
		nanosleep(&pause, NULL);
	pthread_spin_unlock(&lock);
	released = 1;
	return NULL;
}

/* The instruction with which such loops wait. */
static void cpu_pause(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#else
	__asm__ volatile("isb");
#endif
}

__attribute__((noinline)) static void wait_for_flag(void)
{
	while (!atomic_load_explicit(&released, memory_order_acquire))
		cpu_pause();
}

static void spin(long ms, bool flag)
{
	const struct timespec pause = {.tv_nsec = 1000000};
	pthread_t holder;

	pthread_spin_init(&lock, 0);
	pthread_getcpuclockid(pthread_self(), &victim);
	if (pthread_create(&holder, NULL, hold, &ms))
		exit(1);
	while (!taken)
		nanosleep(&pause, NULL);
	{
		WAFFLE_SPAN("work");
		if (flag) {
			wait_for_flag();
		} else {
			pthread_spin_lock(&lock);
			pthread_spin_unlock(&lock);
		}
	}
	pthread_join(holder, NULL);
}

int main(int argc, char **argv)
{
	long ms = argc > 2 ? strtol(argv[2], NULL, 10) : 500;
	const char *kind = argc > 1 ? argv[1] : "user";

	if (!strcmp(kind, "exec"))
		return execl("/proc/self/exe", argv[0], "user", argv[2], (char *)NULL);
	if (!strcmp(kind, "spin") || !strcmp(kind, "flag")) {
		spin(ms, !strcmp(kind, "flag"));
		return 0;
	}
	WAFFLE_SPAN("work");
	if (!strcmp(kind, "user") || !strcmp(kind, "both"))
		gemm_kernel(ms);
	if (!strcmp(kind, "kernel") || !strcmp(kind, "both"))
		read_zeroes(strcmp(kind, "both") ? ms : ms / 2);
	return 0;
}
