// SPDX-License-Identifier: Apache-2.0
/* The end of a program that runs out of memory. libwaffle has its own (usdt/record/attempt.h). */
#include <pthread.h>
#include <stdlib.h>

#include "util/memory.h"
#include "util/terminal.h"

/* The innermost guard. Only one thread sets and removes guards. */
static struct memory_guard *guards;

void memory_guard_set(struct memory_guard *guard)
{
	guard->outer = guards;
	guards = guard;
}

void memory_guard_remove(struct memory_guard *guard)
{
	guards = guard->outer;
}

_Noreturn void memory_failed(void)
{
	static pthread_mutex_t failed = PTHREAD_MUTEX_INITIALIZER;
	struct error err = ERROR_INIT;

	pthread_mutex_lock(&failed); /* another thread waits here until the process ends */
	while (guards) {
		struct memory_guard *guard = guards;

		guards = guard->outer;
		guard->call(guard->arg, &err);
	}
	error_set(&err, ENOMEM, "out of memory");
	fflush(stdout);
	terminal_message(stderr, "waffle-bpf: %s", err.message);
	exit(EXIT_FAILURE);
}
