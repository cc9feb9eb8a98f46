/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process from one exec to the next. An image reads the memory of that program and of no other:
 * the kernel binds an open /proc/PID/mem to the memory that the process had at the open. After the
 * process has called exec or ended it reads as empty, also if the pid was reused.
 *
 * No image can be opened of a program that its exec gave rights (set-user-ID, set-group-ID, file
 * capabilities): the user who started it must not see its memory.
 */
#ifndef WAFFLE_TARGET_IMAGE_H
#define WAFFLE_TARGET_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct image {
	int process; /* its folder of /proc */
	int memory;
};

/* -ESRCH: the process has ended; -EACCES: its exec gave it rights, or it can't be read. */
int image_open(struct image *image, pid_t pid);
void image_close(struct image *image);

/* Whether a process runs a program that its exec gave no rights. False as well during an exec, and
 * if the process has ended. */
bool image_may_be_read(pid_t pid);

/* Whether the process still runs that program. */
bool image_is_there(const struct image *image);

/* Reads all bytes; false if it can't, for example after an exec. */
bool image_read(const struct image *image, uint64_t address, void *to, size_t size);
/* Reads up to `size` bytes, as many as there are; 0: none. */
size_t image_read_some(const struct image *image, uint64_t address, void *to, size_t size);

/* The environment that it was started with, as a list for execve(). The caller frees both parts. */
char **image_environment(const struct image *image, char **text);

#endif
