// SPDX-License-Identifier: Apache-2.0
/* For ThreadSanitizer: threads that pass sites at the same time, and children that do. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "waffle.h"

#define THREADS 4
#define TURNS 200

static void *work(void *arg)
{
	for (long n = 0; n < TURNS; n++) {
		WAFFLE_SPAN("span", KV_I64("n", n), KV_STR("text", "raced"));
		WAFFLE_EVENT("event", KV_I64("n", n));
	}
	return arg;
}

int main(void)
{
	pthread_t threads[THREADS];
	int status;
	pid_t child;

	for (int t = 0; t < THREADS; t++)
		if (pthread_create(&threads[t], NULL, work, NULL))
			return 1;
	for (int t = 0; t < THREADS; t++)
		pthread_join(threads[t], NULL);
	child = fork();
	if (!child) {
		work(NULL);
		_exit(0);
	}
	return child < 0 || waitpid(child, &status, 0) != child || status;
}
