// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "export/process/joiner_threads_internal.h"
#include "util/map.h"
#include "util/vec.h"

/* A program that makes threads all the time does not say when they end. So those that are idle are
 * forgotten when there are too many. */
#define THREADS_MAX 65536u

struct joiner_threads {
	struct map index; /* tid → index */
	VEC(struct joiner_thread *) threads;
	size_t sweep_at;
};

struct joiner_threads *joiner_threads_new(void)
{
	return calloc(1, sizeof(struct joiner_threads));
}

void joiner_threads_free(struct joiner_threads *threads)
{
	if (!threads)
		return;
	for (size_t i = 0; i < threads->threads.len; i++)
		free(threads->threads.data[i]);
	vec_free(&threads->threads);
	map_free(&threads->index);
	free(threads);
}

static void remove_at(struct joiner_threads *threads, uint32_t at)
{
	struct joiner_thread *last = threads->threads.data[threads->threads.len - 1];
	struct joiner_thread *gone = threads->threads.data[at];

	map_remove(&threads->index, gone->tid);
	threads->threads.len--;
	if (last != gone) {
		threads->threads.data[at] = last;
		map_set(&threads->index, last->tid, at); /* it is there, so memory can't run out */
	}
	free(gone);
}

/* Forgets the threads without open spans whose last record is older than the mean. */
static void sweep(struct joiner_threads *threads)
{
	uint64_t mean = 0;

	for (size_t i = 0; i < threads->threads.len; i++)
		mean += threads->threads.data[i]->last_ts / threads->threads.len;
	for (uint32_t i = (uint32_t)threads->threads.len; i-- > 0;)
		if (!threads->threads.data[i]->top && threads->threads.data[i]->last_ts <= mean)
			remove_at(threads, i);
}

struct joiner_thread *joiner_threads_get(struct joiner_threads *threads, uint32_t tid, uint64_t ts)
{
	uint32_t at = map_get(&threads->index, tid);
	struct joiner_thread *thread;

	if (at != MAP_NONE) {
		thread = threads->threads.data[at];
		thread->last_ts = ts;
		return thread;
	}
	if (threads->threads.len >= THREADS_MAX && threads->threads.len >= threads->sweep_at) {
		sweep(threads);
		threads->sweep_at = threads->threads.len + THREADS_MAX / 2;
	}
	thread = calloc(1, sizeof(*thread));
	if (!thread || !vec_push(&threads->threads, thread)) {
		free(thread);
		return NULL;
	}
	if (!map_set(&threads->index, tid, (uint32_t)threads->threads.len - 1)) {
		threads->threads.len--;
		free(thread);
		return NULL;
	}
	thread->tid = tid;
	thread->last_ts = ts;
	return thread;
}

struct joiner_thread *joiner_threads_find(const struct joiner_threads *threads, uint32_t tid)
{
	uint32_t at = map_get(&threads->index, tid);

	return at == MAP_NONE ? NULL : threads->threads.data[at];
}

void joiner_threads_lost(struct joiner_threads *threads)
{
	for (size_t i = 0; i < threads->threads.len; i++)
		joiner_sched_lost(&threads->threads.data[i]->sched);
}

void joiner_threads_name(struct joiner_threads *threads, uint32_t tid, uint64_t ts,
			 const char comm[WAFFLE_COMM_BYTES])
{
	struct joiner_thread *thread = joiner_threads_get(threads, tid, ts);

	if (!thread)
		return;
	memcpy(thread->comm, comm, WAFFLE_COMM_BYTES);
	thread->comm[WAFFLE_COMM_BYTES - 1] = '\0';
}

void joiner_threads_forget(struct joiner_threads *threads, uint32_t tid)
{
	uint32_t at = map_get(&threads->index, tid);

	if (at != MAP_NONE && !threads->threads.data[at]->top)
		remove_at(threads, at);
}
