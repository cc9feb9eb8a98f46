// SPDX-License-Identifier: Apache-2.0
/*
 * family WAY N [PROGRAM]: N events, then a child made by fork, vfork, posix_spawn or exec, that
 * gets the context as a traceparent and makes N events of its own.
 */
#include "log.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

#include "waffle.h"

extern char **environ;

static void work(const char *who, int n)
{
	printf("worked who=%s pid=%d tid=%d n=%d ts=%lld\n", who, getpid(), thread_id(), n,
	       now_ns());
	fflush(stdout);
	for (int i = 0; i < n; i++) {
		WAFFLE_SPAN("work", KV_STR("who", who), KV_I64("i", i));
		WAFFLE_EVENT("tick", KV_STR("who", who), KV_I64("i", i));
	}
}

static void *thread_main(void *arg)
{
	work("thread", *(int *)arg);
	return NULL;
}

static void child(const char *traceparent, int n)
{
	waffle_context_t context;
	bool valid = waffle_context_from_traceparent(traceparent, &context);

	WAFFLE_INJECT(context);
	WAFFLE_SPAN("child", KV_BOOL("valid", valid));
	work("child", n);
}

static int ended(pid_t pid)
{
	int status = -1;

	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

/* A separate function, since gcc warns about the locals of one that calls vfork(). */
static pid_t vfork_exec(const char *program, char **argv)
{
	pid_t pid = vfork();

	if (!pid) {
		execv(program, argv);
		_exit(127);
	}
	return pid;
}

int main(int argc, char **argv)
{
	char traceparent[WAFFLE_TRACEPARENT_SIZE], *way = argc > 1 ? argv[1] : "none";
	char *program = argc > 3 ? argv[3] : argv[0];
	char *child_argv[] = {program, "child", argc > 2 ? argv[2] : "1", traceparent, NULL};
	int n = argc > 2 ? atoi(argv[2]) : 1, code = 0;
	pid_t pid = 0;

	if (!strcmp(way, "child")) {
		child(argc > 3 ? argv[3] : "", n);
		return 0;
	}
	if (!strcmp(way, "wait")) { /* attach first, then act: the way comes as a line */
		static char line[64];

		printf("ready\n");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 0;
		line[strcspn(line, "\n")] = '\0';
		way = line;
	}
	work("parent", n);
	fflush(stdout);
	WAFFLE_SPAN("family", KV_STR("way", way));
	waffle_context_to_traceparent(waffle_context_extract(), traceparent);
	printf("traceparent text=%s\n", traceparent);
	fflush(stdout);
	if (!strcmp(way, "fork")) {
		pid = fork();
		if (!pid) {
			child(traceparent, n);
			fflush(stdout);
			_exit(0);
		}
	} else if (!strcmp(way, "fork_exec")) {
		pid = fork();
		if (!pid) {
			execv(program, child_argv);
			_exit(127);
		}
	} else if (!strcmp(way, "vfork")) {
		pid = vfork_exec(program, child_argv);
	} else if (!strcmp(way, "spawn")) {
		code = posix_spawn(&pid, program, NULL, NULL, child_argv, environ);
	} else if (!strcmp(way, "exec")) {
		execv(program, child_argv);
		return 127;
	} else if (!strcmp(way, "thread")) {
		pthread_t thread;

		pthread_create(&thread, NULL, thread_main, &n);
		pthread_join(thread, NULL);
	}
	if (pid)
		code = ended(pid);
	work("after", n);
	return code;
}
