/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX ranges, which are followed while somebody records. Only the thread of control.c calls these
 * functions. */
#ifndef WAFFLE_USDT_GPU_NVTX_H
#define WAFFLE_USDT_GPU_NVTX_H

#include <stdbool.h>

#include "waffle_named.h"

/* A name that is armed whenever somebody records ranges. */
waffle_name_t *nvtx_watch(void) __attribute__((weak));
void nvtx_arm(void) __attribute__((weak));
void nvtx_disarm(void) __attribute__((weak));
/* Returns whether it has to be called again, also after nvtx_disarm(). */
bool nvtx_poll(void) __attribute__((weak));

#endif
