// SPDX-License-Identifier: Apache-2.0
/* Spans that fit on no thread's track. They are on separate tracks, which spans of one process and
 * name share. */
#include <stdlib.h>

#include "export/perfetto/perfetto_internal.h"
#include "export/perfetto/track_pools.h"

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

void perfetto_strays(struct perfetto *p)
{
	struct track_pools pools = {0};
	struct sequence sequence;

	if (p->strays.len == 0)
		return;
	/* Spans are numbered by their start times, so this assigns tracks in the order of time. */
	qsort(p->strays.data, p->strays.len, sizeof(*p->strays.data), by_number);
	sequence = sequence_begin(&p->encoder, 0, false);
	for (size_t i = 0; i < p->strays.len; i++) {
		const struct model_span *span = &p->model->spans.data[p->strays.data[i]];
		uint64_t uuid = track_pools_take(
			&pools, &p->encoder, tracks_process_uuid(p, span->thread),
			perfetto_names(p, span->site)->name, span->start_ts, span->end_ts);

		span_begin_put(p, &sequence, p->strays.data[i], uuid);
		slice_end_put(&p->encoder, &sequence, span->end_ts, uuid);
	}
	track_pools_free(&pools);
}
