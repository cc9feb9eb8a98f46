/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes all chunks that hold no records: meta, strings, sites, processes, the other
 * tables, counts and index. Functions that write append to a vector of bytes and return false when
 * out of memory. Functions that read do not trust the bytes and return -EBADMSG or -ENOMEM.
 */
#ifndef WAFFLE_STORE_DICTIONARY_INTERNAL_H
#define WAFFLE_STORE_DICTIONARY_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/bytes_internal.h"
#include "store/format_internal.h"
#include "store/lengths_internal.h"
#include "store/store.h"
#include "util/strtab.h"
#include "util/vec.h"

typedef VEC(unsigned char) byte_vec;

/* ---- writing; strings are truncated to STORE_STRING_MAX ---- */

bool meta_put(byte_vec *to, const struct store_meta *meta);
bool string_put(byte_vec *to, const char *text, size_t len);
/* Adds the site's strings to `strings` unless they are there already. */
bool site_put(byte_vec *to, struct strtab *strings, const struct site_info *site);
bool process_put(byte_vec *to, struct strtab *strings, const struct store_process *process);
bool stack_put(byte_vec *to, const struct store_stack *stack);
bool object_put(byte_vec *to, struct strtab *strings, const struct store_object *object);
bool mapping_put(byte_vec *to, struct strtab *strings, const struct store_mapping *mapping);
bool symbol_put(byte_vec *to, struct strtab *strings, const struct store_symbol *symbol);
bool name_put(byte_vec *to, struct strtab *strings, const struct store_name *name);
bool transport_put(byte_vec *to, struct strtab *strings, const struct store_transport *transport);
bool attribute_put(byte_vec *to, struct strtab *strings, const struct store_attribute *attribute);
bool rank_put(byte_vec *to, struct strtab *strings, const struct store_rank *rank);
bool host_put(byte_vec *to, struct strtab *strings, const struct store_host *host);
bool capture_put(byte_vec *to, struct strtab *strings, const struct store_capture *capture);
bool index_put(byte_vec *to, const chunk_entries *entries);
/* Writes COUNTS_BYTES at `to`. index_offset and end_ts are 0 except in the end chunk. */
void counts_put(unsigned char *to, uint64_t index_offset, uint64_t end_ts,
		const struct store_counts *counts);

/* ---- reading ---- */

/* All tables of a file. Pointers into them stay valid until dictionary_free(). */
struct dictionary {
	VEC(char *) blocks; /* own the memory of the strings */
	VEC(const char *) strings;
	uint32_t strings_skipped; /* number of entries dropped after those */
	size_t bytes, bytes_max;  /* memory used by all tables, and its limit */
	/* No more entries are added, so that the numbers of the others stay right. */
	bool full;
	uint64_t skipped; /* entries dropped because of the memory limit */
	struct record_lengths lengths;
	VEC(struct site_info) sites;
	VEC(struct store_process) processes;
	VEC(struct store_stack) stacks;
	VEC(struct store_object) objects;
	VEC(struct store_mapping) mappings;
	VEC(struct store_symbol) symbols;
	VEC(struct store_name) names;
	VEC(struct store_rank) ranks;
	VEC(struct store_attribute) attributes;
	VEC(struct store_transport) transports;
	VEC(struct store_host) hosts;
	VEC(struct store_capture) captures;
};

bool dictionary_init(struct dictionary *dictionary);
void dictionary_free(struct dictionary *dictionary);
int dictionary_get_strings(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_sites(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_processes(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_stacks(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_objects(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_mappings(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_symbols(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_names(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_timed_names(struct dictionary *dictionary, struct cursor *cursor,
			       uint32_t count);
int dictionary_get_transports(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_attributes(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_ranks(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_hosts(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
int dictionary_get_captures(struct dictionary *dictionary, struct cursor *cursor, uint32_t count);
/* Whether a type of chunk is a table, and the function for it. */
bool dictionary_has(unsigned type);
int dictionary_get(struct dictionary *dictionary, unsigned type, struct cursor *cursor,
		   uint32_t count);
/* The dictionary owns the strings of `meta`. `version`: of the file. */
int meta_get(struct store_meta *meta, struct dictionary *dictionary, unsigned version,
	     struct cursor *cursor);
/* Fills the entries. Their offsets follow from the chunk lengths, and have to lead from `offset`
 * exactly to `end`. */
int index_get(chunk_entries *entries, struct cursor *cursor, uint64_t offset, uint64_t end);
int counts_get(struct cursor *cursor, uint64_t *index_offset, uint64_t *end_ts,
	       struct store_counts *counts);

#endif
