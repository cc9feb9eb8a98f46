/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the structures of function pointers that NVTX has in the objects of this process
 * (nvtx_abi.h). No symbol names them, but they have pointers to themselves at known places.
 */
#ifndef WAFFLE_USDT_GPU_NVTX_FIND_H
#define WAFFLE_USDT_GPU_NVTX_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "usdt/gpu/nvtx_abi.h"

#define NVTX_FOUND_MAX 512

/* Whether the structure at this address in a process would have these bytes (NVTX_GLOBALS_BYTES).
 */
bool nvtx_globals_match(const void *bytes, uint64_t address);

/* The structures of all objects, in the order of their addresses. */
struct nvtx_found {
	uint64_t at[NVTX_FOUND_MAX];
	unsigned count;
	unsigned long long adds, subs; /* objects that had been added and removed before */
};

/*
 * Searches all objects. It reads their data by a system call that fails where memory is gone, so
 * the program may unload objects meanwhile and waits for nothing. Returns 0, or a negative errno if
 * this process may not read its own memory that way.
 */
int nvtx_find(struct nvtx_found *found);
/* Whether objects were added or removed since. */
bool nvtx_find_is_old(const struct nvtx_found *found);

/* Calls a function for each structure that is still mapped. No object is removed meanwhile, and
 * the program can't load any: the function must be short. */
void nvtx_found_each(const struct nvtx_found *found, void (*each)(char *globals, void *arg),
		     void *arg);

#endif
