// SPDX-License-Identifier: Apache-2.0
#include "util/signal_names.h"

#include <stddef.h>

/* include/uapi/asm-generic/signal.h of the kernel. */
static const char *const names[] = {
	NULL,        "SIGHUP",  "SIGINT",    "SIGQUIT", "SIGILL",   "SIGTRAP", "SIGABRT", "SIGBUS",
	"SIGFPE",    "SIGKILL", "SIGUSR1",   "SIGSEGV", "SIGUSR2",  "SIGPIPE", "SIGALRM", "SIGTERM",
	"SIGSTKFLT", "SIGCHLD", "SIGCONT",   "SIGSTOP", "SIGTSTP",  "SIGTTIN", "SIGTTOU", "SIGURG",
	"SIGXCPU",   "SIGXFSZ", "SIGVTALRM", "SIGPROF", "SIGWINCH", "SIGIO",   "SIGPWR",  "SIGSYS",
};

const char *signal_name(uint32_t signo)
{
	return signo < sizeof(names) / sizeof(names[0]) ? names[signo] : NULL;
}
