/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory this process may take. A file that anybody may have made can hold more than the
 * machine has, by a hundred thousand to one; without a limit all other programs pay for that.
 */
#ifndef WAFFLE_UTIL_MEMORY_LIMIT_H
#define WAFFLE_UTIL_MEMORY_LIMIT_H

#include <stdint.h>

/* Half of the machine's memory. */
uint64_t memory_limit_default(void);
/* Makes allocations fail beyond so many bytes. Does nothing if there is a lower limit already, or
 * if the process has more (with sanitizers it has terabytes, of addresses). */
void memory_limit_set(uint64_t bytes);
/* Bytes; 0: none was set. */
uint64_t memory_limit_get(void);

#endif
