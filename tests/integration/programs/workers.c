// SPDX-License-Identifier: Apache-2.0
/* A parent that has drawn ids forks workers, as servers do; each has spans and events. */
#include <sys/wait.h>
#include <unistd.h>

#include "waffle.h"

#define WORKERS 4

static void work(long n)
{
	for (long i = 0; i < 50; i++) {
		WAFFLE_SPAN("work", KV_I64("worker", n), KV_I64("i", i));
		WAFFLE_EVENT("step", KV_I64("worker", n));
	}
}

int main(void)
{
	int status, failed = 0;

	work(-1);
	for (long n = 0; n < WORKERS; n++) {
		pid_t child = fork();

		if (child < 0)
			return 1;
		if (!child) {
			work(n);
			_exit(0);
		}
	}
	for (long n = 0; n < WORKERS; n++)
		failed |= wait(&status) < 0 || status;
	return failed;
}
