// SPDX-License-Identifier: Apache-2.0
#include "capture/address_space/mmap_queue_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/vec.h"

#define EVENTS_MAX 65536

struct mmap_queue {
	VEC(struct queued_mmap) events;
	size_t next;       /* earlier events were delivered */
	uint64_t count;    /* number of events that were ever pushed */
	uint64_t until_ts; /* records before this time were delivered */
	uint64_t lost_ts;  /* 0: nothing was lost here */
	struct queued_mmap lost;
};

int mmap_queue_open(struct mmap_queue **queue, struct error *err)
{
	*queue = calloc(1, sizeof(**queue));
	return *queue ? 0 : error_set(err, ENOMEM, "out of memory");
}

/* Frees the events that were delivered. */
static void drop(struct mmap_queue *queue)
{
	if (!queue->next)
		return;
	for (size_t i = 0; i < queue->next; i++)
		free(queue->events.data[i].event.mapping.path);
	queue->events.len -= queue->next;
	memmove(queue->events.data, queue->events.data + queue->next,
		queue->events.len * sizeof(*queue->events.data));
	queue->next = 0;
}

void mmap_queue_close(struct mmap_queue *queue)
{
	if (!queue)
		return;
	queue->next = queue->events.len;
	drop(queue);
	vec_free(&queue->events);
	free(queue);
}

void mmap_queue_push(struct mmap_queue *queue, const struct mmap_event *event, bool traced)
{
	struct queued_mmap one = {.event = *event, .traced = traced};

	if (!queue)
		return;
	one.number = queue->count++;
	if (event->kind == MMAP_MAPPED) {
		one.event.mapping.path = strdup(event->mapping.path);
		if (!one.event.mapping.path) {
			queue->lost_ts = event->ts;
			return;
		}
	}
	if (queue->events.len - queue->next < EVENTS_MAX && vec_push(&queue->events, one))
		return;
	free(one.event.mapping.path);
	queue->lost_ts = event->ts;
}

static int earlier(const void *left, const void *right)
{
	const struct queued_mmap *a = left, *b = right;

	if (a->event.ts != b->event.ts)
		return a->event.ts < b->event.ts ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

uint64_t mmap_queue_begin_round(struct mmap_queue *queue, uint64_t before_ts)
{
	uint64_t until_ts;

	if (!queue)
		return 0;
	drop(queue);
	if (queue->events.len)
		qsort(queue->events.data, queue->events.len, sizeof(*queue->events.data), earlier);
	until_ts = queue->until_ts;
	queue->until_ts = before_ts - 1;
	/* The last round ended early, so records older than these events may follow. */
	return until_ts == queue->until_ts ? 0 : until_ts;
}

const struct queued_mmap *mmap_queue_pop(struct mmap_queue *queue, uint64_t ts)
{
	const struct queued_mmap *next = NULL;

	if (!queue)
		return NULL;
	if (queue->next < queue->events.len)
		next = &queue->events.data[queue->next];
	if (queue->lost_ts && queue->lost_ts <= ts && (!next || queue->lost_ts <= next->event.ts)) {
		queue->lost =
			(struct queued_mmap){.event = {.kind = MMAP_LOST, .ts = queue->lost_ts}};
		queue->lost_ts = 0;
		return &queue->lost;
	}
	if (!next || next->event.ts > ts)
		return NULL;
	queue->next++;
	return next;
}

static bool event_changes(const struct mmap_event *event, pid_t pid, uint64_t address)
{
	return event->pid == pid && (event->kind == MMAP_EXEC || (address >= event->mapping.start &&
								  address < event->mapping.end));
}

bool mmap_queue_may_change(const struct mmap_queue *queue, pid_t pid, uint64_t address,
			   uint64_t before_ts)
{
	if (queue && queue->lost_ts && queue->lost_ts < before_ts)
		return true;
	for (size_t i = queue ? queue->next : 0; queue && i < queue->events.len; i++) {
		const struct mmap_event *event = &queue->events.data[i].event;

		if (event->ts >= before_ts)
			return false;
		if (event->kind == MMAP_LOST || event_changes(event, pid, address))
			return true;
	}
	return false;
}
