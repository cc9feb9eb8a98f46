// SPDX-License-Identifier: Apache-2.0
/* Reads the values of chosen spans of a compact model, from the file that the model was made of. */
#include <stdlib.h>
#include <string.h>

#include "model/build.h"
#include "util/memory.h"
#include "util/search.h"

/* A window of the file ends where the next wanted span begins later than this part of the capture.
 * So a few spans cost a few blocks of the file, and many cost one reading of it. */
#define GAP_PART 1024

struct wanted_values {
	uint64_t ts;
	uint32_t span;
};

static int wanted_compare(const void *left, const void *right)
{
	const struct wanted_values *a = left, *b = right;

	if (a->ts != b->ts)
		return a->ts < b->ts ? -1 : 1;
	return a->span < b->span ? -1 : a->span > b->span;
}

/* Takes the values of a hit, if it is the begin of a wanted span. */
static void take_hit(struct model *model, const struct wanted_values *wanted, size_t count,
		     const struct waffle_rec_hit *hit)
{
	struct waffle_frame frame;

	if (hit->frame_bytes < sizeof(frame))
		return;
	memcpy(&frame, hit + 1, sizeof(frame));
	for (size_t at = lower_bound(count, i, wanted[i].ts < hit->rec.ts);
	     at < count && wanted[at].ts == hit->rec.ts; at++) {
		struct model_span *span = &model->spans.data[wanted[at].span];

		if (span->id == frame.id && span->site == hit->site && span->frame == MODEL_NONE)
			span->frame = frames_add(model, (const char *)(hit + 1) + sizeof(frame),
						 (uint32_t)(hit->frame_bytes - sizeof(frame)), 0);
	}
}

static int read_window(struct model *model, const struct wanted_values *wanted, size_t count,
		       struct error *err)
{
	struct store_reader *reader = model->reader;
	const struct waffle_rec *rec;
	int result = store_reader_seek(
		reader, (struct store_window){wanted[0].ts, wanted[count - 1].ts}, err);

	while (!result && (result = store_reader_next(reader, &rec, err)) > 0) {
		if (rec->kind == WAFFLE_REC_HIT)
			take_hit(model, wanted, count, (const struct waffle_rec_hit *)rec);
		result = 0;
	}
	return result;
}

int model_values_load(struct model *model, const uint32_t *spans, size_t count, struct error *err)
{
	uint64_t gap = (model->end_ts - model->start_ts) / GAP_PART;
	VEC(struct wanted_values) wanted = {0};
	int result = 0;

	for (size_t i = 0; i < count; i++) {
		const struct model_span *span = &model->spans.data[spans[i]];

		if (span->frame == MODEL_NONE && model_site(model, span->site)->key_count)
			vec_add(&wanted, (struct wanted_values){span->start_ts, spans[i]});
	}
	if (wanted.len)
		qsort(wanted.data, wanted.len, sizeof(*wanted.data), wanted_compare);
	for (size_t from = 0, to; from < wanted.len && !result; from = to) {
		to = from + 1;
		while (to < wanted.len && wanted.data[to].ts - wanted.data[to - 1].ts <= gap)
			to++;
		result = read_window(model, &wanted.data[from], to - from, err);
	}
	vec_free(&wanted);
	return result;
}
