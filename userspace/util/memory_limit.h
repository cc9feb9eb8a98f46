/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the memory of this process. An untrusted file can decompress to a hundred thousand times
 * its size; without a limit all other programs of the machine would suffer.
 */
#ifndef WAFFLE_UTIL_MEMORY_LIMIT_H
#define WAFFLE_UTIL_MEMORY_LIMIT_H

#include <stdint.h>

/* Half of the machine's memory. */
uint64_t memory_limit_default(void);
/* Makes allocations fail beyond so many bytes. Does nothing if there is a lower limit already, or
 * if the process uses more already (sanitizers reserve terabytes of addresses). */
void memory_limit_set(uint64_t bytes);
/* Bytes; 0: none was set. */
uint64_t memory_limit_get(void);

#endif
