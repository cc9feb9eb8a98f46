/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program may use its GPU for less time than a tracer needs to find the library in it. So the
 * library waits for the tracer, but never for long.
 */
#ifndef WAFFLE_USDT_GPU_TRACER_WAIT_H
#define WAFFLE_USDT_GPU_TRACER_WAIT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether a tracer reads the rings of this process, and so gets what this library records. */
bool tracer_reads_rings(void);
/*
 * Call it before the first name is made: names that are made while a tracer is there are armed. If
 * `run --gpu` has started this program or a parent of it, and still runs, it arms the library,
 * mostly before this program begins. If it has not done so yet, this function waits for it.
 */
void tracer_wait_armed(void);
/* At the end of the process: waits until the tracer has mapped the rings with the last records, so
 * that they outlive the process. At most until then, in CLOCK_MONOTONIC. */
void tracer_wait_mapped(uint64_t until_ns);

#endif
