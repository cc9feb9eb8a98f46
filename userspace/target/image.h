/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process as it is from one exec to the next. What is read through an image is of that program
 * and of no other: the kernel binds an open /proc/PID/mem to the memory that the process had then,
 * and it reads as empty when the process has exec'd or ended, also if its pid is another's by now.
 *
 * No image can be opened of a program that was given rights by its exec (set-user-ID,
 * set-group-ID, file capabilities): its memory is nobody's who started it.
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

/* -ESRCH: the process is gone; -EACCES: its program was given rights, or it can't be read. */
int image_open(struct image *image, pid_t pid);
void image_close(struct image *image);

/* Whether the process still is what it was. */
bool image_is_there(const struct image *image);

/* All of it; false: not, as if the image is no more. */
bool image_read(const struct image *image, uint64_t address, void *to, size_t size);
/* As much as there is up to `size`; 0: nothing. */
size_t image_read_some(const struct image *image, uint64_t address, void *to, size_t size);

/* The environment that it was started with, as execve() wants it; both parts are to be freed. */
char **image_environment(const struct image *image, char **text);

#endif
