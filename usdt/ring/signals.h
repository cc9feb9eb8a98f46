/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks the signals of a thread of the program while the thread holds a lock of libwaffle. A
 * signal handler may call fork(), and the handlers of pthread_atfork() take all these locks.
 * Without the block, the thread would wait for a lock that it holds itself.
 */
#ifndef WAFFLE_USDT_RING_SIGNALS_H
#define WAFFLE_USDT_RING_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Blocks all signals, and returns the mask for signals_restore(). A system call is needed, since
 * pthread_sigmask() leaves out the signals that the libc keeps for itself, such as that of
 * pthread_cancel(). Does not change errno. */
static inline uint64_t signals_block(void)
{
	uint64_t all = UINT64_MAX, before = 0;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &before, sizeof(all));
	return before;
}

static inline void signals_restore(uint64_t before)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

/* Blocks the signals and takes a lock. Returns the mask for signals_unlock(). */
static inline uint64_t signals_lock(pthread_mutex_t *lock)
{
	uint64_t before = signals_block();

	pthread_mutex_lock(lock);
	return before;
}

static inline void signals_unlock(pthread_mutex_t *lock, uint64_t before)
{
	pthread_mutex_unlock(lock);
	signals_restore(before);
}

#endif
