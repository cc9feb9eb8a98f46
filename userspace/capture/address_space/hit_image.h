/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access to a process's memory for a record. It is read when the record is drained, possibly long
 * after the hit. By then the process may run another program, whose memory the user who started the
 * first one must not see.
 */
#ifndef WAFFLE_CAPTURE_ADDRESS_SPACE_HIT_IMAGE_H
#define WAFFLE_CAPTURE_ADDRESS_SPACE_HIT_IMAGE_H

#include "kernel/kernel.h"
#include "target/process/image.h"
#include "target/process/process.h"

/* Opens the process's image as image_open() does, if the process still runs the same program as at
 * `ts`. Without `kernel`, assumes that no process calls exec. */
int hit_image_open(struct image *image, const struct kernel *kernel, pid_t pid, uint64_t ts);

/* Whether data read from /proc before this call, without an image, belongs to the program that the
 * process ran at `ts`, and this program gained no privileges. */
bool hit_image_is_same(const struct kernel *kernel, pid_t pid, uint64_t ts);

/* Reads the mappings with process_mappings() or process_mappings_all(), if they belong to the
 * program that the process ran at `ts`, and it gained no privileges by its exec. Fails during an
 * exec, since the kernel does not show yet which privileges it will grant. -ESRCH: there are none.
 */
int hit_image_mappings(struct mappings *mappings, const struct kernel *kernel, pid_t pid,
		       uint64_t ts, bool all);

#endif
