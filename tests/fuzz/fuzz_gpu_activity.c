// SPDX-License-Identifier: Apache-2.0
/*
 * Records of CUPTI, which is another library in the process, of any version. Each is a byte with
 * its size, and so many bytes. It is read in memory of exactly its size, and its keys are made.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "usdt/gpu/activity.h"
#include "usdt/gpu/fields.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fields_check(const struct gpu_operation *operation, bool clamped)
{
	struct fields fields;
	size_t length = 0;

	fields_make(&fields, operation, clamped);
	if (!fields.count || fields.count > WAFFLE_KEYS_MAX)
		abort();
	for (unsigned i = 0; i < fields.count; i++)
		if (fields.values[i].type == WAFFLE_KEY_STR)
			length += strlen(fields.values[i].text);
	if (length > 256)
		abort();
}

static void record_read(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);
	struct gpu_operation operation;
	struct gpu_context context;

	if (!copy)
		return;
	memcpy(copy, data, size);
	if (activity_read(copy, size, &operation, &context) == ACTIVITY_OPERATION) {
		(void)activity_has_times(&operation);
		fields_check(&operation, size & 1);
	}
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	while (size) {
		size_t bytes = *data++;

		size--;
		bytes = bytes < size ? bytes : size;
		record_read(data, bytes);
		data += bytes;
		size -= bytes;
	}
	return 0;
}
