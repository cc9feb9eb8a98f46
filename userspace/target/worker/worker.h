/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers are processes that parse untrusted files (target/worker/sandbox.h). A file may exploit an
 * error in a parser. waffle-bpf has all privileges, so it leaves the parsing to a worker, which has
 * none. A worker receives an open file with each request. Its reply is trusted as little as the
 * file.
 *
 *	waffle-bpf ── request, descriptor ──▶ worker        (a socket each)
 *	           ◀── open "a name" ──────────             as often as a library opens a file
 *	           ─── descriptor ────────────▶
 *	           ◀── reply ─────────────────
 *
 * A helper forks the workers. It is forked before this process holds anything that a worker must
 * not have, and it drops the same privileges. If a worker dies, the helper reports that and forks
 * another one: only the request fails. After too many deaths on files of one owner, no more files
 * of that owner are parsed.
 *
 * Handlers run in a worker, where worker_is_there() is false. Without workers, as in unit tests,
 * callers parse in their own process.
 */
#ifndef WAFFLE_TARGET_WORKER_WORKER_H
#define WAFFLE_TARGET_WORKER_WORKER_H

#include <stdbool.h>
#include <stdint.h>

#include "util/error.h"
#include "util/wire.h"

enum worker_op {
	WORKER_OBJECT, /* target/elf/object_remote.c */
	WORKER_FRAMES, /* target/elf/symbols_remote.c, and the next four */
	WORKER_BEFORE,
	WORKER_VARIABLE,
	WORKER_MODULE,
	WORKER_GO,
	WORKER_UNWIND,  /* target/dwarf/cfi_remote.c */
	WORKER_PROGRAM, /* target/process/program_facts.c */
	WORKER_CALLS,   /* probe/find/find_remote.c */
	WORKER_HANDLES, /* capture/enrich/handles.c */
	WORKER_NAME,    /* target/elf/demangle.c */
	WORKER_OPS
};

/* Each use has a worker of its own, so that arming, which delays events, never queues behind
 * names. */
enum worker_use { WORKER_FOR_ARMING, WORKER_FOR_NAMES, WORKER_USES };

/* A worker that opens this prefix with a build-id gets the debug file from a debuginfod server, if
 * one is set. */
#define WORKER_DEBUGINFOD "debuginfod:"

/* Handles a request. Its file is open at `fd` (-1: none) during the call. A negative errno becomes
 * the reply. */
typedef int (*worker_handler)(struct wire_in *request, int fd, struct wire_out *reply, void *arg);

struct worker_table {
	struct {
		worker_handler serve;
		void *arg;
	} handlers[WORKER_OPS];
};

/*
 * Forks the helpers, unless they exist. This process must still be single-threaded, without open
 * files and secrets.
 */
int worker_start(const struct worker_table *table, struct error *err);
/* Ends the helpers and workers. They also end with this process. */
void worker_stop(void);
bool worker_is_there(void);
/* CPU time of all workers so far, also of those that have ended. In a kernel without
 * CONFIG_PROC_CHILDREN, which lists a process's children, the time of a worker is counted only when
 * it has ended. */
uint64_t worker_cpu_ns(void);

/*
 * Sends a request and waits for the reply, which the caller frees. `name` is the file's name for
 * messages. Returns the handler's result, or -EPROTO with a message: the worker exited, or its
 * reply is malformed. Thread-safe.
 */
int worker_call(enum worker_use use, enum worker_op op, const struct wire_out *request, int fd,
		const char *name, struct wire_out *reply, struct error *err);
/* What a worker asked for during a request, besides the request's own file. A worker that a file
 * has taken over may ask without end. */
#define WORKER_OPENS_MAX 64
struct worker_opens {
	/* Names of files that are not there, as wire_put_text() writes them. */
	struct wire_out missing;
	uint32_t count; /* of these, at most WORKER_OPENS_MAX */
	bool other;     /* some other file was opened, or can't be, or too many are missing */
};
/* The same. `opens` is zero at first, and the caller frees its names. */
int worker_call_watched(enum worker_use use, enum worker_op op, const struct wire_out *request,
			int fd, const char *name, struct worker_opens *opens,
			struct wire_out *reply, struct error *err);
/* Whether a file is still missing that a worker asked for. */
bool worker_misses(const char *name);
/* Adds a notice about a file that was not parsed before the capture ended. */
void worker_given_up(const char *name);
/* Reports a reply that could not be decoded: -EPROTO, with a message. */
int worker_reply_bad(const char *name, struct error *err);

/* Calls `each` with the messages about workers that exited. Equal lines occur once. */
void worker_notices(void (*each)(const char *line, void *arg), void *arg);

/* For tests: the pid of a helper; 0: none. */
int worker_helper(enum worker_use use);
/* Gives up requests for arming once `fd` (-1: none) is readable, since a malicious file may take
 * minutes to parse. */
void worker_stop_at(int fd);
/* While set, requests of this use are given up. */
void worker_give_up(enum worker_use use, bool give_up);
/* For tests: sets how many seconds to wait for a reply. */
void worker_patience(unsigned seconds);

#endif
