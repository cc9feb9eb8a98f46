/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX of this process, as spans and events: ranges and marks of all objects that use NVTX,
 * version 3, also if they were loaded and initialised before this library. docs/gpu.md says what
 * becomes of them.
 *
 *	   dormant ── nvtx_arm ──→ armed: pointers of all objects are ours
 *	      ↑                      │ nvtx_disarm
 *	      └── no range is open ── draining: only those that end ranges are
 *	          or 2 s are over
 *
 * Dormant, the pointers are NULL, as without a tool, so a call costs a test. The one exception are
 * functions that register domains and strings in a process that was started with
 * NVTX_INJECTION64_PATH: their names would be unknown later.
 */
#ifndef WAFFLE_USDT_GPU_NVTX_H
#define WAFFLE_USDT_GPU_NVTX_H

#include <stdbool.h>

#include "waffle_named.h"

/* A name that is armed if ranges of NVTX are. */
waffle_name_t *nvtx_watch(void);

/* All three are for the thread that arms and disarms the library (control.h). */
void nvtx_arm(void);
void nvtx_disarm(void);
/* Finds what the program has loaded or initialised since, and ends draining. Returns whether it
 * wants to be called again in 100 ms: always when armed. */
bool nvtx_poll(void);

#endif
