// SPDX-License-Identifier: Apache-2.0
/* A child that is forked inside a span leaves the span's block long before its parent does. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <waffle_macros.h>

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static pid_t start_workers(void)
{
	struct timespec time = {.tv_nsec = 100000000};
	int64_t begin = now_ns();
	pid_t pid;

	SPAN("start workers");
	pid = fork();
	if (!pid)
		return 0;
	waitpid(pid, NULL, 0);
	nanosleep(&time, NULL);
	printf("parent tid=%d begin=%" PRId64 " end=%" PRId64 "\n", getpid(), begin, now_ns());
	return pid;
}

int main(void)
{
	start_workers();
	return 0;
}
