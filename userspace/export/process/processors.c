// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "export/process/processors_internal.h"

#define PROCESSOR_ADDRESS(name) &processor_##name,
const struct processor_type *const processor_types[] = {PROCESSOR_ROWS(PROCESSOR_ADDRESS)};
#undef PROCESSOR_ADDRESS
const size_t processor_type_count = sizeof(processor_types) / sizeof(processor_types[0]);

const struct processor_type *processor_type_find(const char *name, size_t len)
{
	for (size_t i = 0; i < processor_type_count; i++)
		if (strlen(processor_types[i]->name) == len &&
		    !memcmp(processor_types[i]->name, name, len))
			return processor_types[i];
	return NULL;
}
