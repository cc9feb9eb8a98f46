// SPDX-License-Identifier: Apache-2.0
/*
 * A program that records itself with libwaffle: "inside MODE [ARGUMENT…]". What it prints and
 * counts is compared with what was recorded. All modes but the last ones begin with COUNT steps.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <waffle.h>
#include <waffle_trace.h>

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

/* Says in its own records when each begins and ends. */
static void steps(long from, long count)
{
	for (long i = from; i < from + count; i++) {
		WAFFLE_SPAN("step", KV_I64("i", i), KV_I64("before", now_ns()));
		WAFFLE_EVENT("tick", KV_I64("i", i), KV_STR("text", i % 2 ? "odd" : "even"),
			     KV_I64("after", now_ns()));
	}
}

static void *thread_main(void *arg)
{
	long number = (long)arg;
	char name[16];

	snprintf(name, sizeof(name), "worker-%ld", number);
	pthread_setname_np(pthread_self(), name);
	steps(number * 1000000, 1000);
	return NULL;
}

static void threads(long count)
{
	pthread_t all[64];

	for (long i = 0; i < count; i++)
		pthread_create(&all[i], NULL, thread_main, (void *)(i + 1));
	for (long i = 0; i < count; i++)
		pthread_join(all[i], NULL);
}

static void *brief_main(void *arg)
{
	WAFFLE_EVENT("brief", KV_I64("i", (long)arg));
	return NULL;
}

/* Many threads, one after the other. */
static void brief(long count)
{
	for (long i = 0; i < count; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, brief_main, (void *)i);
		pthread_join(thread, NULL);
	}
}

static volatile long handled;

static void on_timer(int signo)
{
	(void)signo;
	WAFFLE_EVENT("handled", KV_I64("i", handled));
	handled++;
}

static sigjmp_buf back;

static void on_jump(int signo)
{
	(void)signo;
	WAFFLE_EVENT("jumped", KV_I64("i", handled));
	handled++;
	siglongjmp(back, 1);
}

/* A handler that writes records while the program does, and perhaps never returns to it. */
static void interrupted(long count, void (*handler)(int))
{
	struct itimerspec often = {{0, 100000}, {0, 100000}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	volatile long done = 0;
	timer_t timer;

	signal(SIGUSR1, handler);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	timer_settime(timer, 0, &often, NULL);
	sigsetjmp(back, 1);
	while (done < count) {
		done++;
		WAFFLE_EVENT("between", KV_I64("i", done));
	}
	timer_delete(timer);
	signal(SIGUSR1, SIG_IGN);
	printf("handled %ld\n", handled);
}

static void on_crash(int signo)
{
	static const char text[] = "my handler\n";

	(void)signo;
	if (write(1, text, sizeof(text) - 1) < 0)
		_exit(2);
	_exit(7);
}

static void on_crash_flush(int signo)
{
	waffle_trace_flush();
	on_crash(signo);
}

static void on_fault(int signo)
{
	(void)signo;
	siglongjmp(back, 1);
}

/* Faults `count` times and recovers, with a handler from before the recording. */
static void recover(const char *path, long count)
{
	volatile int *volatile nowhere = NULL;
	volatile long done = 0;

	signal(SIGSEGV, on_fault);
	waffle_trace_start(path, NULL);
	while (done < count) {
		WAFFLE_EVENT("fault", KV_I64("i", done));
		if (!sigsetjmp(back, 1))
			*nowhere = 1;
		done++;
	}
	waffle_trace_stop();
	printf("recovered %ld\n", done);
}

static volatile long paced_at;

static void *paced_main(void *arg)
{
	while (paced_at < (long)arg) {
		steps(paced_at, 1);
		paced_at++;
		usleep(1000);
	}
	return NULL;
}

/* A step each millisecond. Says how many there were for each line of input. */
static void paced(long count)
{
	pthread_t thread;
	char line[32];

	setvbuf(stdout, NULL, _IOLBF, 0);
	pthread_create(&thread, NULL, paced_main, (void *)count);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin))
		printf("at %ld\n", paced_at);
	paced_at = count;
	pthread_join(thread, NULL);
}

/* As daemons do, and then opens a file of its own. */
static void closes(const char *path)
{
	int fd;

	usleep(300000);
	close_range(3, ~0u, 0);
	for (int i = 0; i < 20; i++) { /* one of them has libwaffle's number */
		fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
		if (fd < 0 || write(fd, "mine\n", 5) != 5)
			exit(6);
	}
	steps(0, 100);
	usleep(1500000);
}

static void die(const char *how)
{
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "segv")) {
		volatile int *volatile nowhere = NULL;

		*nowhere = 1;
	}
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "_exit"))
		_exit(3);
	exit(4);
}

static void forks(char **argv)
{
	pid_t pid;

	steps(0, 10);
	pid = fork();
	if (!pid) {
		steps(100, 10);
		if (argv[2])
			execv(argv[0], (char *[]){argv[0], "steps", "20", NULL});
		exit(0);
	}
	waitpid(pid, NULL, 0);
	steps(10, 10);
	printf("child %d\n", (int)pid);
}

/* Opens, uses and closes a library again and again. */
static void late(const char *path, int count)
{
	for (int i = 0; i < count; i++) {
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		void (*work)(int) = library ? dlsym(library, "inside_work") : NULL;

		if (!work) {
			fprintf(stderr, "%s\n", dlerror());
			exit(5);
		}
		work(i);
		dlclose(library);
	}
}

static volatile bool closed;

static void *beside_main(void *arg)
{
	long number = (long)arg, i = 0;

	while (!closed || i < 100) {
		steps(number * 1000000 + i++, 1);
		usleep(100);
	}
	return NULL;
}

/* The same while other threads record. */
static void late_beside(const char *path)
{
	pthread_t all[3];

	for (long i = 0; i < 3; i++)
		pthread_create(&all[i], NULL, beside_main, (void *)(i + 1));
	late(path, 200);
	closed = true;
	for (long i = 0; i < 3; i++)
		pthread_join(all[i], NULL);
}

static void by_function(const char *path)
{
	struct waffle_trace_options options = {.size = sizeof(options),
					       .filter = "name == \"tick\""};

	steps(0, 5);
	printf("no size %d\n",
	       waffle_trace_start(path, &(struct waffle_trace_options){.filter = "name == 1"}));
	printf("start %d\n", waffle_trace_start(path, &options));
	printf("again %d\n", waffle_trace_start(path, NULL));
	steps(5, 5);
	printf("flush %d\n", waffle_trace_flush());
	printf("stop %d\n", waffle_trace_stop());
	printf("stop %d\n", waffle_trace_stop());
	steps(10, 5);
}

/* Works until its input ends. */
static void on_request(void)
{
	char line[32];
	long at = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		steps(at, atol(line));
		at += atol(line);
		printf("done %ld\n", at);
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long count = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(mode, "steps"))
		steps(0, count);
	else if (!strcmp(mode, "threads"))
		threads(count);
	else if (!strcmp(mode, "brief"))
		brief(count);
	else if (!strcmp(mode, "handler"))
		interrupted(count, on_timer);
	else if (!strcmp(mode, "jump"))
		interrupted(count, on_jump);
	else if (!strcmp(mode, "fork"))
		forks(argv);
	else if (!strcmp(mode, "late"))
		late(argv[2], 3);
	else if (!strcmp(mode, "beside"))
		late_beside(argv[2]);
	else if (!strcmp(mode, "function"))
		by_function(argv[2]);
	else if (!strcmp(mode, "recover"))
		recover(argv[2], atol(argv[3]));
	else if (!strcmp(mode, "paced"))
		paced(count);
	else if (!strcmp(mode, "closes"))
		closes(argv[2]);
	else if (!strcmp(mode, "request"))
		on_request();
	else if (!strcmp(mode, "die")) {
		steps(0, 100);
		if (argc > 3 && !strcmp(argv[3], "later"))
			usleep(2500000);
		if (argc > 3 && !strcmp(argv[3], "handler")) {
			signal(SIGSEGV, on_crash);
			signal(SIGABRT, on_crash);
		}
		if (argc > 3 && !strcmp(argv[3], "flushing")) {
			signal(SIGSEGV, on_crash_flush);
			signal(SIGABRT, on_crash_flush);
		}
		die(argv[2]);
	} else
		return 9;
	printf("end\n");
	return 0;
}
