/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers are processes that parse untrusted files (target/sandbox.h). Such a file may exploit an
 * error in a parser, and waffle-bpf has all privileges; a worker has none. It gets an open file
 * with a request, and its reply is trusted as little as the file.
 *
 *	waffle-bpf ── request, descriptor ──▶ worker        (a socket each)
 *	           ◀── open "a name" ──────────             as often as a library asks for a file
 *	           ─── descriptor ────────────▶
 *	           ◀── reply ─────────────────
 *
 * A helper forks the workers. It is itself forked before this process holds anything that a worker
 * should not have, and drops the same privileges. If a worker dies, the helper reports that and
 * forks another one: the request fails, and nothing else does. When too many workers have died of
 * the files of one owner, no more files of that owner are parsed.
 *
 * Handlers run in a worker, where worker_is_there() is false. Without workers, as in unit tests,
 * callers parse by themselves.
 */
#ifndef WAFFLE_TARGET_WORKER_H
#define WAFFLE_TARGET_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"
#include "util/wire.h"

enum worker_op {
	WORKER_OBJECT, /* target/object_remote.c */
	WORKER_FRAMES, /* target/symbols_remote.c, and the next three */
	WORKER_RETURN,
	WORKER_VARIABLE,
	WORKER_MODULE,
	WORKER_UNWIND,  /* target/cfi_remote.c */
	WORKER_PROGRAM, /* target/program_facts.c */
	WORKER_CALLS,   /* call/find_remote.c */
	WORKER_HANDLES, /* capture/handles.c */
	WORKER_NAME,    /* target/demangle.c */
	WORKER_OPS
};

/* Each use has a worker of its own, so that arming, for which events wait, never queues behind
 * names. */
enum worker_use { WORKER_FOR_ARMING, WORKER_FOR_NAMES, WORKER_USES };

/* A worker that opens this and a build-id gets the debug file from a server, if there is one. */
#define WORKER_DEBUGINFOD "debuginfod:"

/* Answers a request, whose file is open at `fd` (-1: none) during the call. A negative errno
 * becomes the reply. */
typedef int (*worker_handler)(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

struct worker_table {
	struct {
		worker_handler serve;
		void *arg;
	} handlers[WORKER_OPS];
};

/*
 * Forks the helpers, unless there are some. This process must still have one thread, no open files
 * and nothing secret.
 */
int worker_start(const struct worker_table *table, struct error *err);
/* Ends the helpers and workers, which also end with this process. */
void worker_stop(void);
bool worker_is_there(void);

/*
 * Sends a request and waits for the reply, which is to be freed. `name`: of the file, for messages.
 * Returns what the handler did; -EPROTO, with a message: the worker ended, or its answer makes no
 * sense. May be called from several threads.
 */
int worker_call(enum worker_use use, enum worker_op op, const struct wire_out *request, int fd,
		const char *name, struct wire_out *reply, struct error *err);
/* Adds a notice of a file that the capture ended without. */
void worker_given_up(const char *name);
/* The reply of a worker that could not be decoded: -EPROTO, with a message. */
int worker_reply_bad(const char *name, struct error *err);

/* Calls `each` with the messages about workers that ended, each line once. */
void worker_notices(void (*each)(const char *line, void *arg), void *arg);

/* For tests: the pid of a helper; 0: none. */
int worker_helper(enum worker_use use);
/* Requests for arming are given up when `fd` (-1: none) is readable: a malicious file may take
 * minutes to parse. */
void worker_stop_at(int fd);
/* While set, requests of this use are given up. */
void worker_give_up(enum worker_use use, bool give_up);
/* For tests: how many seconds to wait for an answer. */
void worker_patience(unsigned seconds);

#endif
