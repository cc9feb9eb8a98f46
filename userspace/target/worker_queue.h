/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to the worker for arming that nobody waits for: a file may be made so that parsing it
 * takes a minute, and the drain has no such time. A thread sends one request after the other and
 * keeps the answers.
 *
 *	worker_ask() ─▶ an answer within worker_queue_wait_until():  that answer
 *	             ─▶ none yet: -EAGAIN; worker_queue_fd() is readable when there is one, and
 *	                the same request, made again, gets it
 *
 * Without an open queue, worker_ask() waits as worker_call() does. One thread opens, asks and
 *closes.
 */
#ifndef WAFFLE_TARGET_WORKER_QUEUE_H
#define WAFFLE_TARGET_WORKER_QUEUE_H

#include "target/worker.h"

int worker_queue_open(struct error *err);
/* Gives up what is not parsed yet, which worker_notices() then tells of. */
void worker_queue_close(void);

/* Readable when there are answers to requests that returned -EAGAIN. */
int worker_queue_fd(void);
/* Whether there were any since the last call. */
bool worker_queue_answered(void);

/* worker_ask() waits for an answer until then, of the monotonic clock. Returns what it was. */
uint64_t worker_queue_wait_until(uint64_t ns);

/* What is asked for now is not missed if it is given up. Returns what it was. */
bool worker_queue_quiet(bool quiet);

/* As worker_call(). The same request is one with the same bytes and the same, unchanged file. */
int worker_ask(enum worker_op op, const struct wire_out *request, int fd, const char *name,
	       struct wire_out *reply, struct error *err);

/* Nobody will ask again about this file. */
void worker_queue_forget(int fd);

#endif
