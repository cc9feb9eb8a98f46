/* SPDX-License-Identifier: Apache-2.0 */
/* Names of system calls on the machine that a capture was made on. */
#ifndef WAFFLE_UTIL_SYSCALL_NAMES_H
#define WAFFLE_UTIL_SYSCALL_NAMES_H

#include <stdbool.h>

/* The name of a system call, from libseccomp. `machine` is uname's ("x86_64", "aarch64"). NULL:
 * unknown. It lives as long as this process. To be called by one thread only. */
const char *syscall_name(const char *machine, int number);
/* Whether this is the name of a system call of epoll(7), such as epoll_pwait. False for NULL. */
bool syscall_name_is_epoll(const char *name);

#endif
