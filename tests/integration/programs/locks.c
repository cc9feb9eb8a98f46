// SPDX-License-Identifier: Apache-2.0
/*
 * Locks of all kinds, free and taken, a line each: who called what on what, and between which
 * times. A second thread has each lock until it sees that the first one sleeps in waiting for it.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "log.h"

#define FREE_LOCKS 50

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t taken, wanted;
static int waiter, flag;

#define LOGGED(name, object, call)                                                                 \
	do {                                                                                       \
		long long begin = now_ns();                                                        \
		int got = call;                                                                    \
		long long end = now_ns();                                                          \
                                                                                                   \
		printf("call name=%s object=%lld result=%d tid=%d begin=%lld end=%lld\n", name,    \
		       (long long)(object), got, thread_id(), begin, end);                         \
	} while (0)

/* Waits until the first thread sleeps, which it can only do in the lock that this thread holds. */
static void wait_for_sleep(void)
{
	char path[64], text[256], *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
		 __atomic_load_n(&waiter, __ATOMIC_ACQUIRE));
	do {
		FILE *file = fopen(path, "r");

		if (!file || !fgets(text, sizeof(text), file))
			abort();
		fclose(file);
		state = strrchr(text, ')');
	} while (!state || state[2] != 'S');
}

static void *holder(void *unused)
{
	pthread_mutex_lock(&mutex);
	sem_post(&taken);
	wait_for_sleep();
	pthread_mutex_unlock(&mutex);

	sem_wait(&wanted);
	pthread_rwlock_wrlock(&rwlock);
	sem_post(&taken);
	wait_for_sleep();
	pthread_rwlock_unlock(&rwlock);

	sem_wait(&wanted);
	pthread_mutex_lock(&mutex);
	flag = 1;
	pthread_cond_signal(&cond);
	pthread_mutex_unlock(&mutex);
	pthread_barrier_wait(&barrier);
	return unused;
}

static void wait_for_flag(void)
{
	LOGGED("pthread_mutex_lock", &mutex, pthread_mutex_lock(&mutex));
	sem_post(&wanted);
	while (!flag)
		LOGGED("pthread_cond_wait", &cond, pthread_cond_wait(&cond, &mutex));
	pthread_mutex_unlock(&mutex);
}

int main(void)
{
	char line[16];
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	sem_init(&taken, 0, 0);
	sem_init(&wanted, 0, 0);
	waiter = thread_id();
	printf("ready\n");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < FREE_LOCKS; i++) {
		LOGGED("pthread_mutex_lock", &mutex, pthread_mutex_lock(&mutex));
		LOGGED("pthread_mutex_trylock", &mutex, pthread_mutex_trylock(&mutex));
		pthread_mutex_unlock(&mutex);
	}
	LOGGED("pthread_create", 0, pthread_create(&thread, NULL, holder, NULL));
	LOGGED("sem_wait", &taken, sem_wait(&taken));
	LOGGED("pthread_mutex_lock", &mutex, pthread_mutex_lock(&mutex));
	pthread_mutex_unlock(&mutex);
	sem_post(&wanted);
	LOGGED("sem_wait", &taken, sem_wait(&taken));
	LOGGED("pthread_rwlock_rdlock", &rwlock, pthread_rwlock_rdlock(&rwlock));
	pthread_rwlock_unlock(&rwlock);
	wait_for_flag();
	LOGGED("pthread_barrier_wait", &barrier, pthread_barrier_wait(&barrier));
	LOGGED("pthread_join", (long long)thread, pthread_join(thread, NULL));
	printf("done holder=%lld\n", (long long)thread);
	return 0;
}
