// SPDX-License-Identifier: Apache-2.0
#include "symbolize/stack_generators_internal.h"

#include <string.h>

#include "util/memory.h"
#include "util/path.h"

static const char jvm_name[] = "the JVM";

static const char *generator_name(const char *path)
{
	static const struct {
		const char *file, *name;
	} rows[] = {
		{"libjvm.so", jvm_name},     {"node", "Node.js"},       {"nodejs", "Node.js"},
		{"libnode.so", "Node.js"},   {"libcoreclr.so", ".NET"}, {"luajit", "LuaJIT"},
		{"libluajit", "LuaJIT"},     {"pypy", "PyPy"},          {"libpypy", "PyPy"},
		{"beam.smp", "Erlang's VM"},
	};
	const char *base = path_base(path);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t len = strlen(rows[i].file);

		/* Versions may follow: "libnode.so.108", "pypy3.9". */
		if (!strncmp(base, rows[i].file, len) && !strchr(base + len, '_') &&
		    !(base[len] >= 'a' && base[len] <= 'z'))
			return rows[i].name;
	}
	return NULL;
}

static struct stack_generator find(const struct stack_mappings *mappings, uint32_t pid)
{
	uint32_t count = stack_mappings_count(mappings);
	struct stack_generator found = {0};

	for (uint32_t i = stack_mappings_of(mappings, pid); i < count; i++) {
		const struct store_mapping *mapping = stack_mappings_at(mappings, i);
		const char *name;

		if (mapping->pid != pid)
			break;
		if (!*mapping->path)
			continue;
		name = generator_name(mapping->path);
		found.name = found.name ?: name;
		found.jvm |= name == jvm_name;
		if (mapping->end > found.files_to)
			found.files_to = mapping->end;
	}
	return found;
}

static const struct stack_generator *generator_of(struct stack_generators *generators,
						  const struct stack_mappings *mappings,
						  uint32_t pid)
{
	uint32_t at = map_get(&generators->at, pid);

	if (at == MAP_NONE) {
		at = (uint32_t)generators->list.len;
		vec_add(&generators->list, find(mappings, pid));
		map_put(&generators->at, pid, at);
	}
	return &generators->list.data[at];
}

const char *stack_generators_find(struct stack_generators *generators,
				  struct stack_mappings *mappings, uint32_t pid, uint64_t address,
				  uint64_t ts)
{
	const struct stack_generator *generator = generator_of(generators, mappings, pid);

	/* The vDSO lies above everything that a program maps, and is no file. */
	if (address >= generator->files_to || stack_mappings_find(mappings, pid, address, ts))
		return NULL;
	return generator->name;
}

bool stack_generators_has_jvm(struct stack_generators *generators, struct stack_mappings *mappings,
			      uint32_t pid)
{
	return generator_of(generators, mappings, pid)->jvm;
}

void stack_generators_free(struct stack_generators *generators)
{
	vec_free(&generators->list);
	map_free(&generators->at);
}
