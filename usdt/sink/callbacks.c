// SPDX-License-Identifier: Apache-2.0
#include "usdt/sink/callbacks.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))
#define CALLBACKS_MAX 64

struct callback {
	char *name;
	waffle_process_fn call; /* NULL: removed */
	void *arg;
};

/* The lock is held while a callback runs, so that whoever removes it waits for its end. It is
 * recursive, since a callback may do so itself. */
static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	struct callback list[CALLBACKS_MAX];
	size_t count;
} callbacks = {.once = PTHREAD_ONCE_INIT};

static void lock_make(void)
{
	pthread_mutexattr_t recursive;

	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&callbacks.lock, &recursive);
	pthread_mutexattr_destroy(&recursive);
}

void callbacks_fork_child(void)
{
	callbacks.once = (pthread_once_t)PTHREAD_ONCE_INIT;
}

static void lock(void)
{
	pthread_once(&callbacks.once, lock_make);
	pthread_mutex_lock(&callbacks.lock);
}

static struct callback *find(const char *name)
{
	for (size_t i = 0; i < callbacks.count; i++)
		if (!strcmp(callbacks.list[i].name, name))
			return &callbacks.list[i];
	return NULL;
}

bool callbacks_call(const char *name, const struct waffle_record *record, void *arg)
{
	const struct callback *callback;
	bool passes = true;

	(void)arg;
	lock();
	callback = find(name);
	if (callback && callback->call)
		passes = callback->call(record, callback->arg);
	pthread_mutex_unlock(&callbacks.lock);
	return passes;
}

static int set(const char *name, waffle_process_fn call, void *arg)
{
	struct callback *callback = find(name);

	if (!callback) {
		if (callbacks.count == CALLBACKS_MAX)
			return -ENOSPC;
		callback = &callbacks.list[callbacks.count];
		callback->name = strdup(name);
		if (!callback->name)
			return -ENOMEM;
		callbacks.count++;
	}
	callback->call = call;
	callback->arg = arg;
	return 0;
}

API int waffle_process_callback(const char *name, waffle_process_fn callback, void *arg)
{
	int result;

	if (!name || !*name)
		return -EINVAL;
	for (const char *at = name; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr("_-.", *at))
			return -EINVAL;
	lock();
	result = set(name, callback, arg);
	pthread_mutex_unlock(&callbacks.lock);
	return result;
}
