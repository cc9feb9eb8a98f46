/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes numbers as bytes and back. Fixed-size numbers are little endian. Varints are LEB128:
 * seven bits a byte, low bits first, and the top bit is set on all bytes but the last. A signed
 * difference is zigzag coded first.
 *
 * Writing goes through a pointer into a buffer that the caller has made large enough. Reading goes
 * through a cursor that never passes its end. A read beyond the end returns 0 and marks the cursor
 * as bad, so the caller checks a record once, after its last field.
 */
#ifndef WAFFLE_STORE_BYTES_INTERNAL_H
#define WAFFLE_STORE_BYTES_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define VARINT_BYTES_MAX 10

static inline uint64_t zigzag_encode(uint64_t difference)
{
	return (difference << 1) ^ (uint64_t)((int64_t)difference >> 63);
}

static inline uint64_t zigzag_decode(uint64_t value)
{
	return (value >> 1) ^ -(value & 1);
}

static inline unsigned char *put_le(unsigned char *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (unsigned char)(value >> (8 * i));
	return at + bytes;
}

static inline unsigned char *put_varint(unsigned char *at, uint64_t value)
{
	while (value >= 0x80) {
		*at++ = (unsigned char)(value | 0x80);
		value >>= 7;
	}
	*at++ = (unsigned char)value;
	return at;
}

static inline unsigned char *put_bytes(unsigned char *at, const void *bytes, size_t len)
{
	memcpy(at, bytes, len);
	return at + len;
}

/* Writes the signed difference of two 64-bit numbers, which may wrap. */
static inline unsigned char *put_difference(unsigned char *at, uint64_t value, uint64_t base)
{
	return put_varint(at, zigzag_encode(value - base));
}

struct cursor {
	const unsigned char *at, *end;
	bool bad; /* a read passed the end, or a value was invalid */
};

static inline uint64_t load_le(const unsigned char *at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)at[i] << (8 * i);
	return value;
}

static inline const unsigned char *get_bytes(struct cursor *cursor, size_t len)
{
	const unsigned char *at = cursor->at;

	if (len > (size_t)(cursor->end - at)) {
		cursor->bad = true;
		return NULL;
	}
	cursor->at += len;
	return at;
}

static inline uint64_t get_le(struct cursor *cursor, unsigned bytes)
{
	const unsigned char *at = get_bytes(cursor, bytes);

	return at ? load_le(at, bytes) : 0;
}

static inline uint64_t get_varint(struct cursor *cursor)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
		unsigned char byte = *cursor->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	cursor->bad = true;
	return 0;
}

/* Reads a varint; a value above `max` marks the cursor as bad. */
static inline uint64_t get_varint_max(struct cursor *cursor, uint64_t max)
{
	uint64_t value = get_varint(cursor);

	if (value <= max)
		return value;
	cursor->bad = true;
	return 0;
}

static inline uint64_t get_difference(struct cursor *cursor, uint64_t base)
{
	return base + zigzag_decode(get_varint(cursor));
}

#endif
