// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that wait for each other in known ways; each says its name and thread id:
 *	pipe: "reader" waits in read(2) for "writer"
 *	lock: "waiter" waits in futex(2) for "holder"
 *	sleep: "sleeper" waits in clock_nanosleep(2) for nobody
 *	cpu: "victim" and "hog" spin on one CPU
 */
#define _GNU_SOURCE
#include "log.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "waffle.h"

#define ROUNDS 20

static int ends[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int turn;

static void introduce(const char *name)
{
	prctl(PR_SET_NAME, name);
	printf("thread name=%s tid=%d\n", name, thread_id());
}

static void *reader(void *arg)
{
	char byte;

	introduce("reader");
	for (int i = 0; i < ROUNDS; i++) {
		WAFFLE_SPAN("read", KV_I64("i", i), KV_I64("fd", ends[0]));
		if (read(ends[0], &byte, 1) != 1)
			exit(1);
	}
	return arg;
}

static void *writer(void *arg)
{
	introduce("writer");
	for (int i = 0; i < ROUNDS; i++) {
		sleep_ms(3);
		if (write(ends[1], "x", 1) != 1)
			exit(1);
	}
	return arg;
}

static void *holder(void *arg)
{
	introduce("holder");
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		turn = 1; /* the waiter may try now */
		sleep_ms(3);
		pthread_mutex_unlock(&lock);
		while (turn)
			sched_yield();
	}
	return arg;
}

static void *waiter(void *arg)
{
	introduce("waiter");
	for (int i = 0; i < ROUNDS; i++) {
		while (!turn)
			sched_yield();
		{
			WAFFLE_SPAN("lock", KV_I64("i", i));
			pthread_mutex_lock(&lock);
		}
		pthread_mutex_unlock(&lock);
		turn = 0;
	}
	return arg;
}

static void *sleeper(void *arg)
{
	introduce("sleeper");
	for (int i = 0; i < ROUNDS; i++) {
		WAFFLE_SPAN("sleep", KV_I64("i", i));
		sleep_ms(2);
	}
	return arg;
}

static void spin_on_last_cpu(const char *name)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((int)sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	sched_setaffinity(0, sizeof(set), &set);
	introduce(name);
	WAFFLE_SPAN("spin", KV_STR("who", name));
	spin_ms(300);
}

static void *victim(void *arg)
{
	spin_on_last_cpu("victim");
	return arg;
}

static void *hog(void *arg)
{
	spin_on_last_cpu("hog");
	return arg;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *way;
		void *(*one)(void *);
		void *(*two)(void *);
	} rows[] = {
		{"pipe", reader, writer}, {"lock", holder, waiter}, {"sleep", sleeper, NULL},
		{"cpu", victim, hog},     {"alone", victim, NULL},
	};
	pthread_t one, two;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc < 2 || pipe(ends))
		return 2;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].way, argv[1]))
			continue;
		pthread_create(&one, NULL, rows[i].one, NULL);
		if (rows[i].two)
			pthread_create(&two, NULL, rows[i].two, NULL);
		pthread_join(one, NULL);
		if (rows[i].two)
			pthread_join(two, NULL);
	}
	return 0;
}
