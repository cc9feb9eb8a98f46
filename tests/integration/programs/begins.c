// SPDX-License-Identifier: Apache-2.0
/*
 * begins began TS: an event, and how long ago TS was, which is when its exec was called.
 * begins main PROGRAM, begins thread PROGRAM: it becomes "PROGRAM began TS", from that thread.
 * begins many N PROGRAM: N such children, one after the other.
 */
#include "log.h"

#include <pthread.h>
#include <sys/wait.h>

#include "waffle.h"

static void become(char *program)
{
	char ts[32];
	char *arguments[] = {program, "began", ts, NULL};

	snprintf(ts, sizeof(ts), "%lld", now_ns());
	execv(program, arguments);
	_exit(127);
}

static void *thread_main(void *program)
{
	become(program);
	return NULL;
}

/* A separate function, since gcc warns about the locals of one that calls vfork(). */
static pid_t child_of(char *program)
{
	pid_t pid = vfork();

	if (!pid)
		become(program);
	return pid;
}

static int many(int count, char *program)
{
	int failed = 0;

	for (int i = 0; i < count; i++) {
		int status = 0;

		waitpid(child_of(program), &status, 0);
		failed += status != 0;
	}
	return failed != 0;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "began")) {
		WAFFLE_EVENT("began");
		printf("began pid=%d after_ns=%lld\n", getpid(), now_ns() - atoll(argv[2]));
		return 0;
	}
	if (!strcmp(argv[1], "main"))
		become(argv[2]);
	if (!strcmp(argv[1], "thread")) {
		pthread_create(&thread, NULL, thread_main, argv[2]);
		pthread_join(thread, NULL);
	}
	return argc < 4 ? 2 : many(atoi(argv[2]), argv[3]);
}
