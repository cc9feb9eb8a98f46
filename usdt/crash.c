// SPDX-License-Identifier: Apache-2.0
#include "usdt/crash.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usdt/machine.h"

static struct crash_row {
	int signo;
	bool fault; /* a program's own handler is called after the flush */
	bool watched;
	struct sigaction before;
} rows[] = {
	{.signo = SIGSEGV, .fault = true},
	{.signo = SIGBUS, .fault = true},
	{.signo = SIGILL, .fault = true},
	{.signo = SIGFPE, .fault = true},
	{.signo = SIGABRT, .fault = true},
	{.signo = SIGSYS, .fault = true},
	{.signo = SIGTERM},
	{.signo = SIGINT},
	{.signo = SIGHUP},
	{.signo = SIGQUIT},
	{.signo = SIGALRM},
	{.signo = SIGUSR1},
	{.signo = SIGUSR2},
	{.signo = SIGPIPE},
	{.signo = SIGXCPU},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

static struct crash_actions crash_actions;

static bool is_function(const struct sigaction *action)
{
	return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN;
}

static void handler(int signo, siginfo_t *info, void *context)
{
	struct crash_row *row = rows;
	int code = errno;

	if (signo == SIGSEGV || signo == SIGBUS)
		machine_catch();
	while (row < rows + ROWS && row->signo != signo)
		row++;
	if (row == rows + ROWS)
		return;
	crash_actions.flush();
	if (row->fault)
		crash_actions.tell(signo, context);
	errno = code;
	if (is_function(&row->before)) {
		if (row->before.sa_flags & SA_SIGINFO)
			row->before.sa_sigaction(signo, info, context);
		else
			row->before.sa_handler(signo);
		return;
	}
	/* The signal stays blocked until this handler returns. A fault would come again by itself,
	 * but not one that was sent. */
	sigaction(signo, &row->before, NULL);
	if (row->before.sa_handler == SIG_DFL)
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signo);
	errno = code;
}

static void row_watch(struct crash_row *row)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	if (sigaction(row->signo, NULL, &row->before) ||
	    (!row->fault && row->before.sa_handler != SIG_DFL))
		return;
	/* A handler of the program runs as it asked for. */
	if (is_function(&row->before)) {
		action.sa_mask = row->before.sa_mask;
		action.sa_flags |= row->before.sa_flags & (SA_NODEFER | SA_RESTART | SA_NOCLDSTOP);
	}
	row->watched = !sigaction(row->signo, &action, NULL);
}

static void row_unwatch(struct crash_row *row)
{
	struct sigaction now;

	if (!sigaction(row->signo, NULL, &now) && now.sa_flags & SA_SIGINFO &&
	    now.sa_sigaction == handler)
		sigaction(row->signo, &row->before, NULL);
	row->watched = false;
}

void crash_watch(enum crash_signals signals, const struct crash_actions *actions)
{
	crash_actions = *actions;
	for (struct crash_row *row = rows; row < rows + ROWS; row++) {
		bool wanted = signals == CRASH_ALL || (signals == CRASH_FAULTS && row->fault);

		if (wanted && !row->watched)
			row_watch(row);
		else if (!wanted && row->watched)
			row_unwatch(row);
	}
}
