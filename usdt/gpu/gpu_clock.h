/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's clock and CLOCK_MONOTONIC. CUPTI converts times of the GPU into those of a function that
 * a process may register once; without one it uses CLOCK_REALTIME. Where nobody has registered a
 * function, ours returns CLOCK_MONOTONIC. Where another tool has, its clock may be anything, so the
 * times are converted by pairs of both clocks.
 */
#ifndef WAFFLE_USDT_GPU_GPU_CLOCK_H
#define WAFFLE_USDT_GPU_GPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "usdt/gpu/cupti.h"

/* Looks at the clock, and registers ours where that is safe. Call it after the subscription and
 * before any kind of record is enabled: CUPTI spoils a record if the clock changes later. Returns a
 * CUptiResult. */
int gpu_clock_begin(const struct cupti *cupti);
/* Takes a pair, if pairs are needed. Call it before the records of a flush are read. */
void gpu_clock_pair(const struct cupti *cupti);
/* A time of CUPTI in CLOCK_MONOTONIC. 0 stays 0. */
uint64_t gpu_clock_ns(uint64_t own);
/* Half of the time that the best reading of a pair took, of the last pair. */
uint64_t gpu_clock_error_ns(void);

#endif
