/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the program's threads have all ended. A libc ends the process with its last thread, which
 * is one of libwaffle's if main() has left by pthread_exit().
 */
#ifndef WAFFLE_USDT_RECORD_OWN_THREADS_H
#define WAFFLE_USDT_RECORD_OWN_THREADS_H

#include <stdbool.h>
#include <stdint.h>

struct own_threads {
	uint64_t looked_ns;
};

/* False without /proc, and if it was called less than 100 ms ago. Only for libwaffle's threads. */
bool own_threads_are_all(struct own_threads *own);

#endif
