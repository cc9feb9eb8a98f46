/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what the GPUs did in two captures: where the sequences of operations first differ, and
 * by how much the times of equal operations do.
 *
 * An operation is compared by its kind, the kernel's name, grid, block, shared memory, bytes,
 * direction of a copy, and the operations of other streams that it waited for. Devices and streams
 * have other numbers in each run, so they are numbered by their first use.
 */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_COMPARE_H
#define WAFFLE_ANALYZE_GPU_REPLAY_COMPARE_H

#include "model/gpu/gpu_timeline.h"

/* The first difference of one stream. */
struct replay_divergence {
	uint32_t stream;   /* by first use, from 0 */
	uint64_t position; /* in the stream, from 1 */
	uint32_t a, b;     /* operations; MODEL_NONE: that stream has no more, or does not exist */
	const char *what;  /* "kernel", "grid", …; "end": one stream is shorter */
};

/* The times of the equal operations of one name. */
struct replay_spread {
	const char *name;
	uint64_t count, a_ns, b_ns; /* sums */
	uint64_t max_diff_ns;       /* of one operation */
};

struct replay_comparison {
	const struct gpu_timeline *a, *b;
	uint32_t streams_a, streams_b;
	uint64_t ops_a, ops_b, equal; /* equal: those before the difference of their stream */
	uint64_t names_a, names_b, names_both; /* names of kernels */
	bool other_program;               /* less than half of the kernels' names are in both */
	uint64_t diverging_streams;       /* how many streams differ */
	struct replay_divergence first;   /* the earliest, if diverging_streams is not 0 */
	VEC(struct replay_spread) spread; /* the largest difference of sums first */
};

struct replay_comparison *replay_compare(const struct gpu_timeline *a,
					 const struct gpu_timeline *b);
void replay_comparison_free(struct replay_comparison *comparison);

#endif
