/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to a process's memory for a record. It is read when the record is drained, possibly long
 * after the hit. By then the process may run another program, whose memory the user who started the
 * first one must not see.
 */
#ifndef WAFFLE_CAPTURE_HIT_IMAGE_H
#define WAFFLE_CAPTURE_HIT_IMAGE_H

#include "probe/kernel.h"
#include "target/image.h"

/* Opens the process's image as image_open() does, if the process still runs the same program as at
 * `ts`. Without `kernel`, assumes that no process calls exec. */
int hit_image_open(struct image *image, const struct kernel *kernel, pid_t pid, uint64_t ts);

/* Whether data read from /proc since `ts`, without an image, belongs to a program that gained no
 * privileges by its exec. False during an exec, since the kernel does not show yet which privileges
 * it will grant. */
bool hit_image_is_same(const struct kernel *kernel, pid_t pid, uint64_t ts);

#endif
