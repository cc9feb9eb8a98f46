/* SPDX-License-Identifier: Apache-2.0 */
/* A filter stream, and what it has delivered. Include it after cmocka. */
#ifndef WAFFLE_TEST_FILTER_STREAM_RIG_H
#define WAFFLE_TEST_FILTER_STREAM_RIG_H

#include <string.h>

#include "filter/filter.h"
#include "filter/stream/stream.h"
#include "util/vec.h"
#include "waffle/abi.h"

struct delivered {
	uint16_t kind;
	uint32_t site; /* of a hit */
	uint64_t id, ts;
	uint32_t bytes; /* of its frame */
	uint64_t frame; /* a sum of the frame's bytes */
};

struct rig {
	struct filter_expr *filter;
	struct filter_stream *stream;
	VEC(struct delivered) out;
};

static inline uint64_t frame_sum(const struct waffle_rec_hit *hit)
{
	const unsigned char *bytes = (const void *)(hit + 1);
	uint64_t sum = 0;

	for (uint32_t i = 0; i < hit->frame_bytes; i++)
		sum = sum * 31 + bytes[i];
	return sum;
}

static inline void rig_take(struct waffle_rec *rec, void *arg)
{
	const struct waffle_rec_hit *hit = (const void *)rec;
	struct delivered one = {.kind = rec->kind, .ts = rec->ts};
	struct rig *rig = arg;

	if (rec->kind == WAFFLE_REC_HIT) {
		one.site = hit->site;
		if (hit->frame_bytes >= sizeof(one.id))
			memcpy(&one.id, hit + 1, sizeof(one.id));
		one.bytes = hit->frame_bytes;
		one.frame = frame_sum(hit);
	} else {
		one.id = ((const struct waffle_rec_span_end *)rec)->span_id;
	}
	assert_true(vec_push(&rig->out, one));
}

static inline void rig_open(struct rig *rig, const char *expression, bool keep_children)
{
	struct filter_stream_options options = {
		.keep_children = keep_children, .deliver = rig_take, .arg = rig};
	struct error err = ERROR_INIT;

	*rig = (struct rig){0};
	if (expression && filter_parse(&rig->filter, "test", expression, &err))
		fail_msg("%s\n%s", expression, err.message);
	options.filter = rig->filter;
	assert_int_equal(filter_stream_open(&rig->stream, &options, &err), 0);
}

static inline void rig_close(struct rig *rig)
{
	filter_stream_free(rig->stream);
	if (rig->filter)
		filter_free(rig->filter);
	vec_free(&rig->out);
}

#endif
