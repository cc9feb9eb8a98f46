// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/crash.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usdt/frame/machine.h"

#define SIGNALS 65 /* the highest signal and one more */

static struct crash_row {
	bool watched;
	/* The program has installed another handler over ours, which may call ours. */
	bool replaced;
	struct sigaction before;
} rows[SIGNALS];

static struct {
	enum crash_signals wanted;
	uint32_t changes; /* number of calls of crash_watch() */
	bool busy;        /* a call makes the handlers what is wanted */
	bool rests;       /* a fault that the program may handle was acted on a short time ago */
	struct crash_actions actions;
} crash;

enum crash_kind {
	KIND_NONE,  /* it does not end the program, or can't be caught */
	KIND_END,   /* it ends a program that has no handler for it */
	KIND_FAULT, /* so it does, and a handler that the program has is called after the flush */
};

static enum crash_kind kind_of(int signo)
{
	switch (signo) {
	case SIGSEGV:
	case SIGBUS:
	case SIGILL:
	case SIGFPE:
	case SIGABRT:
	case SIGSYS:
	case SIGTRAP:
		return KIND_FAULT;
	case SIGKILL:
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
	case SIGCONT:
	case SIGCHLD:
	case SIGURG:
	case SIGWINCH:
		return KIND_NONE;
	default: /* those of the libc are rejected by sigaction() */
		return KIND_END;
	}
}

static bool is_function(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static void act(int signo, void *context)
{
	crash.actions.flush();
	if (kind_of(signo) == KIND_FAULT)
		crash.actions.tell(signo, context);
}

/* Before a handler of the program runs. That one may recover, and some programs do so all the time.
 * So there is a rest between two delays, which the collector ends: to read a clock here could fault
 * (PR_SET_TSC). */
static void act_if_due(int signo, void *context)
{
	if (!__atomic_exchange_n(&crash.rests, true, __ATOMIC_RELAXED))
		act(signo, context);
}

void crash_rest_end(void)
{
	__atomic_store_n(&crash.rests, false, __ATOMIC_RELAXED);
}

static void handler_call(struct crash_row *row, int signo, siginfo_t *info, void *context)
{
	struct sigaction before = row->before;

	if (before.sa_flags & (int)SA_RESETHAND)
		row->before = (struct sigaction){.sa_handler = SIG_DFL};
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(signo, info, context);
	else
		before.sa_handler(signo);
}

/* Tells whether the instruction at fault is executed again when the handler returns. It raises the
 * same signal then, with the same details for a core dump. `info` is valid only for faults: a
 * program may call the handler that signal() returned, with the signal's number alone. */
static bool comes_again(int signo, const siginfo_t *info)
{
	if (signo == SIGBUS)
		return info->si_code >= BUS_ADRALN && info->si_code <= BUS_OBJERR;
	return (signo == SIGSEGV || signo == SIGILL || signo == SIGFPE) && info->si_code > 0;
}

static void handler(int signo, siginfo_t *info, void *context)
{
	struct crash_row *row = &rows[signo];
	int code = errno;

	if (signo == SIGSEGV || signo == SIGBUS)
		machine_catch();
	if (is_function(&row->before)) {
		act_if_due(signo, context);
		errno = code;
		handler_call(row, signo, info, context);
		return;
	}
	act(signo, context);
	sigaction(signo, &row->before, NULL);
	/* A signal that was sent stays blocked until this handler returns. */
	if (row->before.sa_handler == SIG_DFL && !comes_again(signo, info))
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signo);
	errno = code;
}

static bool is_ours(const struct sigaction *action)
{
	return action->sa_flags & SA_SIGINFO && action->sa_sigaction == handler;
}

/* Replaces the action that `expected` is, and no other one that another thread has just set. */
static bool action_replace(int signo, const struct sigaction *expected,
			   const struct sigaction *action)
{
	struct sigaction found;

	if (sigaction(signo, action, &found))
		return false;
	if (found.sa_handler == expected->sa_handler)
		return true;
	sigaction(signo, &found, NULL);
	return false;
}

/* Whether the kernel ignores the signal where it would end another program: the first process of
 * a container has to handle what it wants to end it. A handler would interrupt a system call. */
static bool is_ignored(int signo)
{
	return kind_of(signo) == KIND_END && getpid() == 1;
}

static void row_watch(int signo)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct crash_row *row = &rows[signo];

	/* Two handlers that call each other would never end. */
	if (row->replaced || is_ignored(signo))
		return;
	if (sigaction(signo, NULL, &row->before) ||
	    (kind_of(signo) != KIND_FAULT && row->before.sa_handler != SIG_DFL))
		return;
	/* A handler of the program runs as it asked for. */
	if (is_function(&row->before)) {
		action.sa_mask = row->before.sa_mask;
		action.sa_flags = SA_SIGINFO | (row->before.sa_flags & (SA_ONSTACK | SA_NODEFER |
									SA_RESTART | SA_NOCLDSTOP));
	}
	row->watched = action_replace(signo, &row->before, &action);
}

static void row_unwatch(int signo)
{
	struct crash_row *row = &rows[signo];
	struct sigaction now;

	row->replaced = sigaction(signo, NULL, &now) || !is_ours(&now) ||
			!action_replace(signo, &now, &row->before);
	row->watched = false;
}

static void rows_set(enum crash_signals signals)
{
	for (int signo = 1; signo < SIGNALS; signo++) {
		enum crash_kind kind = kind_of(signo);
		bool wanted =
			kind != KIND_NONE &&
			(signals == CRASH_ALL || (signals == CRASH_FAULTS && kind == KIND_FAULT));

		if (wanted && !rows[signo].watched)
			row_watch(signo);
		else if (!wanted && rows[signo].watched)
			row_unwatch(signo);
	}
	machine_guard_by(rows[SIGSEGV].watched || rows[SIGSEGV].replaced ? handler : NULL);
}

/* There is no lock, since a signal handler may come here while its thread is here. A call that
 * finds another one in progress leaves the work to it. */
void crash_watch(enum crash_signals signals, const struct crash_actions *actions)
{
	uint32_t seen;

	crash.actions = *actions;
	crash_rest_end();
	__atomic_store_n(&crash.wanted, signals, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&crash.changes, 1, __ATOMIC_SEQ_CST);
	do {
		if (__atomic_exchange_n(&crash.busy, true, __ATOMIC_SEQ_CST))
			return;
		seen = __atomic_load_n(&crash.changes, __ATOMIC_SEQ_CST);
		rows_set(__atomic_load_n(&crash.wanted, __ATOMIC_SEQ_CST));
		__atomic_store_n(&crash.busy, false, __ATOMIC_SEQ_CST);
	} while (seen != __atomic_load_n(&crash.changes, __ATOMIC_SEQ_CST));
}

/* Its only thread is the one that called fork(). */
void crash_fork_child(void)
{
	crash.busy = false;
}
