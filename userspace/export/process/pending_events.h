/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events and log messages that wait for the end of their span, since OTLP has them inside of it.
 * They are bounded in number, bytes and time; those that have waited too long are exported alone.
 */
#ifndef WAFFLE_EXPORT_PROCESS_PENDING_EVENTS_H
#define WAFFLE_EXPORT_PROCESS_PENDING_EVENTS_H

#include "export/process/full_record.h"

#define PENDING_COUNT_MAX 65536u
#define PENDING_BYTES_MAX (16u << 20)
#define PENDING_NS 60000000000ull

struct pending_event {
	struct pending_event *next_same, *older, *newer;
	struct full_record *record;
	uint64_t since_ns;
};

struct pending_events {
	struct pending_event *chains[4096]; /* by the id of the span, the latest first */
	struct pending_event *oldest, *newest;
	size_t count, bytes;
};

/* Copies an event. False: out of memory. */
bool pending_events_add(struct pending_events *pending, const struct full_record *event,
			uint64_t now_ns);
/* Takes the events of a span, in their order. Free each with pending_event_free(). */
struct pending_event *pending_events_take(struct pending_events *pending, uint64_t span_id);
/* Takes the oldest event if it has waited too long or there are too many; NULL: none. `all`: in any
 * case. */
struct pending_event *pending_events_expired(struct pending_events *pending, uint64_t now_ns,
					     bool all);
void pending_event_free(struct pending_event *event);
void pending_events_clear(struct pending_events *pending);

#endif
