// SPDX-License-Identifier: Apache-2.0
/*
 * Closes links in a thread of its own. Closing a link of a uprobe waits until all CPUs have left
 * its programs, which takes tens of milliseconds. With links for each process, a session loop that
 * closed them itself would do little else.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "kernel/kernel_internal.h"

struct closer {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t come;
	VEC(struct armed *) waiting; /* guarded by the lock, as is what follows */
	bool end, busy;
};

static void *closer_run(void *arg)
{
	struct closer *closer = arg;
	bool end = false;

	while (!end) {
		VEC(struct armed *) list = {0};

		pthread_mutex_lock(&closer->lock);
		while (!closer->waiting.len && !closer->end)
			pthread_cond_wait(&closer->come, &closer->lock);
		list.data = closer->waiting.data;
		list.len = closer->waiting.len;
		list.cap = closer->waiting.cap;
		closer->waiting.data = NULL;
		closer->waiting.len = closer->waiting.cap = 0;
		end = closer->end;
		closer->busy = list.len;
		pthread_mutex_unlock(&closer->lock);
		armed_release_all(list.data, list.len);
		vec_free(&list);
		pthread_mutex_lock(&closer->lock);
		closer->busy = false;
		pthread_mutex_unlock(&closer->lock);
	}
	return NULL;
}

static struct closer *closer_make(void)
{
	struct closer *closer = calloc(1, sizeof(*closer));
	sigset_t all, before;
	int failed;

	if (!closer)
		return NULL;
	pthread_mutex_init(&closer->lock, NULL);
	pthread_cond_init(&closer->come, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&closer->thread, NULL, closer_run, closer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failed)
		return closer;
	free(closer);
	return NULL;
}

void kernel_disarm_later(struct kernel *kernel, struct armed *const *list, size_t count)
{
	struct closer *closer;
	bool taken;

	if (!count)
		return;
	closer = kernel->closer;
	if (!closer)
		closer = kernel->closer = closer_make();
	if (!closer) {
		armed_release_all(list, count);
		return;
	}
	pthread_mutex_lock(&closer->lock);
	taken = vec_reserve(&closer->waiting, count);
	for (size_t i = 0; taken && i < count; i++)
		closer->waiting.data[closer->waiting.len++] = list[i];
	pthread_cond_signal(&closer->come);
	pthread_mutex_unlock(&closer->lock);
	if (!taken)
		armed_release_all(list, count);
}

bool kernel_is_disarmed(const struct kernel *kernel)
{
	struct closer *closer = kernel->closer;
	bool done;

	if (!closer)
		return true;
	pthread_mutex_lock(&closer->lock);
	done = !closer->busy && !closer->waiting.len;
	pthread_mutex_unlock(&closer->lock);
	return done;
}

void kernel_disarm_give_up(struct kernel *kernel)
{
	if (kernel->closer)
		pthread_detach(kernel->closer->thread);
	kernel->closer = NULL;
}

void closer_free(struct closer *closer)
{
	if (!closer)
		return;
	pthread_mutex_lock(&closer->lock);
	closer->end = true;
	pthread_cond_signal(&closer->come);
	pthread_mutex_unlock(&closer->lock);
	pthread_join(closer->thread, NULL);
	vec_free(&closer->waiting);
	free(closer);
}
