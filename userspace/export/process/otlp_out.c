// SPDX-License-Identifier: Apache-2.0
#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>

#include "export/process/otlp_out_internal.h"
#include "util/utf8.h"

/* ---- protobuf ---- */

static void varint(struct otlp_out *otlp, uint64_t value)
{
	unsigned char *at = (unsigned char *)bytes_room(otlp->out, OTLP_VARINT_MAX);

	if (at)
		otlp->out->len += (size_t)(otlp_varint_put(at, value) - at);
}

static void tag(struct otlp_out *otlp, unsigned field, enum otlp_wire_type type)
{
	varint(otlp, field << 3 | type);
}

static void fixed64(struct otlp_out *otlp, uint64_t value)
{
	uint64_t little = htole64(value);

	bytes_add(otlp->out, &little, sizeof(little));
}

/* message KeyValue { string key = 1; AnyValue value = 2; } Attributes are most of a request, so
 * they are written at once, with lengths that are known before. */
unsigned char *otlp_attribute_room(struct otlp_out *otlp, unsigned field, const char *key,
				   size_t value_len)
{
	size_t key_len = strlen(key), len, all;
	unsigned char *at;

	if (otlp->json || utf8_valid(key, key_len) < key_len)
		return NULL;
	len = 2 + otlp_varint_len(key_len) + key_len + otlp_varint_len(value_len) + value_len;
	all = 1 + otlp_varint_len(len) + len;
	at = (unsigned char *)bytes_room(otlp->out, all);
	if (!at)
		return NULL;
	*at++ = (unsigned char)(field << 3 | WIRE_BYTES);
	at = otlp_varint_put(at, len);
	*at++ = 1 << 3 | WIRE_BYTES;
	at = otlp_varint_put(at, key_len);
	memcpy(at, key, key_len);
	at += key_len;
	*at++ = 2 << 3 | WIRE_BYTES;
	otlp->out->len += all;
	return otlp_varint_put(at, value_len);
}

/* ---- JSON ---- */

static void separate(struct otlp_out *otlp)
{
	if (otlp->follows)
		bytes_char(otlp->out, ',');
	otlp->follows = true;
}

static void key(struct otlp_out *otlp, const char *name)
{
	separate(otlp);
	bytes_print(otlp->out, "\"%s\":", name);
}

/* ---- messages ---- */

/* `has_length`: the length is in front of it, for which one byte is left. That is enough for most.
 */
static void message_open(struct otlp_out *otlp, bool has_length)
{
	if (otlp->json) {
		bytes_char(otlp->out, '{');
		otlp->follows = false;
	} else if (has_length) {
		bytes_char(otlp->out, 0);
	}
	otlp->begins[otlp->depth++] = otlp->out->len;
}

void otlp_request_begin(struct otlp_out *otlp, struct out_bytes *out, bool json)
{
	*otlp = (struct otlp_out){.out = out, .json = json};
	message_open(otlp, false);
}

void otlp_request_end(struct otlp_out *otlp)
{
	otlp->depth--;
	if (otlp->json)
		bytes_char(otlp->out, '}');
}

void otlp_begin(struct otlp_out *otlp, unsigned field, const char *name)
{
	if (otlp->json)
		key(otlp, name);
	else
		tag(otlp, field, WIRE_BYTES);
	message_open(otlp, true);
}

void otlp_delimited_begin(struct otlp_out *otlp, struct out_bytes *out)
{
	*otlp = (struct otlp_out){.out = out};
	message_open(otlp, true);
}

void otlp_item_begin(struct otlp_out *otlp, unsigned field)
{
	if (otlp->json)
		separate(otlp);
	else
		tag(otlp, field, WIRE_BYTES);
	message_open(otlp, true);
}

/* The length of a message is known only now. */
void otlp_end(struct otlp_out *otlp)
{
	size_t begin = otlp->begins[--otlp->depth], len = otlp->out->len - begin;
	unsigned char bytes[OTLP_VARINT_MAX];
	size_t count = (size_t)(otlp_varint_put(bytes, len) - bytes);

	if (otlp->json) {
		bytes_char(otlp->out, '}');
		otlp->follows = true;
		return;
	}
	if (count > 1)
		bytes_add(otlp->out, bytes, count - 1);
	if (otlp->out->failed)
		return;
	if (count > 1)
		memmove(otlp->out->data + begin + count - 1, otlp->out->data + begin, len);
	memcpy(otlp->out->data + begin - 1, bytes, count);
}

void otlp_list_begin(struct otlp_out *otlp, const char *name)
{
	if (!otlp->json)
		return;
	key(otlp, name);
	bytes_char(otlp->out, '[');
	otlp->follows = false;
}

void otlp_list_end(struct otlp_out *otlp)
{
	if (!otlp->json)
		return;
	bytes_char(otlp->out, ']');
	otlp->follows = true;
}

/* ---- fields ---- */

static void text_clean(struct otlp_out *otlp, const char *text, size_t len)
{
	char *clean = malloc(UTF8_CLEAN_MAX(len) + 1);

	if (!clean) {
		otlp->out->failed = true;
		return;
	}
	len = utf8_clean(text, len, clean);
	varint(otlp, len);
	bytes_add(otlp->out, clean, len);
	free(clean);
}

/* Begins a field that is no message. Returns whether it is JSON. */
static bool field_begin(struct otlp_out *otlp, unsigned field, const char *name,
			enum otlp_wire_type type)
{
	if (otlp->json)
		key(otlp, name);
	else
		tag(otlp, field, type);
	return otlp->json;
}

void otlp_text_len(struct otlp_out *otlp, unsigned field, const char *name, const char *text,
		   size_t len)
{
	if (field_begin(otlp, field, name, WIRE_BYTES)) {
		bytes_json_string(otlp->out, text, len);
	} else if (utf8_valid(text, len) < len) {
		text_clean(otlp, text, len);
	} else {
		varint(otlp, len);
		bytes_add(otlp->out, text, len);
	}
}

static void id_words(struct otlp_out *otlp, unsigned field, const char *name, const uint64_t *words,
		     unsigned count)
{
	if (field_begin(otlp, field, name, WIRE_BYTES)) {
		bytes_char(otlp->out, '"');
		for (unsigned i = 0; i < count; i++)
			bytes_print(otlp->out, "%016" PRIx64, words[i]);
		bytes_char(otlp->out, '"');
		return;
	}
	varint(otlp, 8 * count);
	for (unsigned i = 0; i < count; i++)
		fixed64(otlp, __builtin_bswap64(words[i]));
}

void otlp_id(struct otlp_out *otlp, unsigned field, const char *name, uint64_t id)
{
	id_words(otlp, field, name, &id, 1);
}

void otlp_id128(struct otlp_out *otlp, unsigned field, const char *name, uint64_t hi, uint64_t lo)
{
	uint64_t words[] = {hi, lo};

	id_words(otlp, field, name, words, 2);
}

void otlp_int64(struct otlp_out *otlp, unsigned field, const char *name, int64_t value)
{
	if (field_begin(otlp, field, name, WIRE_VARINT))
		bytes_print(otlp->out, "\"%" PRId64 "\"", value);
	else
		varint(otlp, (uint64_t)value);
}

void otlp_fixed64(struct otlp_out *otlp, unsigned field, const char *name, uint64_t value)
{
	if (field_begin(otlp, field, name, WIRE_FIXED64))
		bytes_print(otlp->out, "\"%" PRIu64 "\"", value);
	else
		fixed64(otlp, value);
}

void otlp_number(struct otlp_out *otlp, unsigned field, const char *name, uint32_t value)
{
	if (field_begin(otlp, field, name, WIRE_VARINT))
		bytes_print(otlp->out, "%" PRIu32, value);
	else
		varint(otlp, value);
}

void otlp_bool(struct otlp_out *otlp, unsigned field, const char *name, bool value)
{
	if (field_begin(otlp, field, name, WIRE_VARINT))
		bytes_text(otlp->out, value ? "true" : "false");
	else
		varint(otlp, value);
}

void otlp_signed(struct otlp_out *otlp, unsigned field, const char *name, int32_t value)
{
	if (field_begin(otlp, field, name, WIRE_VARINT))
		bytes_print(otlp->out, "%" PRId32, value);
	else
		varint(otlp, (uint32_t)value << 1 ^ (uint32_t)(value >> 31)); /* zigzag */
}

void otlp_double(struct otlp_out *otlp, unsigned field, const char *name, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	if (field_begin(otlp, field, name, WIRE_FIXED64))
		bytes_json_f64(otlp->out, value);
	else
		fixed64(otlp, bits);
}

void otlp_counts(struct otlp_out *otlp, unsigned field, const char *name, const uint64_t *counts,
		 size_t count)
{
	if (otlp->json) {
		otlp_list_begin(otlp, name);
		for (size_t i = 0; i < count; i++) {
			separate(otlp);
			bytes_print(otlp->out, "\"%" PRIu64 "\"", counts[i]);
		}
		otlp_list_end(otlp);
		return;
	}
	otlp_begin(otlp, field, name);
	for (size_t i = 0; i < count; i++)
		varint(otlp, counts[i]);
	otlp_end(otlp);
}
