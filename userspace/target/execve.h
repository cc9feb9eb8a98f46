/* SPDX-License-Identifier: Apache-2.0 */
/* A process that is in execve(2), on its way to another program: what it hands over is still in its
 * old memory. */
#ifndef WAFFLE_TARGET_EXECVE_H
#define WAFFLE_TARGET_EXECVE_H

#include <stdbool.h>
#include <sys/types.h>

/* Whether the main thread of a process is in execve() or execveat(). Another thread takes over its
 * number, and what the kernel keeps of it is another task then. */
bool execve_is_main(pid_t pid);

/*
 * The variables that decide about libraries (for the loader, LD_…, and for where an interpreter has
 * its packages) in the environment of the next program, as execve() wants a
 * list; both parts are to be freed. If it is in no such call, that of the present program. Empty if
 * it is gone, or was given rights by its exec (image.h). NULL: no memory.
 */
char **execve_environment(pid_t pid, char **text);

#endif
