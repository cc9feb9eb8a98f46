/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a capture, written by a process of its own, `waffle-writer`. On a network or FUSE
 * file system that does not answer, a write waits in a state that not even SIGKILL ends. With this
 * process only its writer waits: the tracer still disarms, hears Ctrl-C and ends.
 *
 *	tracer: requests ──→ queue ──→ socket ──→ waffle-writer ──→ file
 *	                     answers ←── socket ←──
 *
 * Only file_process_open() and file_process_settle() wait for the file system. The process dies
 *with the tracer.
 */
#ifndef WAFFLE_STORE_FILE_PROCESS_H
#define WAFFLE_STORE_FILE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct file_process;

enum file_request {
	FILE_WRITE,   /* whole, or else not at all: the file is cut where this began */
	FILE_PUBLISH, /* the file gets its name: util/output.h */
	FILE_COMMIT,  /* the last request: the file is closed and has its name */
};

struct file_state {
	size_t queued;       /* bytes that the socket has not taken yet */
	unsigned unanswered; /* requests */
	uint64_t moved_ns;   /* when anything was taken or answered last; CLOCK_MONOTONIC */
	uint64_t kept;       /* bytes that are in the file */
	int code;            /* errno of the first request that failed; 0: none */
	char message[1024];  /* of that one, if it was to open the file; else empty */
};

/* Whether a path is one that only the tracer itself can open, as "-" and /dev/fd/3 are. */
bool file_process_can(const char *path);
/* Starts the process, and opens the file as output_open() does. `stop`: a descriptor that is
 * readable when nobody wants to wait for that any more (-EINTR); -1: none. */
int file_process_open(struct file_process **process, const char *path, int stop, struct error *err);
/* Waits until all requests are answered. -EINTR: until `stop` was readable. */
int file_process_settle(struct file_process *process, const char *path, int stop,
			struct error *err);
/* Ends the process, whatever it does. An unpublished file is removed if it still can be. */
void file_process_close(struct file_process *process);

/* Queues a request. False: out of memory. */
bool file_process_send(struct file_process *process, enum file_request request, const void *data,
		       size_t bytes);
/* Moves what can be moved without waiting. The result is valid until the next call. */
const struct file_state *file_process_look(struct file_process *process);
/* Waits until something can be moved, `stop` is readable, or so many ms have passed. */
void file_process_wait(struct file_process *process, int stop, int ms);

#endif
