/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes that are not recorded but end long waits of those that are, by whatever they wake them:
 * a futex in shared memory, a semaphore, a queue, a pipe, a socket. What they do meanwhile explains
 * these waits, so they are worth being recorded, too. Once they are, the same finds those for which
 * they wait themselves.
 *
 * A process at the other end of a connection may end waits without a wake-up of its own: if it
 * reads slowly, a timer of TCP tells the writer that there is room. So long waits for a descriptor
 * that interrupts or threads of the kernel end are found as well, and those that go on.
 */
#ifndef WAFFLE_CAPTURE_WAKERS_INTERNAL_H
#define WAFFLE_CAPTURE_WAKERS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/record.h"

struct wakers;

/* A waker counts if the waits that it has ended took a tenth of the time since the capture began
 * together, and this at least. */
#define WAKERS_LEAST_NS 50000000ull
#define WAKERS_PARTS 10
/* One wait says little, unless it is as long as this. */
#define WAKERS_LONG_NS 500000000ull

/* NULL: out of memory. */
struct wakers *wakers_open(void);
void wakers_close(struct wakers *wakers);

/* Since `ts` one more process is recorded. */
void wakers_added(struct wakers *wakers, uint64_t ts);

/* Takes TASK and SWITCH records in order of time, and STATE records of the begin. Ignores all
 * others. Waits count from begin_ts on. If a thread has not left a CPU yet, its wait began when the
 * last process was added. */
void wakers_record(struct wakers *wakers, const struct waffle_rec *rec, uint64_t begin_ts);

/* What ends waits. */
struct waker_key {
	/* Of a process; or if `fd` is not negative, of a recorded thread, whose waits for that
	 * descriptor no process is known to end. */
	pid_t pid;
	int fd;
	bool writes;  /* it waits for room there */
	bool goes_on; /* such a wait has not ended */
};

/* The next one that counts at `now`. It may have ended. False: there is none. */
bool wakers_next(const struct wakers *wakers, uint64_t begin_ts, uint64_t now,
		 struct waker_key *key);
/*
 * Is called for each one that was returned. Whether that process is to be recorded, or the other
 * end of the connection at that descriptor searched. `ino`: of the descriptor's file now; 0: none.
 *
 * A process is returned once. A descriptor is returned again when new waits there count, but the
 * same connection is searched once. The waits that have ended may have been for others with that
 * descriptor, so its connection is not searched before new waits for it count as well.
 */
bool wakers_decide(struct wakers *wakers, const struct waker_key *key, uint64_t ino);

#endif
