/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process from one exec to the next. An image never reads another program's memory:
 * the kernel binds an open /proc/PID/mem to the address space at the time of the open. After the
 * process has called exec or ended, it reads as empty, even if the pid was reused.
 *
 * An image of a program that gained privileges by its exec (set-user-ID, set-group-ID, file
 * capabilities) cannot be opened. The user who started it must not see its memory.
 */
#ifndef WAFFLE_TARGET_PROCESS_IMAGE_H
#define WAFFLE_TARGET_PROCESS_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct image {
	int process; /* descriptor of its /proc/PID directory */
	int memory;
};

/* -ESRCH: the process has ended; -EACCES: its exec granted privileges, or it cannot be read. */
int image_open(struct image *image, pid_t pid);
void image_close(struct image *image);

/* Whether a process runs a program that gained no privileges by its exec. Also false during an
 * exec, and if the process has ended. */
bool image_may_be_read(pid_t pid);

/* Whether the process still runs the program of the image. */
bool image_is_there(const struct image *image);

/* Reads all bytes or returns false, for example after an exec. */
bool image_read(const struct image *image, uint64_t address, void *to, size_t size);
/* Reads up to `size` bytes and returns how many. 0: none. */
size_t image_read_some(const struct image *image, uint64_t address, void *to, size_t size);

/* The environment that the program was started with, as a list for execve(). The caller frees both
 * parts. */
char **image_environment(const struct image *image, char **text);

#endif
