/* SPDX-License-Identifier: Apache-2.0 */
/* The part of a recording that is replayed. */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_SELECT_H
#define WAFFLE_ANALYZE_GPU_REPLAY_SELECT_H

#include "analyze/gpu/replay_build.h"
#include "util/error.h"

struct replay_part {
	uint64_t from_ts, to_ts; /* what starts in [from_ts, to_ts) */
	/* Operations by their number, which counts from 1 in the order of their starts. */
	uint64_t first, last;
	struct replay_part_stream {
		uint64_t device, number;
		bool given, has_device;
	} stream; /* not given: all */
};
#define REPLAY_PART_ALL                                                                            \
	{                                                                                          \
		0, UINT64_MAX, 1, UINT64_MAX,                                                      \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

static inline bool replay_part_is_all(const struct replay_part *part)
{
	return !part->from_ts && part->to_ts == UINT64_MAX && part->first <= 1 &&
	       part->last == UINT64_MAX && !part->stream.given;
}

/* "10-20", "10-", "-20" or "10". -EINVAL with a message: it is no range. */
int replay_part_range(struct replay_part *part, const char *text, struct error *err);

/* "7" or "0:7". -EINVAL with a message: it is no stream. */
int replay_part_stream(struct replay_part *part, const char *text, struct error *err);

/*
 * Sets *selected to an array with an element for each node, which the caller frees, or to NULL for
 * all. Calls of the host are selected if they start in the time of the part: from the first launch
 * of a selected operation to the last end of one. With a stream, none are. -ENOENT with a message:
 * no operation is selected.
 */
int replay_part_select(const struct replay_build *build, const struct replay_part *part,
		       bool **selected, struct error *err);

#endif
