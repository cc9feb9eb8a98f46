/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that give work to a GPU, those that wait for it, and those that order the work of its
 * streams. CUPTI calls launches_call() and launches_return() in the program's threads at each of
 * them. These functions record a `launch` or a `wait` event with the number by which the operation
 * refers to its call (the correlation id). For calls that order streams they record the events that
 * docs/gpu.md lists. Only calls of the driver are watched: a call of the runtime makes one of the
 * driver with the same number, and libraries such as NCCL call the driver alone.
 */
#ifndef WAFFLE_USDT_GPU_LAUNCHES_H
#define WAFFLE_USDT_GPU_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "usdt/gpu/cupti.h"

/* Finds the calls to watch in this version of CUPTI. Returns how many there are. */
unsigned launches_find(const struct cupti *cupti);
/* Switches CUPTI's callbacks at these calls on or off. Returns the first error of CUPTI, or 0. */
int launches_watch(const struct cupti *cupti, void *subscriber, bool on);
/* The number of cuDriverGetVersion among the driver's calls; 0: CUPTI has no such call. */
uint32_t launches_trigger(void);

/* A call of the driver begins, or returns. */
void launches_call(uint32_t cbid, const struct cupti_call *call);
void launches_return(uint32_t cbid, const struct cupti_call *call);

/* When the call with this number began (CLOCK_MONOTONIC); 0: it is not known (any more). */
uint64_t launches_time(uint32_t correlation);
/* True: the call with this number was cuEventQuery(), which does not wait. If the event is done,
 * CUPTI reports the call as a wait for it all the same. */
bool launches_is_query(uint32_t correlation);

#endif
