/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends of the program that run no destructors: _exit(), _Exit(), quick_exit(), and daemon(), whose
 * parent ends so inside of the libc. Here are functions of these names that write the file first.
 * They are weak, and the program's own come before them. Whoever ends the process by a system call,
 * or has libwaffle opened late, does not come here.
 */
#ifndef WAFFLE_USDT_RECORD_ENDS_H
#define WAFFLE_USDT_RECORD_ENDS_H

/* Calls a function before such an end. It has to be async-signal-safe. */
void ends_watch(void (*flush)(void));

#endif
