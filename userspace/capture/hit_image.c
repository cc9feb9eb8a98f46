// SPDX-License-Identifier: Apache-2.0
#include "capture/hit_image.h"

#include <errno.h>

int hit_image_open(struct image *image, const struct kernel *kernel, pid_t pid, uint64_t ts)
{
	int result = image_open(image, pid);

	/*
	 * Asked after it was opened: what exec'd before that is known then. Only the new program's
	 * first instruction waits for that, so an image from during an exec has nothing but what
	 * its caller gave it.
	 */
	if (!result && kernel && kernel_program_since(kernel, pid) > ts) {
		image_close(image);
		result = -ESRCH;
	}
	return result;
}
