/* SPDX-License-Identifier: Apache-2.0 */
/* Private to model/gpu: what sites of libwaffle-gpu and their values mean. */
#ifndef WAFFLE_MODEL_GPU_GPU_TIMELINE_VALUES_INTERNAL_H
#define WAFFLE_MODEL_GPU_GPU_TIMELINE_VALUES_INTERNAL_H

#include "model/gpu/gpu_op_kind.h"
#include "model/model.h"

/* Which of a site's values mean what. The order is that of the names in gpu_timeline_values.c. */
enum timeline_key {
	TIMELINE_OP,
	TIMELINE_DEVICE,
	TIMELINE_CONTEXT,
	TIMELINE_STREAM,
	TIMELINE_CORRELATION,
	TIMELINE_COPY,
	TIMELINE_BYTES,
	TIMELINE_GRAPH,
	TIMELINE_GRAPH_NODE,
	TIMELINE_CLAMPED,
	TIMELINE_STATE,
	TIMELINE_CUPTI,
	TIMELINE_CLOCK_ERROR,
	TIMELINE_DROPPED,
	TIMELINE_ZERO_TIMES,
	TIMELINE_UNKNOWN,
	TIMELINE_HANDLE,
	TIMELINE_KEY_COUNT
};

enum timeline_site_kind {
	TIMELINE_SITE_NONE,
	TIMELINE_SITE_OP,
	TIMELINE_SITE_LAUNCH,
	TIMELINE_SITE_CAPTURE,
	TIMELINE_SITE_WAIT,
	TIMELINE_SITE_SESSION,
};

struct timeline_site {
	uint8_t kind; /* enum timeline_site_kind */
	/* Key index -> enum timeline_key; TIMELINE_KEY_COUNT: none. */
	uint8_t keys[WAFFLE_KEYS_MAX];
};

struct timeline_sites {
	uint32_t count;
	struct timeline_site site[]; /* by site index; the last one is for unknown sites */
};

struct timeline_values {
	uint64_t number[TIMELINE_KEY_COUNT];
	const char *text[TIMELINE_KEY_COUNT]; /* not terminated */
	uint32_t text_len[TIMELINE_KEY_COUNT];
	uint32_t has; /* bits by enum timeline_key */
};

static inline bool timeline_has(const struct timeline_values *values, enum timeline_key key)
{
	return values->has >> key & 1;
}

/* NULL: libwaffle-gpu recorded nothing. */
struct timeline_sites *timeline_sites_find(const struct model *model);
void timeline_sites_free(struct timeline_sites *sites);
void timeline_values_read(const struct timeline_site *site, struct value_walk walk,
			  struct timeline_values *values);

static inline const struct timeline_site *timeline_site(const struct timeline_sites *sites,
							uint32_t site)
{
	return &sites->site[site < sites->count ? site : sites->count];
}

#endif
