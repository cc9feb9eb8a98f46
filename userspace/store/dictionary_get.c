// SPDX-License-Identifier: Apache-2.0
/* Which function reads which chunk. */
#include "store/dictionary_internal.h"

#include <errno.h>

typedef int (*table_get_fn)(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);

/* Chunks that are read when the file is opened. Data is read on demand, and unknown types are
 * ignored: a later minor version may add some. */
static const table_get_fn tables[CHUNK_TYPE_COUNT] = {
	[CHUNK_STRINGS] = dictionary_get_strings,
	[CHUNK_SITES] = dictionary_get_sites,
	[CHUNK_PROCESSES] = dictionary_get_processes,
	[CHUNK_STACKS] = dictionary_get_stacks,
	[CHUNK_OBJECTS] = dictionary_get_objects,
	[CHUNK_MAPPINGS] = dictionary_get_mappings,
	[CHUNK_SYMBOLS] = dictionary_get_symbols,
	[CHUNK_NAMES] = dictionary_get_names,
	[CHUNK_TIMED_NAMES] = dictionary_get_timed_names,
	[CHUNK_RANKS] = dictionary_get_ranks,
	[CHUNK_TRANSPORTS] = dictionary_get_transports,
	[CHUNK_ATTRIBUTES] = dictionary_get_attributes,
	[CHUNK_HOSTS] = dictionary_get_hosts,
	[CHUNK_CAPTURES] = dictionary_get_captures,
};

bool dictionary_has(unsigned type)
{
	return type < CHUNK_TYPE_COUNT && tables[type];
}

int dictionary_get(struct dictionary *dictionary, unsigned type, struct cursor *cursor,
		   uint32_t count)
{
	return dictionary_has(type) ? tables[type](dictionary, cursor, count) : -EBADMSG;
}
