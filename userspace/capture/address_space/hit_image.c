// SPDX-License-Identifier: Apache-2.0
#include "capture/address_space/hit_image.h"

#include <errno.h>

int hit_image_open(struct image *image, const struct kernel *kernel, pid_t pid, uint64_t ts)
{
	int result = image_open(image, pid);

	/*
	 * Check after opening the image, when any earlier exec is known. A new program's first
	 * instruction waits for that. So an image opened during an exec contains only what the
	 * caller passed to the program.
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

	/* The order matters for an exec that was in progress when /proc was read. It is either
	 * still in progress here, or the BPF programs have noted its end below. */
	if (!image_may_be_read(pid))
		return false;
	if (!kernel)
		return true;
	since = kernel_program_since(kernel, pid);
	return since == UINT64_MAX ? !kernel_program_is_privileged(kernel, pid) : since <= ts;
}

int hit_image_mappings(struct mappings *mappings, const struct kernel *kernel, pid_t pid,
		       uint64_t ts, bool all)
{
	struct error gone = ERROR_INIT;
	int result = all ? process_mappings_all(mappings, pid, &gone)
			 : process_mappings(mappings, pid, &gone);

	/* A zombie has no mappings. */
	if (!result && (!mappings->list.len || !hit_image_is_same(kernel, pid, ts))) {
		mappings_free(mappings);
		result = -ESRCH;
	}
	return result;
}
