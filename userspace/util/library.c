// SPDX-License-Identifier: Apache-2.0
#include "util/library.h"

#include <dlfcn.h>

const char *library_find(void *handle, const struct library_function *functions, size_t count,
			 void *table)
{
	for (size_t i = 0; i < count; i++) {
		void *found = dlsym(handle, functions[i].name);

		if (!found)
			return functions[i].name;
		*(void **)((char *)table + functions[i].at) = found;
	}
	return NULL;
}
