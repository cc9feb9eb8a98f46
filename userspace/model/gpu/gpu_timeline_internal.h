/* SPDX-License-Identifier: Apache-2.0 */
/* Private to model/gpu: the steps that build a timeline, in the order in which they run. */
#ifndef WAFFLE_MODEL_GPU_GPU_TIMELINE_INTERNAL_H
#define WAFFLE_MODEL_GPU_GPU_TIMELINE_INTERNAL_H

#include "model/gpu/gpu_timeline.h"

struct model_gpu;

/* The category of all that libwaffle-gpu records. */
#define GPU_CATEGORY "gpu"

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
	TIMELINE_KEY_COUNT
};

enum timeline_site_kind {
	TIMELINE_SITE_NONE,
	TIMELINE_SITE_OP,
	TIMELINE_SITE_LAUNCH,
	TIMELINE_SITE_CAPTURE,
	TIMELINE_SITE_SESSION,
};

struct timeline_site {
	uint8_t kind; /* enum timeline_site_kind */
	/* Key index -> enum timeline_key; TIMELINE_KEY_COUNT: none. */
	uint8_t keys[WAFFLE_KEYS_MAX];
	uint32_t name; /* in timeline.names, if kind is TIMELINE_SITE_OP */
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

/* From here on a process records GPU times. */
struct timeline_arming {
	uint32_t pid;
	uint64_t ts;
};

struct timeline_build {
	struct gpu_timeline *timeline;
	const struct model *model;
	struct timeline_site *sites; /* by site index; the last one is for unknown sites */
	struct keymap names;         /* text -> index in timeline.names */
	/*
	 * CUPTI counts correlation ids anew each time that it is armed in a process. So ids belong
	 * to one arming of a process: these are in order of pid, then time, the first one of a
	 * process with a time of 0.
	 */
	VEC(struct timeline_arming) armings;
	/* Arming and correlation -> launch; TIMELINE_REPEATED: several have it. */
	struct map launch_at;
	struct keymap captured_at; /* process, graph and graph node -> event */
};

#define TIMELINE_REPEATED (MAP_NONE - 1)

/* CUPTI's correlation ids have 32 bits. */
static inline uint64_t timeline_launch_key(uint32_t arming, uint64_t correlation)
{
	return (uint64_t)arming << 32 | (uint32_t)correlation;
}

/* ---- gpu_timeline_values.c ---- */

/* False: libwaffle-gpu recorded nothing. */
bool timeline_sites_find(struct timeline_build *build);
const struct timeline_site *timeline_site(const struct timeline_build *build, uint32_t site);
uint32_t timeline_name(struct timeline_build *build, const char *text, size_t len);
void timeline_values_read(const struct timeline_build *build, uint32_t site, uint32_t frame,
			  struct timeline_values *values);

/* ---- gpu_timeline_launch.c ---- */

/* Loads launches, captures and sessions. */
void timeline_launches_load(struct timeline_build *build);
/* The arming of a process that a time belongs to, in build.armings; MODEL_NONE: the process is not
 * known. */
uint32_t timeline_arming_at(const struct timeline_build *build, uint32_t pid, uint64_t ts);

/* ---- gpu_timeline_ops.c ---- */

/* Loads the operations, gives them their launches, and sorts them into streams and devices. */
void timeline_ops_load(struct timeline_build *build);
/* Finds what each operation followed on its stream. */
void timeline_order_find(struct gpu_timeline *timeline);

/* ---- gpu_timeline_edges.c ---- */

/* Adds the edges between streams, and what synchronisations waited for. */
void timeline_edges_find(struct gpu_timeline *timeline, const struct model_gpu *gpu);

#endif
