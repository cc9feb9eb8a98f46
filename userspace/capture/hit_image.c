// SPDX-License-Identifier: Apache-2.0
#include "capture/hit_image.h"

#include <errno.h>

int hit_image_open(struct image *image, const struct kernel *kernel, pid_t pid, uint64_t ts)
{
	int result = image_open(image, pid);

	/*
	 * Check after the image is open: any exec before that is known then. The new program's
	 * first instruction waits for that, so an image of the moment of an exec holds nothing but
	 * what its caller passed.
	 */
	if (!result && kernel && kernel_program_since(kernel, pid) > ts) {
		image_close(image);
		result = -ESRCH;
	}
	return result;
}

bool hit_image_is_same(const struct kernel *kernel, pid_t pid, uint64_t ts)
{
	uint64_t since;

	/* In this order: an exec that was under way when its process was read is still under way
	 * here, or the BPF programs have noted its end below. */
	if (!image_may_be_read(pid))
		return false;
	if (!kernel)
		return true;
	since = kernel_program_since(kernel, pid);
	return since == UINT64_MAX ? !kernel_program_is_private(kernel, pid) : since <= ts;
}
