/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminals, and the process at the other end of a pseudo-terminal: sshd, tmux, script. It holds a
 * file of /dev/ptmx, of which /proc/PID/fdinfo shows the number of the terminal (tty-index, since
 * Linux 4.7).
 */
#ifndef WAFFLE_TARGET_PROCESS_TERMINAL_H
#define WAFFLE_TARGET_PROCESS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TERMINAL_TEXT "terminal"
/* Begins the text of a terminal of which the process at the other end is known. */
#define TERMINAL_OF TERMINAL_TEXT " of process "

/* A character device that a process has open. */
struct terminal_file {
	const char *name; /* "/dev/pts/3" */
	unsigned major, minor;
};

/* Writes "terminal of process 4711, sshd", or "terminal" if nobody is known to be at the other end.
 * Only ancestors of the process are searched, since whoever makes a terminal starts the program in
 * it, and only those with the same mounts: a container's terminals have numbers of their own, so
 * its shim is not found. False: the device is no terminal. */
bool terminal_describe(char *text, size_t size, pid_t pid, const struct terminal_file *file);
/* The process in such a text; 0: none. */
uint32_t terminal_process(const char *text);

#endif
