/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the libraries that a program will load at its start, by the rules of the dynamic loaders of
 * glibc and musl (ld.so(8)). The loader itself is never run, since it belongs to the program, which
 * is untrusted. A library that is found but not loaded costs nothing; one that is not found is
 * armed when it is mapped.
 */
#ifndef WAFFLE_TARGET_NEEDED_H
#define WAFFLE_TARGET_NEEDED_H

#include <stdbool.h>
#include <sys/types.h>

/* A library, open for reading during the call, and its path as the process sees it. `ours`: that
 * path leads to the same file for us. */
typedef void (*needed_each_fn)(int fd, const char *path, bool ours, void *arg);

/* Calls `each` with the loader and every library. Does nothing if the program is static, or if
 * anything fails. */
void needed_each(pid_t pid, needed_each_fn each, void *arg);
/* The same for a program, open as fd, that the process is about to execute with that environment.
 */
void needed_each_exec(pid_t pid, int fd, char *const *environment, needed_each_fn each, void *arg);
/* The same for a program that does not run yet and that we are about to run. */
void needed_each_of(const char *program, char *const *environment, needed_each_fn each, void *arg);

#endif
