/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads a library into a running process, and calls functions of it: `attach --gpu`.
 *
 * A thread of the process does it, which waits in a system call such as poll(). That is as if its
 * program called dlopen() just before it waits, so the thread can't be within the loader or an
 * allocator with their locks. ptrace stops the thread for less than a millisecond:
 *
 *	the thread                      waffle-bpf
 *	waits in poll()
 *	stops            ←───────────── PTRACE_SEIZE, PTRACE_INTERRUPT
 *	                                writes below its stack pointer what it has to return to;
 *	                                sets its registers to a call of dlopen(); blocks its signals
 *	dlopen()         ←───────────── PTRACE_DETACH: from here on it needs nobody
 *	  returns to memccpy(), which restores errno,
 *	  and then to rt_sigreturn(), which restores all registers and the signal mask,
 *	and waits in poll() again       sees by its signal mask that it has done so
 *
 * Whenever waffle-bpf dies, the thread either has done nothing or goes on by itself. Nothing in the
 * process is changed but the stack of the thread below what it uses. Signals of the thread are
 * pending meanwhile. A wait with a relative timeout begins again with the whole timeout.
 */
#ifndef WAFFLE_TARGET_INJECT_INJECT_H
#define WAFFLE_TARGET_INJECT_INJECT_H

#include <sys/types.h>

#include "util/error.h"

struct inject_target {
	const char *library; /* the path of its file */
	const char *start;   /* its function that is called, without arguments */
	const char *thread;  /* name of the thread that this function starts */
};

/*
 * Loads the library and calls its function, unless the process has its thread. Returns 0, or a
 * negative errno with a message. Then the process is as before, except for -EINPROGRESS: a thread
 * of it has not finished within ten seconds, and goes on.
 */
int inject_library(pid_t pid, const struct inject_target *target, struct error *err);

#endif
