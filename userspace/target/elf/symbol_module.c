// SPDX-License-Identifier: Apache-2.0
#include "target/elf/symbol_module.h"

#include <string.h>

#include "util/hash.h"

uint64_t symbol_module_hash(const struct symbol_module *module)
{
	const struct hash_secret secret = hash_secret();
	const char *path = module->path ?: "";
	uint64_t hash =
		hash_keyed(secret.begin, module->build_id.bytes, module->build_id.size, &secret);

	return hash_keyed(hash, path, strlen(path), &secret);
}

bool symbol_module_is(const struct symbol_module *module, const char *path,
		      const struct build_id *build_id)
{
	if (!build_id_equal(&module->build_id, build_id))
		return false;
	return path && module->path ? !strcmp(path, module->path) : !path && !module->path;
}
