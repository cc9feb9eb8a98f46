/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is inside execve(2): the new program's arguments and environment are still in its
 * old memory. */
#ifndef WAFFLE_TARGET_EXECVE_H
#define WAFFLE_TARGET_EXECVE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the main thread of a process is in execve() or execveat(). If another thread calls it,
 * that thread takes over the main thread's number, but is another task for the kernel. */
bool execve_is_main(pid_t pid);

/*
 * The environment variables of the next program that decide which libraries it loads (LD_…, and
 * those with the folders of an interpreter's packages), as a list for execve(). The caller frees
 * both parts. Outside of such a call they are those of the present program. Empty if the process
 * has ended, or its exec gave it rights (image.h). NULL: no memory.
 */
char **execve_environment(pid_t pid, char **text);

#endif
