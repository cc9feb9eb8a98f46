// SPDX-License-Identifier: Apache-2.0
/* The state of a thread, for libwaffle.so and libwaffle.a. libwaffle-gpu has usdt/gpu/thread_own.c.
 */
#ifndef WAFFLE_THREAD_EXTERN_
#define WAFFLE_THREAD_EXTERN_ /* this file defines it */
#endif
#include "waffle/context.h"

/* In the part of a thread's storage that exists from its start, so that access allocates nothing.
 */
static __thread struct waffle_thread_ own __attribute__((tls_model("initial-exec")));

struct waffle_thread_ *waffle_thread_own_(void)
{
	return &own;
}
