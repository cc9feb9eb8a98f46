/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the libraries that a program will load at its start, by the rules of the dynamic loaders of
 * glibc and musl (ld.so(8)), and libwaffle-gpu where its environment names it (injection.h). We
 * never run the loader itself, since it belongs to the untrusted program. A library that is found
 * but not loaded does no harm. One that is missed is armed when it is mapped.
 */
#ifndef WAFFLE_TARGET_LOADER_NEEDED_H
#define WAFFLE_TARGET_LOADER_NEEDED_H

#include <stdbool.h>
#include <sys/types.h>

/* Receives a library that is open for reading during the call, and its path as the process sees it.
 * `ours`: the path leads to the same file for us. */
typedef void (*needed_each_fn)(int fd, const char *path, bool ours, void *arg);

/* Calls `each` with the loader and every library. Does nothing if the program is static, or on any
 * failure. */
void needed_each(pid_t pid, needed_each_fn each, void *arg);
/* Calls `each` with libwaffle-gpu if the environment of the process names it, and perhaps with the
 * loader. */
void needed_injected(pid_t pid, needed_each_fn each, void *arg);
/* The same for a program, open as `fd`, that the process is about to execute with that
 * environment. */
void needed_each_exec(pid_t pid, int fd, char *const *environment, needed_each_fn each, void *arg);
/* The same for a program that we are about to run. */
void needed_each_of(const char *program, char *const *environment, needed_each_fn each, void *arg);

#endif
