// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/told_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/vec.h"

#define EVENTS_MAX 65536

struct told {
	VEC(struct told_event) events;
	size_t next;       /* earlier events were delivered */
	uint64_t count;    /* number of all events so far */
	uint64_t until_ts; /* records before this time were delivered */
	uint64_t lost_ts;  /* 0: nothing was lost here */
	struct told_event lost;
};

int told_open(struct told **told, struct error *err)
{
	*told = calloc(1, sizeof(**told));
	return *told ? 0 : error_set(err, ENOMEM, "out of memory");
}

/* Frees the events that were delivered. */
static void drop(struct told *told)
{
	if (!told->next)
		return;
	for (size_t i = 0; i < told->next; i++)
		free(told->events.data[i].event.mapping.path);
	told->events.len -= told->next;
	memmove(told->events.data, told->events.data + told->next,
		told->events.len * sizeof(*told->events.data));
	told->next = 0;
}

void told_close(struct told *told)
{
	if (!told)
		return;
	told->next = told->events.len;
	drop(told);
	vec_free(&told->events);
	free(told);
}

void told_add(struct told *told, const struct mmap_event *event, bool traced)
{
	struct told_event one = {.event = *event, .traced = traced};

	if (!told)
		return;
	one.number = told->count++;
	if (event->kind == MMAP_MAPPED) {
		one.event.mapping.path = strdup(event->mapping.path);
		if (!one.event.mapping.path) {
			told->lost_ts = event->ts;
			return;
		}
	}
	if (told->events.len - told->next < EVENTS_MAX && vec_push(&told->events, one))
		return;
	free(one.event.mapping.path);
	told->lost_ts = event->ts;
}

static int earlier(const void *left, const void *right)
{
	const struct told_event *a = left, *b = right;

	if (a->event.ts != b->event.ts)
		return a->event.ts < b->event.ts ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

uint64_t told_round(struct told *told, uint64_t before_ts)
{
	uint64_t until_ts;

	if (!told)
		return 0;
	drop(told);
	if (told->events.len)
		qsort(told->events.data, told->events.len, sizeof(*told->events.data), earlier);
	until_ts = told->until_ts;
	told->until_ts = before_ts - 1;
	/* The last round ended early, so records older than these events may follow. */
	return until_ts == told->until_ts ? 0 : until_ts;
}

const struct told_event *told_next(struct told *told, uint64_t ts)
{
	const struct told_event *next = NULL;

	if (!told)
		return NULL;
	if (told->next < told->events.len)
		next = &told->events.data[told->next];
	if (told->lost_ts && told->lost_ts <= ts && (!next || told->lost_ts <= next->event.ts)) {
		told->lost = (struct told_event){.event = {.kind = MMAP_LOST, .ts = told->lost_ts}};
		told->lost_ts = 0;
		return &told->lost;
	}
	if (!next || next->event.ts > ts)
		return NULL;
	told->next++;
	return next;
}

static bool event_changes(const struct mmap_event *event, pid_t pid, uint64_t address)
{
	return event->pid == pid && (event->kind == MMAP_EXEC || (address >= event->mapping.start &&
								  address < event->mapping.end));
}

bool told_changes(const struct told *told, pid_t pid, uint64_t address, uint64_t before_ts)
{
	if (told && told->lost_ts && told->lost_ts < before_ts)
		return true;
	for (size_t i = told ? told->next : 0; told && i < told->events.len; i++) {
		const struct mmap_event *event = &told->events.data[i].event;

		if (event->ts >= before_ts)
			return false;
		if (event->kind == MMAP_LOST || event_changes(event, pid, address))
			return true;
	}
	return false;
}
