/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries that a program will load at its start. */
#ifndef WAFFLE_TARGET_NEEDED_H
#define WAFFLE_TARGET_NEEDED_H

#include <sys/types.h>

/*
 * Asks the program's own dynamic loader (ld.so --list, which maps the libraries but runs nothing of
 * them) with the process's environment and rights, and calls `each` with every path. The process
 * must have our mount namespace and root; nothing happens if it has not, if its program is static,
 * or if anything fails.
 */
void needed_each(pid_t pid, void (*each)(const char *path, void *arg), void *arg);
/* The same for a program that does not run yet. */
void needed_each_of(const char *program, char **environment,
		    void (*each)(const char *path, void *arg), void *arg);

#endif
