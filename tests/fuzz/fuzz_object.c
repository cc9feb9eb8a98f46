// SPDX-License-Identifier: Apache-2.0
/* Any bytes as an ELF file: reading its sites does not fault, and all sites read are
 * well-formed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/elf/object_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct object *object)
{
	for (size_t i = 0; i < object->sites.len; i++) {
		const struct site_info *site = &object->sites.data[i];

		if (!site->name || !site->file || !site->category || !site->func ||
		    site->key_count > WAFFLE_KEYS_MAX)
			abort();
		for (unsigned k = 0; k < site->key_count; k++)
			if (!site->keys[k].name || !strchr("iudbpsnSE", site->keys[k].type))
				abort();
	}
	for (size_t i = 0; i < object->probes.len; i++)
		if (object->probes.data[i].site != OBJECT_SPAN_END &&
		    object->probes.data[i].site >= object->sites.len)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = ERROR_INIT;
	struct object *object;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	if (!object_read(&object, fd, "fuzz", &err)) {
		check(object);
		object_free(object);
	} else if (!err.message[0]) {
		abort();
	}
	close(fd);
	return 0;
}
