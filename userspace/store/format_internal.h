/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of a .waffle file: its constants, and the headers of file and chunks. docs/file-format.md
 * describes it. */
#ifndef WAFFLE_STORE_FORMAT_INTERNAL_H
#define WAFFLE_STORE_FORMAT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/store.h"
#include "util/vec.h"

/* Like PNG's magic: a byte that no text begins with, the name, and a newline that a transfer in
 * text mode would change. */
#define FILE_MAGIC "\x89WAFFLE\n"
#define FILE_MAGIC_BYTES 8
/* 2: META has the lengths of records. A field or a kind of record that is added, or a type of
 * chunk, needs no new version: readers skip it. */
#define FILE_VERSION 2
#define FILE_HEADER_BYTES 16

#define CHUNK_MAGIC 0x4b4e4843u /* "CHNK" */
#define CHUNK_HEADER_BYTES 48

enum chunk_type {
	CHUNK_META = 1,
	CHUNK_STRINGS,
	CHUNK_SITES,
	CHUNK_PROCESSES,
	CHUNK_TASKS, /* the task and track records of the next data chunk */
	CHUNK_DATA,
	CHUNK_COUNTS,
	CHUNK_INDEX,
	CHUNK_END,
	CHUNK_STACKS,
	CHUNK_OBJECTS,
	CHUNK_MAPPINGS,
	CHUNK_SYMBOLS,
	CHUNK_NAMES,
	CHUNK_TIMED_NAMES, /* names with the time from which each is valid */
	CHUNK_RANKS,       /* rank, world size and job of processes */
	CHUNK_HOSTS,       /* of a file that several were merged into */
	CHUNK_CAPTURES,    /* likewise */
	CHUNK_TRANSPORTS,  /* by which way the hits of processes came */
	CHUNK_ATTRIBUTES,  /* other attributes of processes */
	CHUNK_TYPE_COUNT
};

enum chunk_codec { CODEC_NONE = 0, CODEC_ZSTD = 1 };

/* A data chunk is written when it has reached this size. */
#define CHUNK_DATA_BYTES (256u << 10)
/* Largest decompressed size of a chunk; the index has a limit of its own. */
#define CHUNK_RAW_MAX (1u << 20)
#define INDEX_RAW_MAX (64u << 20)

/* A file with more sites was not written by waffle. */
#define STORE_SITES_MAX (1u << 18)
/* Limit of the memory for all tables, computed by table_bytes() and string_bytes(). The writer
 * drops further entries, so that every reader has enough memory for the file. */
#define STORE_TABLES_BYTES_MAX (256u << 20)
#define STORE_PROCESSES_MAX (1u << 22)
#define STORE_CAPTURES_MAX (1u << 16)
#define STORE_TASKS_MAX (1u << 20)
#define STORE_TABLE_MAX (1u << 22) /* stacks, objects, mappings, symbols, names */
/* The writer truncates longer strings. */
#define STORE_STRING_MAX 65535u

/* Size of the payload of CHUNK_COUNTS and CHUNK_END. It is never compressed, so that a reader finds
 * the end chunk from the length of the file. There is room for more sources than exist today. */
#define COUNTS_SOURCES 8
#define COUNTS_BYTES (24 + COUNTS_SOURCES * 24)
_Static_assert(WAFFLE_SOURCE_COUNT <= COUNTS_SOURCES, "the counts have room");
#define END_CHUNK_BYTES (CHUNK_HEADER_BYTES + COUNTS_BYTES)

struct chunk_header {
	uint16_t type;  /* enum chunk_type */
	uint16_t codec; /* enum chunk_codec */
	uint32_t stored_bytes, raw_bytes;
	uint32_t records;
	uint32_t checksum; /* CRC-32 of the stored payload */
	uint64_t min_ts, max_ts;
};

void file_header_pack(unsigned char *to);
void chunk_header_pack(unsigned char *to, const struct chunk_header *header);
/* False: these 48 bytes are no chunk header (magic, checksum or sizes are wrong). */
bool chunk_header_unpack(struct chunk_header *header, const unsigned char *from);
uint32_t chunk_checksum(const void *bytes, size_t len);

/* Position of a chunk, from the index or found by walking over the headers. */
struct chunk_entry {
	uint64_t offset;
	uint64_t min_ts, max_ts;
	uint32_t stored_bytes, records;
	uint16_t type;
};
typedef VEC(struct chunk_entry) chunk_entries;

/* Memory that an entry of a table takes in a reader, without its strings. `count`: the addresses of
 * a stack, or the segments of a mapping. */
size_t table_bytes(enum chunk_type type, uint32_t count);
size_t string_bytes(size_t len);

#endif
