/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the file of a capture in a separate process, `waffle-writer`. A write to a network or FUSE
 * file system that has stopped responding blocks in a state that not even SIGKILL ends. With a
 * separate process only the writer blocks: the tracer can still disarm its probes, react to Ctrl-C
 * and exit.
 *
 *	tracer: requests ──→ queue ──→ socket ──→ waffle-writer ──→ file
 *	                     answers ←── socket ←──
 *
 * Only file_process_open() and file_process_settle() wait for the file system. The writer process
 * dies with the tracer.
 */
#ifndef WAFFLE_STORE_FILE_PROCESS_INTERNAL_H
#define WAFFLE_STORE_FILE_PROCESS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/error.h"

struct file_process;

enum file_request {
	FILE_WRITE,   /* appends all bytes, or truncates the file to where it ended before */
	FILE_PUBLISH, /* gives the file its final name: util/output.h */
	FILE_COMMIT,  /* the last request: closes the file, which has its final name then */
};

struct file_state {
	size_t queued;       /* bytes that the socket has not accepted yet */
	unsigned unanswered; /* requests without an answer yet */
	/* CLOCK_MONOTONIC, when the process last accepted or answered anything. */
	uint64_t moved_ns;
	uint64_t kept;      /* bytes in the file */
	bool published;     /* the file has its final name */
	int code;           /* errno of the first request that failed; 0: none */
	bool unnamed;       /* that request was to publish the file */
	char message[1024]; /* of that request if it was the opening; else empty */
};

/* False if only the tracer itself can open the path, such as "-" or /dev/fd/3. */
bool file_process_can(const char *path);
/* Starts the process and opens the file as output_open() does, or output_open_new(). `stop` is a
 * descriptor that becomes readable when the caller no longer wants to wait (-EINTR); -1: none. */
int file_process_open(struct file_process **process, const char *path, bool only_new, int stop,
		      struct error *err);
/* Waits until all requests are answered. Returns -EINTR if `stop` became readable. */
int file_process_settle(struct file_process *process, const char *path, int stop,
			struct error *err);
/* Kills the process and frees the object. Removes an unpublished file where that is still
 * possible. */
void file_process_close(struct file_process *process);

/* Queues a request. False: out of memory. */
bool file_process_send(struct file_process *process, enum file_request request, const void *data,
		       size_t bytes);
/* Sends and receives as much as possible without waiting. The result is valid until the next
 * call. */
const struct file_state *file_process_look(struct file_process *process);
/* Waits until something can be sent or received, `stop` is readable, or `ms` milliseconds have
 * passed. */
void file_process_wait(struct file_process *process, int stop, int ms);

#endif
