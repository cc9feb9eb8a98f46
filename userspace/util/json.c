// SPDX-License-Identifier: Apache-2.0
#include "util/json.h"

#include <endian.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/terminal.h"
#include "util/utf8.h"

/* Bytes to collect before writing to the FILE. */
#define FLUSH_BYTES ((size_t)256 << 10)

#define DEPTH_MAX 128

/* What the innermost object or array expects next. */
enum json_state {
	EXPECT_VALUE, /* outside of all */
	EXPECT_FIRST_KEY,
	EXPECT_KEY,
	EXPECT_MEMBER, /* the value of a key */
	EXPECT_FIRST_ELEMENT,
	EXPECT_ELEMENT,
	EXPECT_NOTHING, /* the value is complete */
};

struct json {
	FILE *out;
	char *buffer;
	size_t len, cap;
	size_t flush_at; /* length to write out at */
	int error;
	bool pretty;
	bool open; /* there is output after the last newline */
	unsigned depth;
	uint8_t states[DEPTH_MAX];
};

struct json *json_new(FILE *out, bool pretty)
{
	struct json *json = calloc(1, sizeof(*json));

	if (!json)
		return NULL;
	json->out = out;
	json->pretty = pretty;
	json->flush_at = out ? FLUSH_BYTES : SIZE_MAX;
	return json;
}

static __attribute__((noinline)) void write_out(struct json *json)
{
	errno = 0;
	if (!json->error && fwrite(json->buffer, 1, json->len, json->out) != json->len)
		json->error = errno ? -errno : -EIO;
	json->len = 0;
}

static void fail(struct json *json, int code)
{
	if (!json->error)
		json->error = code;
}

int json_close(struct json *json)
{
	int err;

	if (!json)
		return -ENOMEM;
	if (json->depth)
		fail(json, -EINVAL);
	if (json->len && json->out)
		write_out(json);
	/* In pretty mode a complete value ends with a newline already. */
	if (json->open && !json->pretty && !json->error && json->out &&
	    putc('\n', json->out) == EOF)
		json->error = -EIO;
	err = json->error;
	free(json->buffer);
	free(json);
	return err;
}

/* ---- the buffer ---- */

static __attribute__((noinline, cold)) void grow(struct json *json, size_t bytes)
{
	json->cap = 2 * json->cap + bytes + 1024;
	json->buffer = memory_resize(json->buffer, json->cap, 1);
}

/* Room for so many more bytes, and one. */
static inline char *room(struct json *json, size_t bytes)
{
	if (__builtin_expect(json->cap - json->len <= bytes, 0))
		grow(json, bytes);
	return json->buffer + json->len;
}

static inline void put(struct json *json, char c)
{
	*room(json, 1) = c;
	json->len++;
}

static inline void put_bytes(struct json *json, const char *text, size_t len)
{
	memcpy(room(json, len), text, len);
	json->len += len;
}

/* ---- values and their order ---- */

static void indent_put(struct json *json)
{
	memset(room(json, 2 * (size_t)json->depth), ' ', 2 * (size_t)json->depth);
	json->len += 2 * (size_t)json->depth;
}

/* The newline and the spaces before a value or a key. */
static void pretty_begin(struct json *json, enum json_state state)
{
	if (state == EXPECT_KEY || state == EXPECT_ELEMENT)
		put(json, '\n');
	if (state == EXPECT_MEMBER)
		put(json, ' ');
	else
		indent_put(json);
}

/* Begins a value or a key with what separates it from the one before. Returns where it goes, with
 * room for `bytes`. NULL: none may be here. */
static inline char *value_begin(struct json *json, bool is_string, size_t bytes)
{
	/* What stands in front. Without a branch, since it changes from value to value. */
	static const char separators[] = {
		[EXPECT_KEY] = ',',
		[EXPECT_MEMBER] = ':',
		[EXPECT_ELEMENT] = ',',
		[EXPECT_NOTHING] = 0,
	};
	enum json_state state = json->states[json->depth];
	char *to;

	json->open = true;
	if (state == EXPECT_NOTHING ||
	    (!is_string && (state == EXPECT_KEY || state == EXPECT_FIRST_KEY))) {
		fail(json, -EINVAL);
		return NULL;
	}
	to = room(json, bytes + 1);
	*to = separators[state];
	json->len += separators[state] != 0;
	if (!json->pretty)
		return json->buffer + json->len;
	pretty_begin(json, state);
	return room(json, bytes);
}

static inline void value_end(struct json *json)
{
	static const uint8_t next[] = {
		[EXPECT_VALUE] = EXPECT_NOTHING,
		[EXPECT_FIRST_KEY] = EXPECT_MEMBER,
		[EXPECT_KEY] = EXPECT_MEMBER,
		[EXPECT_MEMBER] = EXPECT_KEY,
		[EXPECT_FIRST_ELEMENT] = EXPECT_ELEMENT,
		[EXPECT_ELEMENT] = EXPECT_ELEMENT,
		[EXPECT_NOTHING] = EXPECT_NOTHING,
	};
	uint8_t *state = &json->states[json->depth];

	*state = next[*state];
	if (json->pretty && *state == EXPECT_NOTHING)
		put(json, '\n');
	if (json->len >= json->flush_at)
		write_out(json);
}

static void nest(struct json *json, char bracket, enum json_state state)
{
	if (!json || !value_begin(json, false, 1))
		return;
	if (json->depth + 1 == DEPTH_MAX) {
		fail(json, -EINVAL);
		return;
	}
	json->states[++json->depth] = state;
	put(json, bracket);
	if (json->pretty)
		put(json, '\n');
}

static void unnest(struct json *json, char bracket)
{
	if (!json)
		return;
	if (!json->depth) {
		fail(json, -EINVAL);
		return;
	}
	json->depth--;
	if (json->pretty) {
		put(json, '\n');
		indent_put(json);
	}
	put(json, bracket);
	value_end(json);
}

void json_object_begin(struct json *json)
{
	nest(json, '{', EXPECT_FIRST_KEY);
}

void json_object_end(struct json *json)
{
	unnest(json, '}');
}

void json_array_begin(struct json *json)
{
	nest(json, '[', EXPECT_FIRST_ELEMENT);
}

void json_array_end(struct json *json)
{
	unnest(json, ']');
}

static void line_end(struct json *json, const char *separator)
{
	if (!json)
		return;
	if (json->depth)
		fail(json, -EINVAL);
	json->depth = 0;
	json->states[0] = EXPECT_VALUE;
	put_bytes(json, separator, strlen(separator));
	json->open = false;
	if (json->len >= json->flush_at)
		write_out(json);
}

void json_line(struct json *json)
{
	line_end(json, json && json->pretty ? "" : "\n");
}

void json_next(struct json *json)
{
	line_end(json, ",\n");
}

int json_flush(struct json *json)
{
	if (!json)
		return -ENOMEM;
	if (json->len && json->out)
		write_out(json);
	return json->error;
}

void json_outside(struct json *json, const char *text)
{
	if (json)
		put_bytes(json, text, strlen(text));
}

const char *json_take(struct json *json, size_t *len)
{
	*len = json->len;
	json->len = 0;
	return json->buffer;
}

/* ---- strings ---- */

/* Whether a character can be written as it is: printable ASCII. */
static inline bool is_plain_byte(unsigned char byte)
{
	static const uint32_t plain[8] = {
		[1] = 0xffffffff & ~(1u << ('"' - 32)),
		[2] = 0xffffffff & ~(1u << ('\\' - 64)),
		[3] = 0x7fffffff,
	};

	return plain[byte / 32] >> byte % 32 & 1;
}

/* Whether all of a text is. */
static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_plain_byte((unsigned char)text[i]))
			return false;
	return true;
}

/* Position of the first character that JSON does not need to escape but a terminal does; `len`:
 * none. */
static size_t plain_length(const char *text, size_t len)
{
	size_t at = 0;

	for (; at < len; at++) {
		unsigned char byte = (unsigned char)text[at];

		if ((byte == 0x7f || byte >= 0xc2) && terminal_control(text + at, len - at))
			break;
	}
	return at;
}

/* The code point of a control character in UTF-8, U+0000 to U+FFFF. */
static unsigned control_code(const unsigned char *byte, uint32_t bytes)
{
	if (bytes == 1)
		return *byte;
	if (bytes == 2)
		return (byte[0] & 0x1fu) << 6 | (byte[1] & 0x3fu);
	return (byte[0] & 0x0fu) << 12 | (byte[1] & 0x3fu) << 6 | (byte[2] & 0x3fu);
}

/* A string with \u for each control character, also for those that JSON does not need to escape. */
static void put_escaped(struct json *json, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		uint32_t control = terminal_control(text + at, len - at);

		if (control) {
			json->len += (size_t)sprintf(
				room(json, 16), "\\u%04x",
				control_code((const unsigned char *)text + at, control));
		} else if (!text[at]) {
			put_bytes(json, "\\u0000", 6);
		} else {
			if (text[at] == '"' || text[at] == '\\')
				put(json, '\\');
			put(json, text[at]);
		}
		at += control ? control : 1;
	}
}

/* A string with what JSON escapes. */
static void put_string(struct json *json, const char *text, size_t len)
{
	static const char escapes[] = "\"\"\\\\\bb\ff\nn\rr\tt";

	for (size_t at = 0; at < len; at++) {
		unsigned char byte = (unsigned char)text[at];
		const char *escape = byte ? strchr(escapes, byte) : NULL;

		if (byte >= ' ' && byte != '"' && byte != '\\') {
			put(json, text[at]);
		} else if (escape) {
			put(json, '\\');
			put(json, escape[1]);
		} else {
			json->len += (size_t)sprintf(room(json, 16), "\\u%04X", byte);
		}
	}
}

static void plain_put(struct json *json, const char *text, size_t len)
{
	char *to = value_begin(json, true, len + 2);

	if (!to)
		return;
	*to++ = '"';
	memcpy(to, text, len);
	to[len] = '"';
	json->len += len + 2;
	value_end(json);
}

/* Valid UTF-8. */
static void string_put(struct json *json, const char *text, size_t len)
{
	if (!value_begin(json, true, 1))
		return;
	put(json, '"');
	if (plain_length(text, len) < len)
		put_escaped(json, text, len);
	else
		put_string(json, text, len);
	put(json, '"');
	value_end(json);
}

void json_key_plain_(struct json *json, const char *key, size_t len)
{
	if (json)
		plain_put(json, key, len);
}

/* Keys are names of waffle's own or from sites, and need not be restored exactly: control
 * characters are replaced. */
static void key_shown(struct json *json, const char *key)
{
	size_t len = strlen(key), bytes = 0;
	char *shown = NULL;
	FILE *out;

	if (utf8_valid(key, len) == len && plain_length(key, len) == len) {
		string_put(json, key, len);
		return;
	}
	out = open_memstream(&shown, &bytes);
	if (out)
		terminal_put(out, key, len);
	if (!out || fclose(out))
		fail(json, -ENOMEM);
	else
		string_put(json, shown, bytes);
	free(shown);
}

/* Length of the plain text at the beginning. */
static inline size_t plain_prefix(const char *text)
{
	size_t len = 0;

	while (is_plain_byte((unsigned char)text[len]))
		len++;
	return len;
}

void json_key_any_(struct json *json, const char *key)
{
	size_t len = plain_prefix(key);

	if (!json)
		return;
	if (!key[len])
		plain_put(json, key, len);
	else
		key_shown(json, key);
}

void json_string(struct json *json, const char *text)
{
	size_t len = plain_prefix(text);

	if (json && !text[len])
		plain_put(json, text, len);
	else
		json_string_len(json, text, len + strlen(text + len));
}

static void string_cleaned(struct json *json, const char *text, size_t len)
{
	char *clean = malloc(UTF8_CLEAN_MAX(len));

	if (clean)
		string_put(json, clean, utf8_clean(text, len, clean));
	else
		fail(json, -ENOMEM);
	free(clean);
}

void json_string_len(struct json *json, const char *text, size_t len)
{
	if (!json)
		return;
	if (is_plain(text, len))
		plain_put(json, text, len);
	else if (utf8_valid(text, len) != len)
		string_cleaned(json, text, len);
	else
		string_put(json, text, len);
}

/* ---- all else ---- */

/* Text that is written as it is. */
static void word_put(struct json *json, const char *text, size_t len)
{
	char *to = json ? value_begin(json, false, len) : NULL;

	if (!to)
		return;
	memcpy(to, text, len);
	json->len += len;
	value_end(json);
}

void json_number(struct json *json, const char *digits, size_t len)
{
	word_put(json, digits, len);
}

#define DIGITS_MAX 24

/* Writes the digits itself, since printf() is slower. */
static void number(struct json *json, uint64_t value, bool negative)
{
	char digits[2 * DIGITS_MAX], *at = digits + DIGITS_MAX,
				     *to = json ? value_begin(json, false, DIGITS_MAX) : NULL;

	if (!to)
		return;
	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	if (negative)
		*--at = '-';
	/* The same length each time, which needs no call. What is behind the digits is overwritten.
	 */
	memcpy(to, at, DIGITS_MAX);
	json->len += (size_t)(digits + DIGITS_MAX - at);
	value_end(json);
}

void json_i64(struct json *json, int64_t value)
{
	number(json, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

void json_u64(struct json *json, uint64_t value)
{
	number(json, value, false);
}

size_t json_plain_point(char *digits, size_t len)
{
	size_t kept = 0;

	for (size_t at = 0; at < len; at++) {
		if (strchr("0123456789+-e", digits[at]))
			digits[kept++] = digits[at];
		else if (!kept || digits[kept - 1] != '.')
			digits[kept++] = '.';
	}
	digits[kept] = '\0';
	return kept;
}

void json_f64(struct json *json, double value)
{
	char digits[40];
	int len;

	if (isnan(value)) {
		json_string(json, "NaN");
		return;
	}
	if (isinf(value)) {
		json_string(json, value < 0 ? "-Infinity" : "Infinity");
		return;
	}
	/* Use the shorter form if it reads back as the same number. */
	len = snprintf(digits, sizeof(digits), "%.15g", value);
	if (strtod(digits, NULL) != value)
		len = snprintf(digits, sizeof(digits), "%.17g", value);
	len = (int)json_plain_point(digits, (size_t)len);
	if (strspn(digits, "-0123456789") == (size_t)len) /* marks it as a double for readers */
		len += snprintf(digits + len, sizeof(digits) - (size_t)len, ".0");
	json_number(json, digits, (size_t)len);
}

void json_bool(struct json *json, bool value)
{
	word_put(json, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json *json)
{
	word_put(json, "null", 4);
}

/* The hexadecimal digits of 32 bits, as the eight bytes of a number. */
static uint64_t hex_digits(uint64_t value)
{
	uint64_t over;

	value = (value << 16 | value) & 0x0000ffff0000ffff;
	value = (value << 8 | value) & 0x00ff00ff00ff00ff;
	value = (value << 4 | value) & 0x0f0f0f0f0f0f0f0f;
	over = (value + 0x0606060606060606) >> 4 & 0x0101010101010101; /* a to f */
	return value + 0x3030303030303030 + over * ('a' - '0' - 10);
}

void json_hex64(struct json *json, uint64_t value)
{
	uint64_t high = htobe64(hex_digits(value >> 32)),
		 low = htobe64(hex_digits(value & 0xffffffff));
	char *to = json ? value_begin(json, true, 18) : NULL;

	if (!to)
		return;
	to[0] = to[17] = '"';
	memcpy(to + 1, &high, 8);
	memcpy(to + 9, &low, 8);
	json->len += 18;
	value_end(json);
}
