/* SPDX-License-Identifier: Apache-2.0 */
/*
 * causes MODE: a span "request" that is slow in a known way, and lines "piece cause= ns= tid=
 * comm=" of what it was slow by, as measured by whom it was done.
 * - lock: its thread waits for a mutex, whose holder sleeps and then computes
 * - pipe: its thread waits for a child process, which sleeps and then answers through a pipe
 * - child: its thread waits for the end of a process that it has started
 * - stays: its thread waits for CPU 0 behind another one, until that has done its work
 * - moved: it is moved to CPU 1 while it waits there
 * - origin: nothing is slow: a bad value is seen in a span whose cause is linked
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "log.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "waffle_macros.h"

#define MS 1000000ll
#define ROUNDS 4

static pthread_mutex_t cache_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held, given;

static void say(const char *cause, long long ns)
{
	char comm[16];

	prctl(PR_GET_NAME, comm);
	printf("piece cause=%s ns=%lld pid=%d tid=%d comm=%s\n", cause, ns, getpid(), thread_id(),
	       comm);
	fflush(stdout);
}

static long long cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

__attribute__((noinline)) static void compute(int ms)
{
	long long end = cpu_ns() + ms * MS;

	while (cpu_ns() < end)
		;
}

/* Says how long it slept; a busy machine sleeps longer. */
__attribute__((noinline)) static void rest(int ms)
{
	long long begin = now_ns();

	sleep_ms(ms);
	say("sleep", now_ns() - begin);
}

/* ---- lock ---- */

static void *holder(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "holder");
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&cache_lock);
		pthread_barrier_wait(&held);
		{
			SPAN("refresh");
			rest(40);
			compute(20);
			say("lock", 20 * MS);
		}
		pthread_mutex_unlock(&cache_lock);
		pthread_barrier_wait(&given);
	}
	return NULL;
}

__attribute__((noinline)) static void use_cache(void)
{
	pthread_mutex_lock(&cache_lock);
	pthread_mutex_unlock(&cache_lock);
}

static void lock_rounds(void)
{
	pthread_t thread;

	pthread_barrier_init(&held, NULL, 2);
	pthread_barrier_init(&given, NULL, 2);
	pthread_create(&thread, NULL, holder, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		long long begin;

		pthread_barrier_wait(&held);
		begin = now_ns();
		{
			SPAN("request", KV_I64("i", i));
			use_cache();
			compute(10);
		}
		say("running", 10 * MS);
		printf("request begin=%lld end=%lld tid=%d object=%p\n", begin, now_ns(),
		       thread_id(), (void *)&cache_lock);
		pthread_barrier_wait(&given);
	}
	pthread_join(thread, NULL);
}

/* ---- pipe ---- */

static void pipe_rounds(void)
{
	char byte = 'x';
	int ask[2], answer[2];

	if (pipe(ask) || pipe(answer))
		exit(1);
	if (!fork()) {
		prctl(PR_SET_NAME, "backend");
		close(ask[1]);
		while (read(ask[0], &byte, 1) == 1) {
			rest(40);
			if (write(answer[1], &byte, 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	close(ask[0]);
	close(answer[1]);
	for (int i = 0; i < ROUNDS; i++) {
		long long begin = now_ns();

		{
			SPAN("request", KV_I64("i", i));
			if (write(ask[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 1)
				exit(1);
		}
		printf("request begin=%lld end=%lld tid=%d\n", begin, now_ns(), thread_id());
	}
	close(ask[1]);
	wait(NULL);
}

/* ---- child ---- */

/* It is the same process all the time, and has the shell's name at first. */
static void child_rounds(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		SPAN("request", KV_I64("i", i));
		if (system("exec sleep 0.2")) // NOLINT(bugprone-command-processor,cert-env33-c)
			exit(1);
	}
}

/* ---- stays, moved ---- */

static pid_t waiting;

static void pin(pid_t thread, int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(thread, sizeof(cpus), &cpus))
		exit(1);
}

/* Nothing but a real-time thread keeps a CPU for sure. */
static void *hog(void *arg)
{
	const struct sched_param first = {.sched_priority = 1};

	(void)arg;
	prctl(PR_SET_NAME, "hog");
	pin(0, 0);
	if (sched_setscheduler(0, SCHED_FIFO, &first))
		exit(1);
	pthread_barrier_wait(&held);
	compute(80);
	say("hog", 80 * MS);
	return NULL;
}

static void *mover(void *arg)
{
	pin(0, 1);
	pthread_barrier_wait(&held);
	sleep_ms(40);
	if (arg)
		pin(waiting, 1);
	return NULL;
}

static void cpu_round(void *move)
{
	pthread_t threads[2];
	long long begin;

	waiting = thread_id();
	pin(waiting, 0);
	pthread_barrier_init(&held, NULL, 3);
	pthread_create(&threads[0], NULL, hog, NULL);
	pthread_create(&threads[1], NULL, mover, move);
	begin = now_ns();
	{
		SPAN("request");
		pthread_barrier_wait(&held);
		compute(1);
	}
	printf("request begin=%lld end=%lld tid=%d\n", begin, now_ns(), thread_id());
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

/* ---- origin ---- */

static void origin_rounds(void)
{
	waffle_event_id_t bad = WAFFLE_EVENT("division by zero");

	{
		SPAN("reduce", KV_CAUSE_EVENT(bad));
		{
			SPAN("step");
			WAFFLE_EVENT("loss is NaN");
		}
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	prctl(PR_SET_NAME, "server");
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(mode, "lock"))
		lock_rounds();
	else if (!strcmp(mode, "pipe"))
		pipe_rounds();
	else if (!strcmp(mode, "child"))
		child_rounds();
	else if (!strcmp(mode, "stays"))
		cpu_round(NULL);
	else if (!strcmp(mode, "moved"))
		cpu_round(&waiting);
	else if (!strcmp(mode, "origin"))
		origin_rounds();
	else
		return 1;
	return 0;
}
