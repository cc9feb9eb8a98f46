// SPDX-License-Identifier: Apache-2.0
/*
 * A program that hangs: "hangs MODE". Its threads are named as they are called in the test. It
 * prints "ready" when every thread has its first lock, and goes on to the second one at SIGUSR1 if
 * the environment has LATE, else at once. With BEATS, one more thread sleeps in a loop. Then it
 * prints "going": a thread that blocks from then on waits for its second lock.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RING_MAX 8

static pthread_mutex_t ring_lock[RING_MAX];
static pthread_rwlock_t shared_lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t plain_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t all_have_one;
static unsigned ring_size;
static atomic_uint gone_on; /* threads that go on to their second lock */

/* Every thread has its first lock: main() prints so and lets them go on. */
static void have_one(const char *name)
{
	pthread_setname_np(pthread_self(), name);
	pthread_barrier_wait(&all_have_one);
	pthread_barrier_wait(&all_have_one);
	atomic_fetch_add(&gone_on, 1);
}

static void *ring_thread(void *arg)
{
	unsigned number = (unsigned)(size_t)arg;
	char name[16];

	pthread_mutex_lock(&ring_lock[number]);
	snprintf(name, sizeof(name), "ring-%u", number);
	have_one(name);
	pthread_mutex_lock(&ring_lock[(number + 1) % ring_size]);
	return arg;
}

static void *writer_thread(void *arg)
{
	pthread_rwlock_wrlock(&shared_lock);
	have_one("writer");
	pthread_mutex_lock(&plain_lock);
	return arg;
}

static void *reader_thread(void *arg)
{
	pthread_mutex_lock(&plain_lock);
	have_one("reader");
	pthread_rwlock_rdlock(&shared_lock);
	return arg;
}

static void *sleeper_thread(void *arg)
{
	pthread_mutex_lock(&plain_lock);
	have_one("sleeper");
	for (;;)
		nanosleep(&(struct timespec){.tv_sec = 1000}, NULL);
	return arg;
}

static void *waiter_thread(void *arg)
{
	have_one("waiter");
	pthread_mutex_lock(&plain_lock);
	return arg;
}

/* It ends with the lock. */
static void *ended_thread(void *arg)
{
	pthread_mutex_lock(&plain_lock);
	have_one("ended");
	return arg;
}

/* A child has ended with the lock, which lies in memory that both share. `leave` is WNOWAIT if it
 * stays a zombie. */
static void orphan_wait(int leave)
{
	pthread_mutex_t *lock = mmap(NULL, sizeof(*lock), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t attributes;
	siginfo_t ended;
	pid_t child;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(lock, &attributes);
	child = fork();
	if (!child) {
		pthread_mutex_lock(lock);
		_exit(0);
	}
	waitid(P_PID, (id_t)child, &ended, WEXITED | leave);
	have_one("waiter");
	pthread_mutex_lock(lock);
}

static void *orphan_thread(void *arg)
{
	orphan_wait(WNOWAIT);
	return arg;
}

static void *reaped_thread(void *arg)
{
	orphan_wait(0);
	return arg;
}

static void *condition_thread(void *arg)
{
	pthread_mutex_lock(&plain_lock);
	have_one("condition");
	pthread_cond_wait(&condition, &plain_lock);
	return arg;
}

static void *beat_thread(void *arg)
{
	pthread_setname_np(pthread_self(), "beat");
	for (;;)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	return arg;
}

static void ring_make(unsigned size, const char *mode)
{
	pthread_mutexattr_t attributes;

	ring_size = size;
	pthread_mutexattr_init(&attributes);
	if (!strcmp(mode, "robust"))
		pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	if (!strcmp(mode, "inherit"))
		pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
	for (unsigned i = 0; i < size; i++)
		pthread_mutex_init(&ring_lock[i], &attributes);
}

static unsigned begin(const char *mode, void *(*threads[RING_MAX])(void *))
{
	static const struct {
		const char *mode;
		unsigned ring, count;
		void *(*threads[2])(void *);
	} rows[] = {
		{"self", 1, 1, {NULL}},
		{"two", 2, 2, {NULL}},
		{"three", 3, 3, {NULL}},
		{"robust", 2, 2, {NULL}},
		{"inherit", 2, 2, {NULL}},
		{"rwlock", 0, 2, {writer_thread, reader_thread}},
		{"asleep", 0, 2, {sleeper_thread, waiter_thread}},
		{"condition", 0, 1, {condition_thread}},
		{"ended", 0, 2, {ended_thread, waiter_thread}},
		{"orphan", 0, 1, {orphan_thread}},
		{"reaped", 0, 1, {reaped_thread}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].mode, mode) != 0)
			continue;
		ring_make(rows[i].ring, mode);
		for (unsigned k = 0; k < rows[i].count; k++)
			threads[k] = rows[i].ring ? ring_thread : rows[i].threads[k];
		return rows[i].count;
	}
	return 0;
}

int main(int argc, char **argv)
{
	void *(*threads[RING_MAX])(void *);
	unsigned count = argc == 2 ? begin(argv[1], threads) : 0;
	pthread_t made[RING_MAX], beat;
	sigset_t signals;
	int got;

	if (!count)
		return 2;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	pthread_barrier_init(&all_have_one, NULL, count + 1);
	for (unsigned i = 0; i < count; i++)
		if (pthread_create(&made[i], NULL, threads[i], (void *)(size_t)i))
			return 1;
	if (getenv("BEATS") && pthread_create(&beat, NULL, beat_thread, NULL))
		return 1;
	pthread_barrier_wait(&all_have_one);
	puts("ready");
	fflush(stdout);
	if (getenv("LATE"))
		sigwait(&signals, &got);
	pthread_barrier_wait(&all_have_one);
	while (atomic_load(&gone_on) < count)
		sched_yield();
	puts("going");
	fflush(stdout);
	pthread_join(made[count - 1], NULL);
	return 0;
}
