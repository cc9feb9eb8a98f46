/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asynchronous requests to the worker for arming. A file may be crafted so that parsing it takes a
 * minute, and the drain must not wait that long. A thread sends one request after the other and
 * keeps the replies.
 *
 *	worker_ask() ─▶ a reply before worker_queue_wait_until():  returns it
 *	             ─▶ none yet: -EAGAIN; worker_queue_fd() is readable when there is one, and
 *	                the same request, made again, returns it
 *
 * Without an open queue, worker_ask() waits as worker_call() does. Only one thread may open the
 * queue, make requests and close it.
 */
#ifndef WAFFLE_TARGET_WORKER_WORKER_QUEUE_H
#define WAFFLE_TARGET_WORKER_WORKER_QUEUE_H

#include "target/worker/worker.h"

/* Starts the thread that sends requests. Does nothing, and returns 0, if there are no workers or
 * the queue is open already. */
int worker_queue_open(struct error *err);
/* Gives up all files that are not parsed yet. worker_notices() then reports them. */
void worker_queue_close(void);

/* Readable when there are replies to requests that returned -EAGAIN. */
int worker_queue_fd(void);
/* Whether there were any replies since the last call. */
bool worker_queue_answered(void);

/* Sets until when worker_ask() waits for a reply (CLOCK_MONOTONIC). Returns the previous value. */
uint64_t worker_queue_wait_until(uint64_t ns);

/* If set, files requested from now on are not reported when they are given up. Returns the previous
 * value. */
bool worker_queue_quiet(bool quiet);

/* As worker_call(). Two requests are the same if their bytes and the unchanged file are the
 * same. */
int worker_ask(enum worker_op op, const struct wire_out *request, int fd, const char *name,
	       struct wire_out *reply, struct error *err);

/* Declares that nobody will request this file again. */
void worker_queue_forget(int fd);

#endif
