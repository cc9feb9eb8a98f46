// SPDX-License-Identifier: Apache-2.0
/*
 * chained FILE: installs a handler for SIGSEGV while it records, which calls the handler before it,
 * as many crash reporters do. Then it records again, and dies.
 */
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include <waffle.h>
#include <waffle_trace.h>

static struct sigaction before;
static int calls;

static void handler(int signo, siginfo_t *info, void *context)
{
	if (++calls > 10)
		_exit(9);
	if (before.sa_flags & SA_SIGINFO)
		before.sa_sigaction(signo, info, context);
}

int main(int argc, char **argv)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};

	if (argc < 2 || waffle_trace_start(argv[1], NULL))
		return 2;
	sigaction(SIGSEGV, &action, &before);
	waffle_trace_stop();
	if (waffle_trace_start(argv[1], NULL))
		return 3;
	WAFFLE_EVENT("before the fault");
	*(volatile int *)NULL = 1;
	return 0;
}
