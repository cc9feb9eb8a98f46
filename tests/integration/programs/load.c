// SPDX-License-Identifier: Apache-2.0
/*
 * load MS: two busy threads a CPU and two that sleep a lot, each in one span of MS milliseconds
 * that it measures itself by its /proc/self/task/TID/schedstat.
 */
#include "log.h"

#include <pthread.h>

#include "waffle.h"

static long duration_ms;

static void schedstat(long long *running, long long *waiting)
{
	char name[64];
	FILE *file;

	snprintf(name, sizeof(name), "/proc/self/task/%d/schedstat", thread_id());
	file = fopen(name, "r");
	if (!file || fscanf(file, "%lld %lld", running, waiting) != 2)
		exit(1);
	fclose(file);
}

static void *work(void *arg)
{
	const char *kind = arg;
	long long end, running[2], waiting[2];

	/* A switch updates the kernel's own numbers, which are read right after it. */
	sleep_ms(1);
	schedstat(&running[0], &waiting[0]);
	{
		WAFFLE_SPAN("load", KV_STR("kind", kind));
		end = now_ns() + duration_ms * 1000000ll;
		while (now_ns() < end)
			if (*kind == 's') {
				spin_ms(1);
				sleep_ms(2);
			}
		sleep_ms(1);
	}
	schedstat(&running[1], &waiting[1]);
	printf("load tid=%d role=%s running=%lld runnable=%lld\n", thread_id(), kind,
	       running[1] - running[0], waiting[1] - waiting[0]);
	return NULL;
}

int main(int argc, char **argv)
{
	int busy = 2 * (int)sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t threads[64];
	int count = 0;

	duration_ms = argc > 1 ? atol(argv[1]) : 1000;
	for (int i = 0; i < busy + 2 && count < 64; i++)
		pthread_create(&threads[count++], NULL, work, i < busy ? "busy" : "sleepy");
	while (count--)
		pthread_join(threads[count], NULL);
	return 0;
}
