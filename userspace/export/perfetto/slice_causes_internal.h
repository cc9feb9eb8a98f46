/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the longest spans and waits of a capture took long (analyze/why/why_longest.h). For the slice
 * of a span it is a short text, "75.0 % disk-read: loader-2 (4720) in load, /data/shard-7 (ext4);
 * 16.0 % running": the causes of at least a twentieth of the time, at most three.
 */
#ifndef WAFFLE_EXPORT_PERFETTO_SLICE_CAUSES_INTERNAL_H
#define WAFFLE_EXPORT_PERFETTO_SLICE_CAUSES_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "analyze/why/why_types.h"
#include "model/model.h"

struct gpu_timeline;
struct slice_causes;
struct stack_names;

enum wait_text {
	WAIT_CAUSE,
	WAIT_GRADE,
	WAIT_CULPRIT,
	WAIT_OBJECT,
	WAIT_CAUSES, /* if there is more than one */
	WAIT_SYSCALL,
	WAIT_WOKEN_BY,
	WAIT_TEXT_COUNT
};

/* A time in which a thread was blocked. */
struct wait_slice {
	uint64_t from_ts, to_ts;
	uint32_t thread;
	enum why_cause cause; /* of most of the time */
	/* Numbers of texts; 0: none. The culprit and object are those of the cause. */
	uint32_t texts[WAIT_TEXT_COUNT];
};

/* NULL: the scheduler was not recorded. `timeline` was made from the model. */
struct slice_causes *slice_causes_open(const struct model *model, struct stack_names *names,
				       const struct gpu_timeline *timeline);
void slice_causes_close(struct slice_causes *causes);

/* Number of a span's text. 0: its thread just ran, or it is short or not whole. */
uint32_t slice_causes_number(const struct slice_causes *causes, uint32_t span);
/* The waits, by thread and then by time. *left_out: the number of those that are missing, since
 * they are too much work to explain. */
const struct wait_slice *slice_causes_waits(const struct slice_causes *causes, size_t *count,
					    uint64_t *left_out);
const char *slice_causes_text(const struct slice_causes *causes, uint32_t number, size_t *len);

#endif
