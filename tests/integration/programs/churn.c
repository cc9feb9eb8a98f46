// SPDX-License-Identifier: Apache-2.0
/*
 * churn LIBRARY [jump]: all that a tracer could keep something of, for as long as the standard
 * input lasts: threads that come and go, processes that live a moment, some of which run another
 * program, spans that are left by longjmp(), waits from stacks that differ, and a library that is
 * loaded and unloaded. Says what it made of it, and then makes one event "late".
 */
#include "log.h"

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "waffle.h"

#define TURN_US 4000

static struct made {
	long forks, execs, threads, jumps, loads, turns;
} made;

static _Thread_local jmp_buf out;

/* Each path through the two functions is a stack of its own, so there are as many as numbers. */
static void left(unsigned path, int depth);

__attribute__((noinline)) static void right(unsigned path, int depth)
{
	if (!depth)
		usleep(100);
	else if (path & 1)
		left(path >> 1, depth - 1);
	else
		right(path >> 1, depth - 1);
	__asm__ volatile("" ::: "memory"); /* no tail call */
}

__attribute__((noinline)) static void left(unsigned path, int depth)
{
	if (!depth)
		usleep(101);
	else if (path & 1)
		left(path >> 1, depth - 1);
	else
		right(path >> 1, depth - 1);
	__asm__ volatile("" ::: "memory");
}

static void leave(void)
{
	WAFFLE_SPAN("left behind");
	{
		WAFFLE_SPAN("left behind in it", KV_I64("n", made.jumps));
		longjmp(out, 1);
	}
}

static void jump(void)
{
	if (!setjmp(out))
		leave();
	made.jumps++;
}

static void *thread(void *arg)
{
	WAFFLE_SPAN("thread");
	right((unsigned)(size_t)arg, 20);
	return NULL;
}

static void fork_one(void)
{
	pid_t pid = fork();

	if (!pid) {
		WAFFLE_EVENT("child");
		if (made.forks % 8 == 0)
			execl("/bin/true", "true", (char *)NULL);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	made.execs += made.forks++ % 8 == 0;
}

static void load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*call)(int) = library ? (int (*)(int))dlsym(library, "library_call") : NULL;

	if (call)
		call((int)made.loads);
	made.loads += call != NULL;
	if (library)
		dlclose(library);
}

static void turn(const char *library, int jumps)
{
	pthread_t one;

	{
		WAFFLE_SPAN("turn", KV_I64("n", made.turns));
		right((unsigned)made.turns, 24);
	}
	if (jumps)
		jump();
	if (!pthread_create(&one, NULL, thread, (void *)made.turns)) {
		pthread_join(one, NULL);
		made.threads++;
	}
	if (made.turns % 2 == 0)
		fork_one();
	if (made.turns % 16 == 0)
		load(library);
	made.turns++;
	usleep(TURN_US);
}

int main(int argc, char **argv)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	char text[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready pid=%d\n", getpid());
	while (!poll(&in, 1, 0))
		turn(argc > 1 ? argv[1] : "", argc > 2);
	printf("made turns=%ld forks=%ld execs=%ld threads=%ld jumps=%ld loads=%ld\n", made.turns,
	       made.forks, made.execs, made.threads, made.jumps, made.loads);
	if (!fgets(text, sizeof(text), stdin))
		return 1;
	WAFFLE_EVENT("late", KV_I64("turns", made.turns));
	printf("late\n");
	while (fgets(text, sizeof(text), stdin))
		;
	return 0;
}
