// SPDX-License-Identifier: Apache-2.0
/*
 * The memory with a program's names, as any process could fill it: the tracer's reader stays
 * inside, ends, and returns definitions of valid lengths. The input is the memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "require.h"
#include "usdt/name/name_chunk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A block of exactly this size, so that any access outside is detected. */
	struct name_chunk *chunk = calloc(1, NAME_CHUNK_BYTES);
	struct name_definition *definition = malloc(sizeof(*definition));
	uint32_t at = NAME_CHUNK_FIRST, before = 0;

	require(chunk && definition);
	memcpy(chunk, data, size < NAME_CHUNK_BYTES ? size : NAME_CHUNK_BYTES);
	name_chunk_is_valid(chunk);
	while (name_chunk_next(chunk, &at, definition) == NAME_CHUNK_DEFINITION) {
		const struct site_info *site = &definition->site;

		require(definition->at >= before && at > definition->at && at <= NAME_CHUNK_BYTES);
		before = at;
		require(strlen(site->name) < NAME_TEXT_MAX && strlen(site->func) < NAME_TEXT_MAX);
		require(strlen(site->category) < NAME_TEXT_MAX && strlen(site->file) <= 4096);
		require(definition->track ? !site->key_count
					  : site->kind && site->kind < WAFFLE_SITE_KIND_COUNT);
		require(site->key_count <= WAFFLE_KEYS_MAX);
		for (unsigned i = 0; i < site->key_count; i++)
			require(site->keys[i].type && strlen(site->keys[i].name) < NAME_TEXT_MAX);
		name_chunk_arm(chunk, definition->at, true);
	}
	free(definition);
	free(chunk);
	return 0;
}
