// SPDX-License-Identifier: Apache-2.0
#include "target/elf/object.h"

#include <stdlib.h>
#include <string.h>

int object_new(struct object **object, const char *path, struct error *err)
{
	struct object *made = calloc(1, sizeof(*made));

	*object = NULL;
	if (made) {
		made->path = strdup(path);
		made->strings = strtab_new();
	}
	if (!made || !made->path || !made->strings) {
		object_free(made);
		return error_set(err, ENOMEM, "%s: out of memory", path);
	}
	*object = made;
	return 0;
}

void object_free(struct object *object)
{
	if (!object)
		return;
	free(object->path);
	strtab_free(object->strings);
	vec_free(&object->sites);
	vec_free(&object->probes);
	vec_free(&object->calls);
	free(object);
}
