/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is reserved when it is first needed. */
#ifndef WAFFLE_USDT_GPU_NVTX_RESERVE_H
#define WAFFLE_USDT_GPU_NVTX_RESERVE_H

#include <stddef.h>

/*
 * Returns the memory at `*place`, and reserves it if there is none: zeroed, of which only touched
 * pages exist, and kept for the life of the process. Threads that come at once get the same.
 * Leaves errno as it is. NULL: there is no memory.
 */
void *nvtx_reserve(void **place, size_t bytes);

#endif
