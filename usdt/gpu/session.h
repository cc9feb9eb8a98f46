/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session of CUPTI: from the time when somebody begins to record until nobody does. All functions
 * are for the one thread of control.c. Outside of a session CUPTI is as if waffle was not there.
 */
#ifndef WAFFLE_USDT_GPU_SESSION_H
#define WAFFLE_USDT_GPU_SESSION_H

#include <stdbool.h>

/* Begins a session. False: it is not possible, as a `session` event and one line say. If another
 * tool has CUPTI, session_poll() tries again. `early`: the process has not used CUDA yet. */
bool session_begin(bool early);
/* Takes the records that are complete, and writes them. */
void session_poll(void);
/* Takes all records and gives CUPTI back. `exits`: the process ends, so what only frees memory is
 * left out. */
void session_end(bool exits);
/* In the child of a fork(): forgets what the parent had. False: that had a session, or was about to
 * have one, so this process can't use CUDA. */
bool session_leave(void);

#endif
