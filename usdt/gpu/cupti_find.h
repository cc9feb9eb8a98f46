/* SPDX-License-Identifier: Apache-2.0 */
/* Which file of CUPTI a process uses or may use. */
#ifndef WAFFLE_USDT_GPU_CUPTI_FIND_H
#define WAFFLE_USDT_GPU_CUPTI_FIND_H

#include <stdbool.h>

/*
 * A handle for dlsym(), which stays valid: of the CUPTI that the process has, or of one that is
 * loaded. That is the one that belongs to the CUDA that the process has loaded: beside its
 * libcudart or in the folder of NVIDIA's wheel beside that, and then what the loader finds. NULL:
 * there is none, and `reason` (CUPTI_REASON bytes) says where it was looked for.
 */
void *cupti_find(char *reason);

/* Whether the process has loaded CUDA's driver. */
bool cuda_is_loaded(void);

#endif
