/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of libwaffle in the traced program. They get none of the program's signals, and a stack
 * that does not depend on the program: it may have made the default of its threads small, and musl
 * gives 128 KiB.
 */
#ifndef WAFFLE_UTIL_OWN_THREAD_H
#define WAFFLE_UTIL_OWN_THREAD_H

#include <pthread.h>

/* Returns 0 or an errno, as pthread_create() does. `thread` NULL: it is detached. */
int own_thread_start(pthread_t *thread, void *(*main)(void *), void *arg);

#endif
