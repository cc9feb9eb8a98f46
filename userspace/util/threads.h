/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share work with the one that calls. */
#ifndef WAFFLE_UTIL_THREADS_H
#define WAFFLE_UTIL_THREADS_H

#include <stddef.h>
#include <unistd.h>

/* How many threads to start beside the calling one, at most `most`. One CPU is left to the caller,
 * which has the most to do. */
static inline unsigned threads_beside(size_t most)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t free_cpus = cpus > 1 ? (size_t)cpus - 1 : 0;

	return (unsigned)(most < free_cpus ? most : free_cpus);
}

#endif
