/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack of libwaffle's own, for work in threads of the program whose stacks may be small: 16 KiB
 * is what the system allows. To open a file of a recording, to parse the sites of a library and to
 * load libcurl takes several times as much.
 *
 * The work stays in the thread that asks for it, since that may have locks which the work takes
 * again: dlopen() calls libwaffle with the loader's lock.
 */
#ifndef WAFFLE_USDT_RECORD_STACK_H
#define WAFFLE_USDT_RECORD_STACK_H

/*
 * Calls work(arg) on a stack of its own. Meanwhile the thread can't be cancelled, and its signals
 * wait: a handler of a garbage collector would take this stack for the thread's. So the work has to
 * be brief. It may read the clock and start threads that do, also where ticks_look() found that
 * forbidden. Without memory for a stack it runs on that of the thread.
 */
void stack_run(void (*work)(void *arg), void *arg);

#endif
