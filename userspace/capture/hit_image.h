/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process is read when its record is drained, which may be long after the hit. By
 * then the process may run another program, whose memory the first one had no right to read.
 */
#ifndef WAFFLE_CAPTURE_HIT_IMAGE_H
#define WAFFLE_CAPTURE_HIT_IMAGE_H

#include "probe/kernel.h"
#include "target/image.h"

/* Opens the process's image, as image_open() does, if it still runs the program that it ran at
 * `ts`. Without `kernel`, assumes that no process calls exec. */
int hit_image_open(struct image *image, const struct kernel *kernel, pid_t pid, uint64_t ts);

/* Whether what was read in /proc since `ts`, without an image, is of a program that its exec gave
 * no rights. False during an exec, since the kernel does not say yet which rights that one gives.
 */
bool hit_image_is_same(const struct kernel *kernel, pid_t pid, uint64_t ts);

#endif
