/* SPDX-License-Identifier: Apache-2.0 */
/* The libraries of a program that sees other files than we do. */
#ifndef WAFFLE_TARGET_NEEDED_ELSEWHERE_H
#define WAFFLE_TARGET_NEEDED_ELSEWHERE_H

#include "target/needed.h"

/* Calls `each` with every library that a process will load at its start; nothing of it is run.
 * `path` leads us to the file as long as the call takes, `shown` is where the process sees it. */
void needed_elsewhere(pid_t pid, char **environment, needed_each_fn each, void *arg);

#endif
