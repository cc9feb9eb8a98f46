/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA's driver, opened only for `replay --on-gpu`. Its functions are declared here: the tree has
 * nothing of NVIDIA. Handles are pointers, and every result but 0 is an error (CUDA Driver API,
 * docs.nvidia.com/cuda/cuda-driver-api).
 */
#ifndef WAFFLE_ANALYZE_GPU_REPLAY_CUDA_INTERNAL_H
#define WAFFLE_ANALYZE_GPU_REPLAY_CUDA_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"

struct replay_cuda {
	int (*init)(unsigned flags);
	int (*device_get)(int *device, int ordinal);
	int (*device_get_name)(char *name, int len, int device);
	int (*context_retain)(void **context, int device);
	int (*context_release)(int device);
	int (*context_set)(void *context);
	int (*context_synchronize)(void);
	int (*module_load)(void **module, const void *image);
	int (*module_function)(void **function, void *module, const char *name);
	int (*stream_create)(void **stream, unsigned flags);
	int (*stream_destroy)(void *stream);
	int (*stream_wait_event)(void *stream, void *event, unsigned flags);
	int (*event_create)(void **event, unsigned flags);
	int (*event_destroy)(void *event);
	int (*event_record)(void *event, void *stream);
	int (*event_synchronize)(void *event);
	int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
		      void *stream, void **params, void **extra);
	int (*error_name)(int error, const char **name);
	void *library, *context, *spin;
	int device;
	bool retained;
	bool simulated; /* the driver is the stand-in of docs/simulation.md */
	char name[256]; /* of the GPU */
	/* What a kernel takes on its stream beyond the time that it spins. */
	uint64_t overhead_ns;
};

/* Opens the driver and GPU 0, and measures overhead_ns. -ENODEV or another negative errno with a
 * message. replay_cuda_close() is needed in any case. */
int replay_cuda_open(struct replay_cuda *cuda, struct error *err);
void replay_cuda_close(struct replay_cuda *cuda);

/* Makes the GPU's context that of the calling thread. Returns a result of CUDA. */
int replay_cuda_enter(const struct replay_cuda *cuda);
/* Launches a kernel of one thread that spins. Returns a result of CUDA. */
int replay_cuda_spin(const struct replay_cuda *cuda, void *stream, uint64_t ns);
/* The name of an error. */
const char *replay_cuda_error(const struct replay_cuda *cuda, int error);

/* CLOCK_MONOTONIC. */
uint64_t replay_now_ns(void);

#endif
