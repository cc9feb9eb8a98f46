/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's profiler plugin (docs/gpu.md). NCCL opens this library when NCCL_PROFILER_PLUGIN names it,
 * and looks up ncclProfiler_v1 to _v6. While nobody records, the mask of events that NCCL reads at
 * each of its groups is 0: then NCCL calls nothing.
 *
 * Only the thread of control.c calls these functions.
 */
#ifndef WAFFLE_USDT_GPU_NCCL_H
#define WAFFLE_USDT_GPU_NCCL_H

#include <stdbool.h>

#include "waffle_named.h"

/* The names that are armed when somebody records NCCL's events. Returns their number. */
unsigned nccl_watch(waffle_name_t *const **names);
#define NCCL_NAMES_MAX 16

/*
 * Sets the mask in NCCL, and writes what is complete. `wanted`: somebody records. If not, writes
 * everything that is left. Returns whether it wants to be called again within 100 ms.
 */
bool nccl_follow(bool wanted);

/* In the child of a fork(), in which another thread of the parent may have had the locks. */
void nccl_fork_child(void);

#endif
