/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a message of protobuf in its binary form or as JSON, from the same calls. Each call names
 * a field by its number and by its name in JSON:
 *
 *	otlp_begin(&out, 1, "resource");
 *	otlp_list_begin(&out, "attributes");
 *	otlp_item_begin(&out, 1);
 *	otlp_text(&out, 1, "key", "service.name");
 *	otlp_end(&out);
 *	otlp_list_end(&out);
 *	otlp_end(&out);
 *
 * JSON is that of OTLP (opentelemetry.io/docs/specs/otlp): ids in hexadecimal, 64-bit numbers as
 * strings, enums as numbers.
 */
#ifndef WAFFLE_EXPORT_PROCESS_OTLP_OUT_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_OTLP_OUT_INTERNAL_H

#include "export/process/bytes_internal.h"
#include "export/process/full_record.h"

#define OTLP_DEPTH_MAX 16

/* protobuf.dev/programming-guides/encoding */
enum otlp_wire_type { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

struct resource_cache;

struct otlp_out {
	struct out_bytes *out;
	bool json;
	unsigned depth;
	size_t begins[OTLP_DEPTH_MAX]; /* where the contents of each open message begin */
	bool follows;                  /* JSON: the next value needs a comma */
};

/* The whole request. */
void otlp_request_begin(struct otlp_out *otlp, struct out_bytes *out, bool json);
void otlp_request_end(struct otlp_out *otlp);

/* A message with its length in front of it, so that others can follow in the same file. otlp_end()
 * ends it. */
void otlp_delimited_begin(struct otlp_out *otlp, struct out_bytes *out);

/* A message in a field, or an item of a list of messages. */
void otlp_begin(struct otlp_out *otlp, unsigned field, const char *name);
void otlp_item_begin(struct otlp_out *otlp, unsigned field);
void otlp_end(struct otlp_out *otlp);
void otlp_list_begin(struct otlp_out *otlp, const char *name);
void otlp_list_end(struct otlp_out *otlp);

/* Invalid UTF-8 becomes U+FFFD. */
void otlp_text_len(struct otlp_out *otlp, unsigned field, const char *name, const char *text,
		   size_t len);
static inline void otlp_text(struct otlp_out *otlp, unsigned field, const char *name,
			     const char *text)
{
	otlp_text_len(otlp, field, name, text, strlen(text));
}
/* An id: one or two 64-bit words, the most significant byte first. */
void otlp_id(struct otlp_out *otlp, unsigned field, const char *name, uint64_t id);
void otlp_id128(struct otlp_out *otlp, unsigned field, const char *name, uint64_t hi, uint64_t lo);
/* int64 and uint64 */
void otlp_int64(struct otlp_out *otlp, unsigned field, const char *name, int64_t value);
/* fixed64 and sfixed64 */
void otlp_fixed64(struct otlp_out *otlp, unsigned field, const char *name, uint64_t value);
/* uint32, enum and bool */
void otlp_number(struct otlp_out *otlp, unsigned field, const char *name, uint32_t value);
void otlp_bool(struct otlp_out *otlp, unsigned field, const char *name, bool value);
/* sint32 */
void otlp_signed(struct otlp_out *otlp, unsigned field, const char *name, int32_t value);
void otlp_double(struct otlp_out *otlp, unsigned field, const char *name, double value);
/* repeated uint64, packed */
void otlp_counts(struct otlp_out *otlp, unsigned field, const char *name, const uint64_t *counts,
		 size_t count);

/* ---- parts of all requests ---- */

/* Binary only: begins a KeyValue whose value is an AnyValue of this many bytes; `field` is
 * below 16. Returns where these go; NULL: it is JSON, the key is invalid UTF-8, or memory ran out,
 * and nothing was written. */
unsigned char *otlp_attribute_room(struct otlp_out *otlp, unsigned field, const char *key,
				   size_t value_len);
/* Bytes of a number as a varint. */
#define OTLP_VARINT_MAX 10
static inline size_t otlp_varint_len(uint64_t value)
{
	return (size_t)(9 * (63 - __builtin_clzll(value | 1)) + 73) / 64;
}
/* Writes it, and returns the end. */
static inline unsigned char *otlp_varint_put(unsigned char *at, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*at++ = (unsigned char)(value | 0x80);
	*at++ = (unsigned char)value;
	return at;
}
/* A KeyValue in the list of attributes whose items have this field. */
void otlp_attribute_text(struct otlp_out *otlp, unsigned field, const char *key, const char *text,
			 size_t len);
void otlp_attribute_int(struct otlp_out *otlp, unsigned field, const char *key, int64_t value);
void otlp_attribute_bool(struct otlp_out *otlp, unsigned field, const char *key, bool value);
void otlp_attribute_double(struct otlp_out *otlp, unsigned field, const char *key, double value);
/* The same for a value of a record; one without a value is left out. */
void otlp_attribute_value(struct otlp_out *otlp, unsigned field, const struct waffle_value *value);
/* The Resource of a process, field 1. With `facts`, they describe the process, which may be on
 * another host. `cache` may be NULL. */
void otlp_resource(struct otlp_out *otlp, const char *service, uint32_t pid,
		   const struct record_facts *facts, struct resource_cache *cache);
/* The InstrumentationScope, field 1. */
void otlp_scope(struct otlp_out *otlp);

#endif
