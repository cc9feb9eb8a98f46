// SPDX-License-Identifier: Apache-2.0
#include "store/format_internal.h"

#include <zlib.h>

#include "store/bytes_internal.h"

uint32_t chunk_checksum(const void *bytes, size_t len)
{
	return (uint32_t)crc32_z(0, bytes, len);
}

size_t table_bytes(enum chunk_type type, uint32_t count)
{
	switch (type) {
	case CHUNK_SITES:
		return sizeof(struct site_info);
	case CHUNK_PROCESSES:
		return sizeof(struct store_process);
	case CHUNK_STACKS: /* plus the address that marks a truncated stack */
		return sizeof(struct store_stack) + (count + 1) * sizeof(uint64_t);
	case CHUNK_OBJECTS:
		return sizeof(struct store_object);
	case CHUNK_MAPPINGS:
		return sizeof(struct store_mapping) + count * sizeof(struct store_segment);
	case CHUNK_SYMBOLS:
		return sizeof(struct store_symbol);
	case CHUNK_NAMES:
	case CHUNK_TIMED_NAMES:
		return sizeof(struct store_name);
	case CHUNK_RANKS:
		return sizeof(struct store_rank);
	case CHUNK_ATTRIBUTES:
		return sizeof(struct store_attribute);
	case CHUNK_TRANSPORTS:
		return sizeof(struct store_transport);
	case CHUNK_HOSTS:
		return sizeof(struct store_host);
	case CHUNK_CAPTURES:
		return sizeof(struct store_capture);
	default:
		return 0;
	}
}

size_t string_bytes(size_t len)
{
	return 3 + len + sizeof(char *); /* with the length before it in the file */
}

void file_header_pack(unsigned char *to)
{
	unsigned char *at = put_bytes(to, FILE_MAGIC, FILE_MAGIC_BYTES);

	at = put_le(at, FILE_VERSION, 2);
	at = put_le(at, 0, 2);
	put_le(at, chunk_checksum(to, FILE_HEADER_BYTES - 4), 4);
}

void chunk_header_pack(unsigned char *to, const struct chunk_header *header)
{
	unsigned char *at = to;

	at = put_le(at, CHUNK_MAGIC, 4);
	at = put_le(at, header->type, 2);
	at = put_le(at, header->codec, 2);
	at = put_le(at, header->stored_bytes, 4);
	at = put_le(at, header->raw_bytes, 4);
	at = put_le(at, header->records, 4);
	at = put_le(at, header->checksum, 4);
	at = put_le(at, header->min_ts, 8);
	at = put_le(at, header->max_ts, 8);
	at = put_le(at, 0, 4);
	put_le(at, chunk_checksum(to, CHUNK_HEADER_BYTES - 4), 4);
}

bool chunk_header_unpack(struct chunk_header *header, const unsigned char *from)
{
	struct cursor cursor = {.at = from, .end = from + CHUNK_HEADER_BYTES};
	uint32_t magic = (uint32_t)get_le(&cursor, 4);
	uint32_t limit;

	header->type = (uint16_t)get_le(&cursor, 2);
	header->codec = (uint16_t)get_le(&cursor, 2);
	header->stored_bytes = (uint32_t)get_le(&cursor, 4);
	header->raw_bytes = (uint32_t)get_le(&cursor, 4);
	header->records = (uint32_t)get_le(&cursor, 4);
	header->checksum = (uint32_t)get_le(&cursor, 4);
	header->min_ts = get_le(&cursor, 8);
	header->max_ts = get_le(&cursor, 8);
	get_le(&cursor, 4);
	limit = header->type == CHUNK_INDEX ? INDEX_RAW_MAX : CHUNK_RAW_MAX;
	return magic == CHUNK_MAGIC &&
	       get_le(&cursor, 4) == chunk_checksum(from, CHUNK_HEADER_BYTES - 4) &&
	       header->codec <= CODEC_ZSTD && header->raw_bytes <= limit &&
	       header->stored_bytes <= header->raw_bytes;
}
