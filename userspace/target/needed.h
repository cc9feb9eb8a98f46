/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libraries that a program will load at its start. They are looked for as the dynamic loaders
 * of glibc and musl do it (ld.so(8)): the loader itself is never run, as it belongs to the program,
 * which may be anybody's. What is found and not loaded costs nothing; what is not found is armed
 * when it is mapped.
 */
#ifndef WAFFLE_TARGET_NEEDED_H
#define WAFFLE_TARGET_NEEDED_H

#include <stdbool.h>
#include <sys/types.h>

/* A library, open for reading as long as the call takes, and its path as the process sees it.
 * `ours`: that path leads us to the same file. */
typedef void (*needed_each_fn)(int fd, const char *path, bool ours, void *arg);

/* Calls `each` with the loader and every library. Nothing
 * happens if the program is static, or if anything fails. */
void needed_each(pid_t pid, needed_each_fn each, void *arg);
/* The same for a program, open as fd, that the process is about to execute with that environment.
 */
void needed_each_exec(pid_t pid, int fd, char *const *environment, needed_each_fn each, void *arg);
/* The same for a program that does not run yet and that we would run. */
void needed_each_of(const char *program, char *const *environment, needed_each_fn each, void *arg);

#endif
