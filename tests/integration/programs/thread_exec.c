// SPDX-License-Identifier: Apache-2.0
/*
 * A thread that is not the main one works for a while and becomes another program, as those of Go
 * do: this one, which sleeps. It says what the kernel has counted of its CPU time, and its tids.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char *program;

static uint64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void work(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void *worker(void *arg)
{
	char tid[32];

	(void)arg;
	work(30000000);
	snprintf(tid, sizeof(tid), "%ld", syscall(SYS_gettid));
	execl(program, program, tid, (char *)NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	struct timespec time = {.tv_nsec = 400000000};
	uint64_t running = 0, runnable = 0;
	pthread_t thread;
	FILE *stat;

	if (argc < 2) {
		program = argv[0];
		if (!pthread_create(&thread, NULL, worker, NULL))
			pthread_join(thread, NULL);
		return 1;
	}
	work(20000000);
	nanosleep(&time, NULL);
	stat = fopen("/proc/self/schedstat", "r");
	if (!stat || fscanf(stat, "%" SCNu64 " %" SCNu64, &running, &runnable) != 2)
		return 1;
	printf("exec pid=%d worker=%s running=%" PRIu64 "\n", getpid(), argv[1], running);
	return 0;
}
