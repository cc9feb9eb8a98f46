/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that end the program. While it records, a handler flushes the file first, and then does
 * what would have happened without it. In full mode, the handler of faults also tells where the
 * program was. Signals that the program handles or ignores when they are first watched are left
 * alone, except for faults, whose handler is called afterwards.
 */
#ifndef WAFFLE_USDT_RECORD_CRASH_H
#define WAFFLE_USDT_RECORD_CRASH_H

enum crash_signals {
	CRASH_NONE,
	CRASH_FAULTS,
	CRASH_ALL, /* also those that end a program that has no handler for them */
};

/* What the handlers call, so both have to be async-signal-safe. */
struct crash_actions {
	void (*flush)(void);
	/* Of faults: the context is the ucontext_t. */
	void (*tell)(int signo, const void *context);
};

/* Installs the handlers of these signals. Of the others it restores what was before, unless the
 * program has installed handlers of its own since. Async-signal-safe, and any thread may call it,
 * always with the same actions. */
void crash_watch(enum crash_signals signals, const struct crash_actions *actions);
/* The next fault for which the program has a handler may delay that one again. */
void crash_rest_end(void);
/* In the child of a fork(). */
void crash_fork_child(void);

#endif
