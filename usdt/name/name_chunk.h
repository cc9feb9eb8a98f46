/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory in which a program has its names (usdt/name/names.h): the contract between libwaffle
 * and a tracer in another process. The tracer maps it as it maps rings, reads the definitions, and
 * arms those that its filter wants.
 *
 *	struct name_chunk | struct name_entry, private data, texts | next entry | …
 *
 * A chunk is a sealed memfd of NAME_CHUNK_BYTES, mapped and shared for ever. The program appends
 * entries, which never change, and then advances `used`. Only `armed` is written by both, each its
 * own bit. When the child of a fork() first uses a name, it gets chunks of its own at the same
 * addresses.
 *
 * A tracer must trust nothing in the memory: name_chunk_next() copies what it checks.
 */
#ifndef WAFFLE_USDT_NAME_NAME_CHUNK_H
#define WAFFLE_USDT_NAME_NAME_CHUNK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/elf/site.h"

#define NAME_CHUNK_MAGIC 0x656d616eu /* "name" */
#define NAME_CHUNK_VERSION 1
#define NAME_CHUNK_BYTES (256u << 10)

struct name_chunk {
	uint32_t magic, version;
	uint32_t texts_at; /* offset of the texts from the start of an entry */
	uint32_t used;     /* bytes of this struct and of all whole entries */
};

/* A `kind` beside those of sites: a track (waffle_track.h). `line` is its number, and the category
 * is its group. */
#define NAME_KIND_TRACK 0xff

/* Bits of struct waffle_name_. */
#define NAME_ARMED_INSIDE 1u /* by this process */
#define NAME_ARMED_TRACER 2u

struct name_entry {
	uint32_t armed; /* struct waffle_name_: its address is that of the probe in hits */
	uint32_t bytes; /* of the entry with its texts: a multiple of 8 */
	uint32_t line;
	uint16_t kind, key_count;
	char types[WAFFLE_KEYS_MAX];
	/* At texts_at, each with its NUL: name, file, category, function, keys. */
};

/* A text has up to so many bytes with its NUL, and a file up to WAFFLE_FILE_MAX + 1. */
#define NAME_TEXT_MAX 257
#define NAME_TEXTS_MAX (4097 + (3 + WAFFLE_KEYS_MAX) * NAME_TEXT_MAX)

/* ---- the program ---- */

/* Maps a new chunk. *shared is false if a sandbox forbids memory that a tracer can find. NULL: out
 * of memory. */
struct name_chunk *name_chunk_new(uint32_t texts_at, bool *shared);
/* Room for an entry; NULL: the chunk is full. name_chunk_publish() makes the last one readable. */
struct name_entry *name_chunk_take(struct name_chunk *chunk, uint32_t bytes);
void name_chunk_publish(struct name_chunk *chunk, const struct name_entry *entry);
/* In the child of a fork(): replaces the memory by a copy of its own, which a tracer finds unless a
 * sandbox forbids such memory. False: out of memory, and it is still that of the parent. */
bool name_chunk_own(struct name_chunk *chunk);

/* ---- a tracer ---- */

/* Whether memory of NAME_CHUNK_BYTES is a chunk that this program can read. */
bool name_chunk_is_valid(const struct name_chunk *chunk);

struct name_definition {
	uint32_t track; /* number of a track, which has a name and a category; 0: it is a site */
	uint32_t at;    /* of the entry in the chunk */
	struct site_info site; /* with strings in `texts` */
	char texts[NAME_TEXTS_MAX];
};

/* Where the first entry is. */
#define NAME_CHUNK_FIRST ((uint32_t)sizeof(struct name_chunk))

enum name_chunk_result { NAME_CHUNK_END, NAME_CHUNK_DEFINITION, NAME_CHUNK_BROKEN };

/* Reads the entry at *at and advances *at. After NAME_CHUNK_BROKEN the chunk is of no use. */
enum name_chunk_result name_chunk_next(const struct name_chunk *chunk, uint32_t *at,
				       struct name_definition *definition);
/* Arms or disarms a name for the tracer. `at` is that of a definition. */
void name_chunk_arm(struct name_chunk *chunk, uint32_t at, bool armed);

#endif
