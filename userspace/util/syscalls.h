/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the system calls that threads wait in. */
#ifndef WAFFLE_UTIL_SYSCALLS_H
#define WAFFLE_UTIL_SYSCALLS_H

/*
 * The name of a system call of the machine (uname) that a capture is from. NULL: not in the table,
 * or this program runs on another kind of machine, where numbers mean something else.
 */
const char *syscall_name(const char *machine, int number);

#endif
