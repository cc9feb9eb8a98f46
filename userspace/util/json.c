// SPDX-License-Identifier: Apache-2.0
#include "util/json.h"

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
	return json;
}

static void write_out(struct json *json)
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
	if (json->len)
		write_out(json);
	/* In pretty mode a complete value ends with a newline already. */
	if (json->open && !json->pretty && !json->error && putc('\n', json->out) == EOF)
		json->error = -EIO;
	err = json->error;
	free(json->buffer);
	free(json);
	return err;
}

/* ---- the buffer ---- */

/* Room for so many more bytes, and one. */
static char *room(struct json *json, size_t bytes)
{
	if (json->cap - json->len <= bytes) {
		json->cap = 2 * json->cap + bytes + 1024;
		json->buffer = memory_resize(json->buffer, json->cap, 1);
	}
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

/* Begins a value or a key with what separates it from the one before. False: none may be here. */
static bool value_begin(struct json *json, bool is_string)
{
	enum json_state state = json->states[json->depth];

	json->open = true;
	if (state == EXPECT_NOTHING ||
	    (!is_string && (state == EXPECT_KEY || state == EXPECT_FIRST_KEY))) {
		fail(json, -EINVAL);
		return false;
	}
	if (state == EXPECT_KEY || state == EXPECT_ELEMENT)
		put(json, ',');
	else if (state == EXPECT_MEMBER)
		put(json, ':');
	if (!json->pretty)
		return true;
	if (state == EXPECT_KEY || state == EXPECT_ELEMENT)
		put(json, '\n');
	if (state == EXPECT_MEMBER)
		put(json, ' ');
	else
		indent_put(json);
	return true;
}

static void value_end(struct json *json)
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
	if (json->len >= FLUSH_BYTES)
		write_out(json);
}

static void nest(struct json *json, char bracket, enum json_state state)
{
	if (!json || !value_begin(json, false))
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
	if (json->len >= FLUSH_BYTES)
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
	if (json->len)
		write_out(json);
	return json->error;
}

/* ---- strings ---- */

/* Whether all of a text can be written as it is: printable ASCII. */
static bool is_plain(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte < ' ' || byte > '~' || byte == '"' || byte == '\\')
			return false;
	}
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

/* Valid UTF-8. */
static void string_put(struct json *json, const char *text, size_t len, bool plain)
{
	if (!value_begin(json, true))
		return;
	put(json, '"');
	if (plain)
		put_bytes(json, text, len);
	else if (plain_length(text, len) < len)
		put_escaped(json, text, len);
	else
		put_string(json, text, len);
	put(json, '"');
	value_end(json);
}

/* Keys are names of waffle's own or from sites, and need not be restored exactly: control
 * characters are replaced. */
void json_key(struct json *json, const char *key)
{
	size_t len = strlen(key), bytes = 0;
	bool plain = is_plain(key, len);
	char *shown = NULL;
	FILE *out;

	if (!json)
		return;
	if (plain || (utf8_valid(key, len) == len && plain_length(key, len) == len)) {
		string_put(json, key, len, plain);
		return;
	}
	out = open_memstream(&shown, &bytes);
	if (out)
		terminal_put(out, key, len);
	if (!out || fclose(out))
		fail(json, -ENOMEM);
	else
		string_put(json, shown, bytes, false);
	free(shown);
}

void json_string(struct json *json, const char *text)
{
	json_string_len(json, text, strlen(text));
}

static void string_cleaned(struct json *json, const char *text, size_t len)
{
	char *clean = malloc(UTF8_CLEAN_MAX(len));

	if (clean)
		string_put(json, clean, utf8_clean(text, len, clean), false);
	else
		fail(json, -ENOMEM);
	free(clean);
}

void json_string_len(struct json *json, const char *text, size_t len)
{
	bool plain = is_plain(text, len);

	if (!json)
		return;
	if (!plain && utf8_valid(text, len) != len)
		string_cleaned(json, text, len);
	else
		string_put(json, text, len, plain);
}

/* ---- all else ---- */

/* Text that is written as it is. */
static void word_put(struct json *json, const char *text, size_t len)
{
	if (!json || !value_begin(json, false))
		return;
	put_bytes(json, text, len);
	value_end(json);
}

void json_number(struct json *json, const char *digits, size_t len)
{
	word_put(json, digits, len);
}

/* Writes the digits itself, since printf() is slower. */
static void number(struct json *json, uint64_t value, bool negative)
{
	char digits[24], *at = digits + sizeof(digits);

	do {
		*--at = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	if (negative)
		*--at = '-';
	json_number(json, at, (size_t)(digits + sizeof(digits) - at));
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

void json_hex64(struct json *json, uint64_t value)
{
	char digits[16];

	for (int i = 15; i >= 0; i--, value >>= 4)
		digits[i] = "0123456789abcdef"[value & 15];
	json_string_len(json, digits, sizeof(digits));
}
