/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks that are not records: what a capture is about, strings, sites, processes, counts, the
 * index. Writing appends to a vector of bytes and returns false without memory; reading does not
 * trust its bytes and returns -EBADMSG or -ENOMEM.
 */
#ifndef WAFFLE_STORE_DICTIONARY_H
#define WAFFLE_STORE_DICTIONARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "store/bytes.h"
#include "store/format.h"
#include "store/store.h"
#include "util/strtab.h"
#include "util/vec.h"

typedef VEC(unsigned char) byte_vec;

/* ---- writing; strings are cut at STORE_STRING_MAX ---- */

bool meta_put(byte_vec *to, const struct store_meta *meta);
bool string_put(byte_vec *to, const char *text, size_t len);
/* Adds what is new in the site's strings to `strings`. */
bool site_put(byte_vec *to, struct strtab *strings, const struct site_info *site);
bool process_put(byte_vec *to, struct strtab *strings, const struct store_process *process);
bool stack_put(byte_vec *to, const struct store_stack *stack);
bool object_put(byte_vec *to, struct strtab *strings, const struct store_object *object);
bool mapping_put(byte_vec *to, struct strtab *strings, const struct store_mapping *mapping);
bool symbol_put(byte_vec *to, struct strtab *strings, const struct store_symbol *symbol);
bool name_put(byte_vec *to, struct strtab *strings, const struct store_name *name);
bool index_put(byte_vec *to, const chunk_entries *entries);
/* COUNTS_BYTES at `to`. index_offset and end_ts are 0 but at the end of a file. */
void counts_put(unsigned char *to, uint64_t index_offset, uint64_t end_ts,
		const struct store_counts *counts);

/* ---- reading ---- */

/* All strings, sites and processes of a file; pointers into it stay while it lives. */
struct dictionary {
	VEC(char *) blocks; /* memory of the strings */
	VEC(const char *) strings;
	uint32_t strings_skipped; /* behind those that are there */
	size_t bytes, bytes_max;  /* memory for all of it so far, and at most */
	bool full;                /* no entry is added any more, so that the numbers stay right */
	uint64_t skipped;         /* entries that found no room */
	VEC(struct site_info) sites;
	VEC(struct store_process) processes;
	VEC(struct store_stack) stacks;
	VEC(struct store_object) objects;
	VEC(struct store_mapping) mappings;
	VEC(struct store_symbol) symbols;
	VEC(struct store_name) names;
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
/* The meta's strings are kept by the dictionary. */
int meta_get(struct store_meta *meta, struct dictionary *dictionary, struct cursor *cursor);
/* Fills the entries; offsets follow from the lengths, from `offset` exactly to `end`. */
int index_get(chunk_entries *entries, struct cursor *cursor, uint64_t offset, uint64_t end);
int counts_get(struct cursor *cursor, uint64_t *index_offset, uint64_t *end_ts,
	       struct store_counts *counts);

#endif
