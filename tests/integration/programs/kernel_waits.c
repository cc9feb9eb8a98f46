/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_waits MODE: a span "request" that waits for something that only the kernel's stack names.
 *
 *	fsync FILE	a file is written and synced, five times
 *	mmap		pages are touched while another thread changes the protection of all of them
 *	vfork		a child is started that sleeps and computes before it ends
 *	move FROM TO	on CPU TO a thread computes, to which the span's goes from CPU FROM, ten
 * times
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "log.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "waffle_macros.h"

#define MS 1000000ll
#define PAGE 4096ul
#define REGION (256ul << 20)

static char *region;
static pthread_barrier_t ready;
static volatile int done;

static long long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Without the C library's state, which a child of vfork() shares. */
static void compute(int ms)
{
	long long end = cpu_ns() + ms * MS;

	while (cpu_ns() < end)
		;
}

static int sync_file(const char *path)
{
	static char block[1 << 20];

	for (int i = 0; i < 5; i++) {
		int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
		SPAN("request");

		memset(block, 'a' + i, sizeof(block));
		if (fd < 0 || write(fd, block, sizeof(block)) != sizeof(block) || fsync(fd))
			return 1;
		close(fd);
	}
	return 0;
}

static void *protect(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "protector");
	pthread_barrier_wait(&ready);
	for (int i = 0; i < 30; i++) {
		SPAN("protect");
		mprotect(region, REGION, PROT_READ);
		mprotect(region, REGION, PROT_READ | PROT_WRITE);
	}
	done = 1;
	return NULL;
}

/* Every second page is mapped already; reading the others maps them. */
static int touch_pages(void)
{
	pthread_t thread;
	volatile char sum = 0;

	region = mmap(NULL, REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region == MAP_FAILED || madvise(region, REGION, MADV_NOHUGEPAGE))
		return 1;
	for (size_t at = 0; at < REGION; at += 2 * PAGE)
		region[at] = 1;
	pthread_barrier_init(&ready, NULL, 2);
	if (pthread_create(&thread, NULL, protect, NULL))
		return 1;
	pthread_barrier_wait(&ready);
	{
		SPAN("request");
		for (size_t at = PAGE; at < REGION && !done; at += 2 * PAGE)
			sum = (char)(sum + region[at]);
	}
	pthread_join(thread, NULL);
	return 0;
}

static int start_child(void)
{
	SPAN("request");
	pid_t child = vfork();

	if (child == 0) {
		sleep_ms(40);
		compute(20);
		_exit(0);
	}
	return child < 0 || waitpid(child, NULL, 0) != child;
}

static bool pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}

static void *compute_on(void *arg)
{
	prctl(PR_SET_NAME, "hog");
	pin(*(int *)arg);
	pthread_barrier_wait(&ready);
	while (!done)
		;
	return NULL;
}

static int move(int from, int to)
{
	pthread_t thread;
	bool moved = true;

	pthread_barrier_init(&ready, NULL, 2);
	if (pthread_create(&thread, NULL, compute_on, &to))
		return 1;
	pthread_barrier_wait(&ready);
	for (int i = 0; i < 10; i++) {
		moved &= pin(from);
		sleep_ms(10);
		{
			SPAN("request");
			moved &= pin(to);
		}
		{
			SPAN("crowded");
			compute(20);
		}
	}
	done = 1;
	pthread_join(thread, NULL);
	return !moved;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "fsync") && argc > 2)
		return sync_file(argv[2]);
	if (!strcmp(mode, "mmap"))
		return touch_pages();
	if (!strcmp(mode, "vfork"))
		return start_child();
	if (!strcmp(mode, "move") && argc > 3)
		return move(atoi(argv[2]), atoi(argv[3]));
	return 2;
}
