/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one thread of libwaffle-gpu. While nobody records it sleeps without a timer in a futex: a
 * tracer, or libwaffle in this process, wakes it when it arms a name of GPU operations.
 *
 *	dormant ──(a name is armed)──→ armed: every 100 ms takes what is complete
 *	   ↑                              │
 *	   └──(nobody records any more)───┘
 *
 * Nobody records any more when no name is armed, or when the gate of libwaffle is closed, as the
 * kernel does it when a tracer was killed.
 */
#ifndef WAFFLE_USDT_GPU_CONTROL_H
#define WAFFLE_USDT_GPU_CONTROL_H

/*
 * Starts the thread, once in a process and once more in a child of it that calls it. If somebody
 * records already, this begins the session before it returns, so that the first work for a GPU is
 * recorded. It fails with one line, and the program goes on without GPU times. Thread-safe: a
 * second thread does not wait for the first one.
 */
void gpu_control_start(void);

#endif
