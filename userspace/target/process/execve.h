/* SPDX-License-Identifier: Apache-2.0 */
/* Inspects a process that is inside execve(2). The new program's arguments and environment are
 * still in the old program's memory. */
#ifndef WAFFLE_TARGET_PROCESS_EXECVE_H
#define WAFFLE_TARGET_PROCESS_EXECVE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the main thread of a process is in execve() or execveat(). A call by another thread is
 * not found: that thread takes over the main thread's id, but is a different task for the
 * kernel. */
bool execve_is_main(pid_t pid);

/*
 * The environment variables of the next program that decide which libraries it loads: LD_…, those
 * of injection.h, and those with the package directories of an interpreter. The list is suitable
 * for execve(); the caller frees both parts. Outside of execve() they are those of the current
 * program. Empty if the process has ended or gained privileges by its exec (image.h). NULL: out of
 * memory.
 */
char **execve_environment(pid_t pid, char **text);

#endif
