// SPDX-License-Identifier: Apache-2.0
/*
 * mutex WAY SEED: the victim waits for a mutex whose holder
 *	sleeps, computes, or is preempted by a hog on its CPU;
 *	or (WAY writes) it waits to read what the holder computes and writes.
 */
#include "zoo.h"

#define ROUNDS 6

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t table_rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t held, given;
static char object[32];
static const char *way;
static pid_t hog_pid;
static int cpu;

static bool writes(void)
{
	return !strcmp(way, "writes");
}

static void take(bool to_write)
{
	if (!writes())
		pthread_mutex_lock(&table_lock);
	else if (to_write)
		pthread_rwlock_wrlock(&table_rwlock);
	else
		pthread_rwlock_rdlock(&table_rwlock);
}

static void give(void)
{
	if (writes())
		pthread_rwlock_unlock(&table_rwlock);
	else
		pthread_mutex_unlock(&table_lock);
}

static void hog(void)
{
	zoo_pin(cpu);
	for (;;) {
		SPAN("burn");
		zoo_burn(50);
	}
}

static void hold(int i, struct zoo_time *t)
{
	SPAN("hold", KV_I64("i", i));
	if (!strcmp(way, "sleeps"))
		sleep_ms(zoo_vary(i, 100, 250));
	else
		zoo_burn(*way == 'p' ? zoo_vary(i, 20, 50) : zoo_vary(i, 80, 200));
	zoo_time_end(t);
}

static void say(int i, const struct zoo_time *t)
{
	struct zoo_who by = {hog_pid, hog_pid, "hog"};

	if (!strcmp(way, "sleeps"))
		zoo_say_cause(i, "sleep", zoo_blocked(t), zoo_self(), "hold", NULL);
	if (!strcmp(way, "preempted"))
		zoo_say_cause(i, "cpu-contention", t->runnable, by, "burn", NULL);
	if (strcmp(way, "sleeps"))
		zoo_say_cause(i, "lock", t->running, zoo_self(), "hold", object);
}

static void holder(void)
{
	struct zoo_time t;

	if (!strcmp(way, "preempted")) {
		zoo_pin(cpu);
		zoo_need(!setpriority(PRIO_PROCESS, 0, 5), "setpriority");
	}
	for (int i = 0; i < ROUNDS; i++) {
		take(true);
		pthread_barrier_wait(&held);
		zoo_time_begin(&t);
		hold(i, &t);
		give();
		say(i, &t);
		pthread_barrier_wait(&given);
	}
}

static void victim(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&held);
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i), KV_PTR("lock", &table_lock));
			take(false);
			give();
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		pthread_barrier_wait(&given);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	way = argc > 2 ? argv[1] : "sleeps";
	cpu = zoo_some_cpu();
	/* The C library decides at which of its words a reader waits. */
	if (writes())
		strcpy(object, "table_rwlock");
	else
		snprintf(object, sizeof(object), "%p", (void *)&table_lock);
	pthread_barrier_init(&held, NULL, 2);
	pthread_barrier_init(&given, NULL, 2);
	if (!strcmp(way, "preempted"))
		hog_pid = zoo_fork("hog", hog);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"holder", holder}, {"innocent", zoo_innocent});
	return 0;
}
