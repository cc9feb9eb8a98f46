// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>

#include "export/process/pending_events.h"

static struct pending_event **chain_of(struct pending_events *pending, uint64_t span_id)
{
	return &pending->chains[(span_id * 0x9e3779b97f4a7c15ull) >> 52];
}
_Static_assert(sizeof(((struct pending_events *)0)->chains) / sizeof(void *) == 1u << (64 - 52),
	       "the hash fills the table");

bool pending_events_add(struct pending_events *pending, const struct full_record *event,
			uint64_t now_ns)
{
	struct pending_event *added = calloc(1, sizeof(*added));
	struct pending_event **chain = chain_of(pending, event->record.parent);

	if (!added)
		return false;
	added->record = full_record_copy(event);
	if (!added->record) {
		free(added);
		return false;
	}
	added->since_ns = now_ns;
	added->next_same = *chain;
	*chain = added;
	added->older = pending->newest;
	*(pending->newest ? &pending->newest->newer : &pending->oldest) = added;
	pending->newest = added;
	pending->count++;
	pending->bytes += sizeof(*added) + full_record_bytes(added->record);
	return true;
}

/* Takes it out of the list of all, not of its chain. */
static void unlist(struct pending_events *pending, struct pending_event *event)
{
	*(event->older ? &event->older->newer : &pending->oldest) = event->newer;
	*(event->newer ? &event->newer->older : &pending->newest) = event->older;
	pending->count--;
	pending->bytes -= sizeof(*event) + full_record_bytes(event->record);
}

struct pending_event *pending_events_take(struct pending_events *pending, uint64_t span_id)
{
	struct pending_event **at = chain_of(pending, span_id), *taken = NULL;

	/* Since the latest one is the first in the chain, the list of those taken is in order. */
	while (*at) {
		struct pending_event *event = *at;

		if (event->record->record.parent != span_id) {
			at = &event->next_same;
			continue;
		}
		*at = event->next_same;
		unlist(pending, event);
		event->next_same = taken;
		taken = event;
	}
	return taken;
}

struct pending_event *pending_events_expired(struct pending_events *pending, uint64_t now_ns,
					     bool all)
{
	struct pending_event *oldest = pending->oldest, **at;

	if (!oldest || !(all || now_ns - oldest->since_ns >= PENDING_NS ||
			 pending->count > PENDING_COUNT_MAX || pending->bytes > PENDING_BYTES_MAX))
		return NULL;
	at = chain_of(pending, oldest->record->record.parent);
	while (*at != oldest)
		at = &(*at)->next_same;
	*at = oldest->next_same;
	unlist(pending, oldest);
	oldest->next_same = NULL;
	return oldest;
}

void pending_event_free(struct pending_event *event)
{
	free(event->record);
	free(event);
}

void pending_events_clear(struct pending_events *pending)
{
	struct pending_event *event;

	while ((event = pending_events_expired(pending, 0, true)))
		pending_event_free(event);
}
