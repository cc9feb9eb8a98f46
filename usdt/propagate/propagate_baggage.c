// SPDX-License-Identifier: Apache-2.0
/* W3C Baggage (https://www.w3.org/TR/baggage/). Members that are not valid are dropped, the others
 * are passed on in their order and with their encoding. */
#include <errno.h>
#include <string.h>

#include "usdt/propagate/propagate_formats.h"
#include "util/utf8.h"

/* ---- the grammar ---- */

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* A token of HTTP (RFC 9110, 5.6.2). */
static bool key_valid(struct span_text key)
{
	for (size_t i = 0; i < key.len; i++)
		if (!is_alphanumeric(key.text[i]) &&
		    (!key.text[i] || !strchr("!#$%&'*+-.^_`|~", key.text[i])))
			return false;
	return key.len != 0;
}

static bool is_octet(char c)
{
	return c > ' ' && c <= '~' && c != '"' && c != ',' && c != ';' && c != '\\';
}

static bool value_valid(struct span_text value)
{
	for (size_t i = 0; i < value.len; i++)
		if (!is_octet(value.text[i]))
			return false;
	return true;
}

/* key[=value], without the spaces around them. */
struct baggage_pair {
	struct span_text key, value;
	bool has_value;
};

static bool pair_read(struct span_text text, struct baggage_pair *pair)
{
	pair->has_value = text_split(text, '=', &pair->key, &pair->value);
	pair->key = text_trim(pair->key);
	pair->value = text_trim(pair->value);
	return key_valid(pair->key) && (!pair->has_value || value_valid(pair->value));
}

/* key=value, then properties. */
static bool member_read(struct span_text member, struct baggage_pair *pair,
			struct span_text *properties)
{
	struct span_text first;

	text_split(member, ';', &first, properties);
	return pair_read(first, pair) && pair->has_value;
}

static bool properties_valid(struct span_text properties)
{
	struct span_text part;
	struct baggage_pair pair;

	while (text_next(&properties, ';', &part))
		if (!pair_read(part, &pair))
			return false;
	return true;
}

/* ---- writing ---- */

/* Bytes at the end of a list, which are taken back if not all fit. */
struct writing {
	char *text;
	size_t len, size;
	bool full;
};

static void write_text(struct writing *out, struct span_text text)
{
	if (out->full || text.len >= out->size - out->len) {
		out->full = true;
		return;
	}
	if (text.len)
		memcpy(out->text + out->len, text.text, text.len);
	out->len += text.len;
}

static void write_pair(struct writing *out, const char *before, const struct baggage_pair *pair)
{
	write_text(out, text_of(before));
	write_text(out, pair->key);
	if (!pair->has_value)
		return;
	write_text(out, text_of("="));
	write_text(out, pair->value);
}

static void write_properties(struct writing *out, struct span_text properties)
{
	struct span_text part;
	struct baggage_pair pair;

	while (text_next(&properties, ';', &part)) {
		pair_read(part, &pair);
		write_pair(out, ";", &pair);
	}
}

/* '+' is encoded, since some readers take it for a space. */
static void write_encoded(struct writing *out, const char *value)
{
	static const char digits[] = "0123456789ABCDEF";

	for (; *value; value++) {
		char code[3] = {'%', digits[(unsigned char)*value >> 4],
				digits[(unsigned char)*value & 15]};
		bool plain = is_octet(*value) && *value != '%' && *value != '+';

		write_text(out, plain ? (struct span_text){value, 1} : (struct span_text){code, 3});
	}
}

/* Ends a member that begins at `begin`. False: it did not fit, and is removed. */
static bool write_end(struct writing *out, size_t begin)
{
	bool done = !out->full;

	if (!done)
		out->len = begin;
	out->full = false;
	out->text[out->len] = '\0';
	return done;
}

/* ---- the format ---- */

/* Adds the members of a line. False: the list is full. */
static bool line_add(struct writing *out, struct span_text line)
{
	struct span_text member, properties;
	struct baggage_pair pair;

	while (text_next(&line, ',', &member)) {
		size_t begin = out->len;

		if (!member_read(member, &pair, &properties) || !properties_valid(properties))
			continue;
		write_pair(out, begin ? "," : "", &pair);
		write_properties(out, properties);
		if (!write_end(out, begin))
			return false;
	}
	return true;
}

void baggage_extract(const struct waffle_carrier *carrier, struct waffle_wire_context *wire)
{
	struct writing out = {wire->baggage, 0, sizeof(wire->baggage), false};
	struct span_text line;

	*wire->baggage = '\0';
	for (size_t index = 0; index < PROPAGATE_LINES_MAX; index++)
		if (!carrier_line(carrier, "baggage", index, &line) || !line_add(&out, line))
			break;
}

int baggage_inject(const struct waffle_carrier *carrier, const struct outgoing *out)
{
	return *out->baggage ? carrier->set(carrier->user, "baggage", out->baggage) : 0;
}

/* ---- members ---- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* A '%' that no two digits follow stands for itself. Returns the length. */
static size_t decode(struct span_text value, char *out)
{
	size_t len = 0;

	for (size_t i = 0; i < value.len; i++) {
		bool coded = value.text[i] == '%' && value.len - i > 2 &&
			     hex_digit(value.text[i + 1]) >= 0 && hex_digit(value.text[i + 2]) >= 0;

		out[len++] = coded ? (char)(hex_digit(value.text[i + 1]) << 4 |
					    hex_digit(value.text[i + 2]))
				   : value.text[i];
		i += coded ? 2 : 0;
	}
	return len;
}

static bool member_find(const char *list, struct span_text key, struct span_text *value)
{
	struct span_text rest = text_of(list), member, properties;
	struct baggage_pair pair;
	bool found = false;

	while (text_next(&rest, ',', &member)) {
		if (!member_read(member, &pair, &properties) || !text_equal(pair.key, key))
			continue;
		*value = pair.value;
		found = true;
	}
	return found;
}

/* Appends what fits, and counts all. */
static void copy_part(char *out, size_t size, long *len, const char *text, size_t text_len)
{
	for (size_t i = 0; i < text_len; i++, ++*len)
		if ((size_t)*len + 1 < size)
			out[*len] = text[i];
}

PROPAGATE_API long waffle_baggage_get(const struct waffle_wire_context *wire, const char *key,
				      char *value, size_t size)
{
	char decoded[WAFFLE_BAGGAGE_MAX];
	struct span_text found = {NULL, 0};
	size_t len, at = 0;
	long result = 0;

	if (!member_find(wire->baggage, text_of(key), &found))
		return -ENOENT;
	len = decode(found, decoded);
	while (at < len) {
		size_t valid = utf8_valid(decoded + at, len - at);

		copy_part(value, size, &result, decoded + at, valid);
		at += valid;
		if (at < len)
			copy_part(value, size, &result, "\xef\xbf\xbd", 3); /* U+FFFD */
		at++;
	}
	if (size)
		value[(size_t)result < size ? (size_t)result : size - 1] = '\0';
	return result;
}

/* Writes all members but those of a key. */
static void write_others(struct writing *out, const char *list, struct span_text key)
{
	struct span_text rest = text_of(list), member, properties;
	struct baggage_pair pair;

	while (text_next(&rest, ',', &member)) {
		if (!member.len ||
		    (member_read(member, &pair, &properties) && text_equal(pair.key, key)))
			continue;
		write_text(out, text_of(out->len ? "," : ""));
		write_text(out, member);
	}
}

PROPAGATE_API int waffle_baggage_set(struct waffle_wire_context *wire, const char *key,
				     const char *value, const char *properties)
{
	struct span_text more = {properties, properties ? strlen(properties) : 0};
	struct span_text name = text_of(key);
	char text[WAFFLE_BAGGAGE_MAX + 1];
	struct writing out = {text, 0, sizeof(text), false};

	if (!key_valid(name) || (value && properties && !properties_valid(more)))
		return -EINVAL;
	write_others(&out, wire->baggage, name);
	if (value) {
		write_text(&out, text_of(out.len ? "," : ""));
		write_text(&out, name);
		write_text(&out, text_of("="));
		write_encoded(&out, value);
		write_properties(&out, more);
	}
	if (!write_end(&out, 0))
		return -ENOSPC;
	memcpy(wire->baggage, text, out.len + 1);
	return 0;
}
