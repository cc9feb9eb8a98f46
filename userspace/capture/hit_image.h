/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process is read when a record of it is drained, which may be long after the hit:
 * the process may run another program by then, whose memory the first one had no right to.
 */
#ifndef WAFFLE_CAPTURE_HIT_IMAGE_H
#define WAFFLE_CAPTURE_HIT_IMAGE_H

#include "probe/kernel.h"
#include "target/image.h"

/* Opens a process's image if its program is the one that ran at `ts`; as image_open() does.
 * `kernel` NULL: no process execs. */
int hit_image_open(struct image *image, const struct kernel *kernel, pid_t pid, uint64_t ts);

#endif
