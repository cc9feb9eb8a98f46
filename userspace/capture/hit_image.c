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
