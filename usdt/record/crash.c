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
#include "usdt/ring/ticks.h"

#define HANDLED_NS 1000000000ull

static struct crash_row {
	int signo;
	bool fault; /* a program's own handler is called after the flush */
	bool watched;
	/* The program has installed another handler over ours, which may call ours. */
	bool replaced;
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

static void act(const struct crash_row *row, void *context)
{
	crash_actions.flush();
	if (row->fault)
		crash_actions.tell(row->signo, context);
}

/* Before a handler of the program runs. That one may recover, and some programs do so all the time.
 * So a second passes between two delays. */
static void act_if_due(const struct crash_row *row, void *context)
{
	static uint64_t last_ns;
	uint64_t last = __atomic_load_n(&last_ns, __ATOMIC_RELAXED);

	if (last && ticks_ns() - last < HANDLED_NS)
		return;
	act(row, context);
	/* Behind the flush, which may have waited for a second. */
	__atomic_store_n(&last_ns, ticks_ns(), __ATOMIC_RELAXED);
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

/* Whether the instruction at fault is executed again when the handler returns, and raises the same
 * signal, with the same details for a core dump. */
static bool comes_again(int signo, const siginfo_t *info)
{
	if (signo == SIGBUS)
		return info->si_code >= BUS_ADRALN && info->si_code <= BUS_OBJERR;
	return info->si_code > 0 && (signo == SIGSEGV || signo == SIGILL || signo == SIGFPE);
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
	if (is_function(&row->before)) {
		act_if_due(row, context);
		errno = code;
		handler_call(row, signo, info, context);
		return;
	}
	act(row, context);
	sigaction(signo, &row->before, NULL);
	/* A signal that was sent stays blocked until this handler returns. */
	if (row->before.sa_handler == SIG_DFL && !comes_again(signo, info))
		syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signo);
	errno = code;
}

static void row_watch(struct crash_row *row)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	/* Two handlers that call each other would never end. */
	if (row->replaced)
		return;
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
	else
		row->replaced = true;
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
