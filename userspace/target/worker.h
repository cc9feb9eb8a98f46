/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes that parse files of others for us (target/sandbox.h). Such a file may be made to
 * exploit an error in a parser, and we have all privileges; a worker has none. It is sent an open
 * file with a request, and answers with bytes, which we trust as little as the file.
 *
 *	waffle-bpf ── request, descriptor ──▶ worker        (a socket each)
 *	           ◀── open "a name" ──────────             as often as a library asks for a file
 *	           ─── descriptor ────────────▶
 *	           ◀── reply ─────────────────
 *
 * Workers are made by a helper, which is forked before there is anything in this process that they
 * should not have, and is as little privileged as they are. If a worker dies, the helper says so
 * and makes another: the request has an error, and nothing else happens.
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

/* Of each there is one, so that what is asked for while events wait is not behind the rest. */
enum worker_use { WORKER_FOR_ARMING, WORKER_FOR_NAMES, WORKER_USES };

/* A worker that opens this and a build-id gets the debug file from a server, if there is one. */
#define WORKER_DEBUGINFOD "debuginfod:"

/* Answers a request, whose file is open at `fd` (-1: none) for so long. Negative errno: an error
 * that is the reply. */
typedef int (*worker_handler)(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

struct worker_table {
	struct {
		worker_handler serve;
		void *arg;
	} handlers[WORKER_OPS];
};

/*
 * Makes the helpers, unless there are some, from this process as it is now: with one thread, and
 * without anything that is secret or open.
 */
int worker_start(const struct worker_table *table, struct error *err);
/* Ends them; also at the end of this process. */
void worker_stop(void);
bool worker_is_there(void);

/*
 * Sends a request and waits for the reply, which is to be freed. `name`: of the file, for messages.
 * Returns what the handler did; -EPROTO, with a message: the worker ended, or its answer makes no
 * sense. May be called from several threads.
 */
int worker_call(enum worker_use use, enum worker_op op, const struct wire_out *request, int fd,
		const char *name, struct wire_out *reply, struct error *err);
/* The reply of a worker that could not be decoded: -EPROTO, with a message. */
int worker_reply_bad(const char *name, struct error *err);

/* Calls `each` with what is to be said of workers that ended, each line once. */
void worker_notices(void (*each)(const char *line, void *arg), void *arg);

/* For tests: the pid of a helper; 0: none. */
int worker_helper(enum worker_use use);
/* What is asked for arming is given up soon after `fd` (-1: none) has become readable, and after a
 * time of the monotonic clock (0: none): a file may be made so that parsing it takes minutes. */
void worker_stop_at(int fd, uint64_t ns);
/* What is asked of such a worker is given up soon, from now on until it is not to hurry. */
void worker_hurry(enum worker_use use, bool hurry);
/* For tests: how long an answer is waited for, in seconds. */
void worker_patience(unsigned seconds);

#endif
