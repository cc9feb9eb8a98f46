/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the memory of this process. An untrusted file can decompress to a hundred thousand times
 * its size, which without a limit would starve all other programs on the machine.
 */
#ifndef WAFFLE_UTIL_MEMORY_LIMIT_H
#define WAFFLE_UTIL_MEMORY_LIMIT_H

#include <stdint.h>

/* Half of the machine's memory, in bytes. */
uint64_t memory_limit_default(void);
/* Makes allocations beyond this limit fail. Has no effect if there is a lower limit already, or if
 * the process already uses more (sanitizers reserve terabytes of addresses). */
void memory_limit_set(uint64_t bytes);
/* The limit in bytes; 0: none was set. */
uint64_t memory_limit_get(void);

#endif
