/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The name that Python's module threading gave to a new thread. Many threads live for milliseconds,
 * so userspace would read most names too late (target/process/python_threads.h). The thread's own
 * memory is read where the scheduler's programs see it. threading.Thread.start() waits until the
 * new thread says that it runs. So nearly every new thread wakes another one as it begins, and
 * has its name then.
 */
#ifndef WAFFLE_THREAD_NAME_BPF_H
#define WAFFLE_THREAD_NAME_BPF_H

#include "shared.h"

/* How often it is tried. Until it has run, the thread waits for the interpreter's lock, for 5 ms at
 * a time. */
#define THREAD_NAME_TRIES 32
/* Older threads are not tried when they wake others, so that these wake-ups cost nothing more. */
#define THREAD_NAME_NEW_NS 1000000000ull

enum thread_name_result {
	THREAD_NAME_LATER, /* it runs no Python yet, or has not got its name */
	THREAD_NAME_TOLD,
	THREAD_NAME_NONE, /* module threading did not make it, or the process is not Python */
};

/* Whether new threads of a process may have names. Global, as the next one, so that the verifier
 * checks it once. */
int thread_name_wanted(__u32 tgid);
/* Records the name of the current thread. Returns enum thread_name_result. */
int thread_name_emit(__u32 tgid);

/* Tries it for the current thread. A thread may also name itself when it begins its work. So one
 * that had a name when it woke another is read once more, when it first blocks. */
static __always_inline void thread_name_try(struct thread_state *state, struct task_struct *task)
{
	int result;

	state->name_tries--;
	result = thread_name_emit(task->tgid);
	if (result == THREAD_NAME_NONE)
		state->name_tries = 0;
	else if (result == THREAD_NAME_TOLD && state->name_tries)
		state->name_tries = 1;
}

#endif
