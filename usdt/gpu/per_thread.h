/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a thread that it gets when it first needs it, and that another thread gets after its
 * end. All functions are async-signal-safe, and leave errno as it was.
 *
 *	static struct per_thread_list all;
 *	static __thread struct per_thread *own __attribute__((tls_model("initial-exec")));
 *
 *	struct thing *thing = (struct thing *)(own ?: per_thread_open(&all, &own, sizeof(*thing)));
 */
#ifndef WAFFLE_USDT_GPU_PER_THREAD_H
#define WAFFLE_USDT_GPU_PER_THREAD_H

#include <stddef.h>
#include <stdint.h>

/* The first member of what a thread has. */
struct per_thread {
	struct per_thread *next; /* links the memory of all threads; never changes */
	uint64_t owner;          /* pid and tid. After a fork() the pid is that of the parent */
};

/* Begins as zero. */
struct per_thread_list {
	struct per_thread *first;
	uint32_t count;
	uint32_t reclaim_from;
};

/* Sets *own, and returns it. What follows the struct is zero. NULL: out of memory. */
struct per_thread *per_thread_open(struct per_thread_list *list, struct per_thread **own,
				   size_t bytes);
/* The first one; all others follow. */
struct per_thread *per_thread_first(const struct per_thread_list *list);

#endif
