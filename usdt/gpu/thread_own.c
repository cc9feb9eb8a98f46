// SPDX-License-Identifier: Apache-2.0
/*
 * The state of a thread, for libwaffle-gpu. This library is opened late, in programs that often
 * have other libraries with thread-local storage, one of them perhaps libwaffle.so. glibc keeps
 * 1664 bytes of each thread for the storage of all of these that must exist from the thread's
 * start, and rejects a library that finds no room. So only pointers are there.
 */
#ifndef WAFFLE_THREAD_EXTERN_
#define WAFFLE_THREAD_EXTERN_ /* this file defines it */
#endif
#include "waffle/context.h"

#include <stddef.h>

#include "usdt/gpu/per_thread.h"

struct own {
	struct per_thread memory;
	struct waffle_thread_ thread;
};

static struct per_thread_list all;
static __thread struct per_thread *own __attribute__((tls_model("initial-exec")));

static __attribute__((noinline, cold)) struct waffle_thread_ *own_open(void)
{
	/* When memory is exhausted, the threads that get none share this. Their rings have no
	 * memory either, so nearly nothing of them is recorded. */
	static struct waffle_thread_ shared;
	struct own *opened = (struct own *)per_thread_open(&all, &own, sizeof(*opened));

	return opened ? &opened->thread : &shared;
}

struct waffle_thread_ *waffle_thread_own_(void)
{
	return __builtin_expect(own != NULL, 1) ? &((struct own *)own)->thread : own_open();
}
