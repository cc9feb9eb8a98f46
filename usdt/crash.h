/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that end the program. While it records, a handler flushes the file first, and then does
 * what would have happened without it. Signals that the program handles or ignores when recording
 * begins are left alone, except for those of crashes, whose handler is called afterwards.
 */
#ifndef WAFFLE_USDT_CRASH_H
#define WAFFLE_USDT_CRASH_H

/* Installs the handlers. `flush` is called in them, so it has to be async-signal-safe. */
void crash_watch(void (*flush)(void));
/* Restores what was before, unless the program has installed handlers of its own since. */
void crash_unwatch(void);

#endif
