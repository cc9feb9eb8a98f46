/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds each exec of a traced process until its program is armed, so that its first call is seen.
 *
 * fanotify(7) asks a listener before an exec opens a file (FAN_OPEN_EXEC_PERM). The thread waits in
 * the kernel meanwhile: it is not stopped, so neither its parent nor a debugger sees anything. The
 * kernel asks for the program, for the interpreter of a script, and for the dynamic loader.
 *
 * The kernel asks about all processes that use a file system, so the listener must never be late.
 * It is a process of its own, which does nothing else:
 *
 *	exec of a stranger  -> allowed at once
 *	exec of a target    -> sent to the tracer; allowed on its answer, after GATE_HOLD_MS at most
 *
 * Whatever happens to either process, all execs go on: the kernel allows them when the listener's
 * descriptor is closed. A timer of the kernel kills a gate that somebody stopped. A gate whose
 * tracer has gone ends.
 */
#ifndef WAFFLE_KERNEL_GATE_H
#define WAFFLE_KERNEL_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/error.h"

#define GATE_HOLD_MS 100 /* the most that a process is held within a second */

struct gate;

struct gate_options {
	int targets;          /* the map of targets, by tgid */
	const uint64_t *bits; /* see target_maybe() in bpf/shared.h; WAFFLE_TGID_WORDS words */
	const pid_t *pids;    /* the gate watches the file systems that they and we see */
	size_t pid_count;
};

/* Starts the gate. Fails with a message if CAP_SYS_ADMIN or the kernel's support is missing. */
int gate_open(struct gate **gate, const struct gate_options *options, struct error *err);
/* Ends the gate: all held execs go on. */
void gate_close(struct gate *gate);

/* Why a gate can't be started here; NULL: it can. */
const char *gate_missing(void);

/* Watches those file systems that a process sees and that were mounted since the last call. Returns
 * their number. */
unsigned gate_mark(struct gate *gate, pid_t pid);

/* Readable when gate_next() has an event. */
int gate_fd(const struct gate *gate);

enum gate_event_kind {
	GATE_NOTHING,
	GATE_MARKED, /* internal: a file system is watched, if `id` is not 0 */
	GATE_EXEC,   /* a process waits in an exec of the file `fd`, which the caller closes */
	GATE_LATE,   /* that exec went on before it was answered */
	/* An exec of the file `fd`, which the caller closes, was not held: the gate already held
	 * too many execs, or this process for too long. */
	GATE_PASSED,
	GATE_ENDED, /* the gate has ended: execs are not held from now on */
};

struct gate_event {
	enum gate_event_kind kind;
	pid_t pid;
	uint64_t id;       /* of GATE_EXEC and GATE_LATE: never 0 */
	uint64_t begin_ts; /* of GATE_EXEC and GATE_PASSED: when the gate learnt of the exec */
	int fd;            /* of GATE_EXEC and GATE_PASSED: the file; otherwise -1 */
};

/* The next event, or GATE_NOTHING. Does not wait. */
struct gate_event gate_next(struct gate *gate);
/* Lets an exec go on. */
void gate_answer(struct gate *gate, uint64_t id);

#endif
