// SPDX-License-Identifier: Apache-2.0
/*
 * A frame as any process could make it, for a site with any keys: the walk stays inside the frame.
 * The input: a byte with the number of keys, a type letter for each, then the frame.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf/site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct site_info site = {.name = "", .category = "", .file = "", .func = "", .object = ""};
	struct value_walk walk;
	struct value value;
	unsigned count = 0;
	void *frame;

	if (!size)
		return 0;
	site.key_count = (uint16_t)(data[0] % (WAFFLE_KEYS_MAX + 1));
	data++;
	size--;
	for (unsigned k = 0; k < site.key_count; k++) {
		site.keys[k] = (struct site_key){.name = "k", .type = 'i'};
		if (size) {
			/* Excludes the model's own pointers, which no input from outside can
			 * have. */
			if (site_key_from_file((char)*data))
				site.keys[k].type = (char)*data;
			data++;
			size--;
		}
	}
	/* A block of exactly this size, so that any access outside is detected. */
	frame = malloc(size ? size : 1);
	if (!frame)
		return 0;
	memcpy(frame, data, size);
	walk = value_walk_begin(&site, frame, (uint32_t)size);
	while (value_walk_next(&walk, &value)) {
		if (++count > site.key_count)
			abort();
		for (uint32_t i = 0; value.type == WAFFLE_KEY_STR && i < value.text_len; i++)
			__asm__ __volatile__("" : : "r"(value.text[i])); /* force the read */
	}
	free(frame);
	return 0;
}
