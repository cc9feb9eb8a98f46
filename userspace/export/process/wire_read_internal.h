/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the fields of a small protobuf message, such as a server's answer. The message is not
 * trusted: no length in it leads out of it. */
#ifndef WAFFLE_EXPORT_PROCESS_WIRE_READ_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_WIRE_READ_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/* The tags of a field that is a number, and of one that is text, bytes or a message. */
#define WIRE_NUMBER(field) ((field) << 3 | 0u)
#define WIRE_MESSAGE(field) ((field) << 3 | 2u)

struct wire_part {
	const unsigned char *at, *end;
};

static inline struct wire_part wire_part_of(const void *data, size_t len)
{
	return (struct wire_part){data, (const unsigned char *)data + len};
}

static inline size_t wire_part_len(const struct wire_part *wire)
{
	return (size_t)(wire->end - wire->at);
}

static inline bool wire_varint(struct wire_part *wire, uint64_t *value)
{
	*value = 0;
	for (unsigned shift = 0; shift < 64 && wire->at < wire->end; shift += 7) {
		unsigned char byte = *wire->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* Reads the next field: its tag, and its number or its bytes. False: the message ends, it is
 * damaged, or the field is of another type, such as a double. */
static inline bool wire_field(struct wire_part *wire, uint64_t *tag, uint64_t *number,
			      struct wire_part *bytes)
{
	if (!wire_varint(wire, tag))
		return false;
	switch (*tag & 7) {
	case 0:
		return wire_varint(wire, number);
	case 2:
		if (!wire_varint(wire, number) || *number > wire_part_len(wire))
			return false;
		*bytes = (struct wire_part){wire->at, wire->at + *number};
		wire->at += *number;
		return true;
	default:
		return false;
	}
}

#endif
