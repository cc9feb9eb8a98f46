/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries that a program will load at its start. */
#ifndef WAFFLE_TARGET_NEEDED_H
#define WAFFLE_TARGET_NEEDED_H

#include <sys/types.h>

/* `path` leads us to the file as long as the call takes, `shown` is where the process sees it. */
typedef void (*needed_each_fn)(const char *path, const char *shown, void *arg);

/*
 * Asks the program's own dynamic loader (ld.so --list, which maps the libraries but runs nothing of
 * them) with the process's environment and rights, and calls `each` with every path. For a
 * process with another mount namespace or root nothing is run (needed_elsewhere.h). Nothing happens
 * if its program is static, or if anything fails.
 */
void needed_each(pid_t pid, needed_each_fn each, void *arg);
/* The same for a program that does not run yet. */
void needed_each_of(const char *program, char **environment, needed_each_fn each, void *arg);

#endif
