/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Issues a recorded schedule again on a GPU. Each operation becomes a kernel that spins for the
 * recorded time. Each thread of the host becomes a thread that makes its launches and waits at the
 * recorded distances, and events order the streams.
 */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_DEVICE_H
#define WAFFLE_ANALYZE_GPU_REPLAY_DEVICE_H

#include "analyze/gpu/replay_build.h"
#include "util/error.h"

struct replay_device_result {
	char name[256]; /* of the GPU */
	bool simulated;
	uint64_t operations;  /* that were issued */
	uint64_t ns;          /* from the first launch until all was done */
	uint64_t overhead_ns; /* of a spinning kernel, which was subtracted */
};

/* `selected` is as in struct replay_change. A negative errno with a message: there is no GPU, the
 * schedule is of several GPUs or has too many threads or streams, or CUDA failed. */
int replay_device_run(const struct replay_build *build, const bool *selected,
		      struct replay_device_result *result, struct error *err);

#endif
