// SPDX-License-Identifier: Apache-2.0
#include "util/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_gen.h>

#include "util/memory.h"
#include "util/terminal.h"
#include "util/utf8.h"
#include "util/yajl_memory.h"

/* Bytes to collect before writing to the FILE. */
#define FLUSH_BYTES ((size_t)256 << 10)

struct json {
	yajl_gen gen;
	FILE *out;
	int error;
	bool pretty;
	bool open; /* there is output after the last newline */
	unsigned depth;
};

struct json *json_new(FILE *out, bool pretty)
{
	yajl_alloc_funcs allocator = yajl_memory();
	struct json *json = calloc(1, sizeof(*json));

	if (!json)
		return NULL;
	json->out = out;
	json->pretty = pretty;
	json->gen = yajl_gen_alloc(&allocator);
	if (!json->gen) {
		free(json);
		return NULL;
	}
	if (pretty) {
		yajl_gen_config(json->gen, yajl_gen_beautify, 1);
		yajl_gen_config(json->gen, yajl_gen_indent_string, "  ");
	}
	return json;
}

static void write_out(struct json *json, size_t at_least)
{
	const unsigned char *buf;
	size_t len;

	if (yajl_gen_get_buf(json->gen, &buf, &len) != yajl_gen_status_ok || len < at_least)
		return;
	errno = 0;
	if (!json->error && fwrite(buf, 1, len, json->out) != len)
		json->error = errno ? -errno : -EIO;
	yajl_gen_clear(json->gen);
}

int json_close(struct json *json)
{
	int err;

	if (!json)
		return -ENOMEM;
	if (json->depth != 0 && !json->error)
		json->error = -EINVAL;
	write_out(json, 1);
	/* In pretty mode yajl itself ends a complete value with a newline. */
	if (json->open && !json->pretty && !json->error && putc('\n', json->out) == EOF)
		json->error = -EIO;
	err = json->error;
	yajl_gen_free(json->gen);
	free(json);
	return err;
}

static void check(struct json *json, yajl_gen_status status)
{
	json->open = true;
	if (status != yajl_gen_status_ok && !json->error)
		json->error = -EINVAL;
	write_out(json, FLUSH_BYTES);
}

static void value_end(struct json *json, const char *separator)
{
	if (!json)
		return;
	if (json->depth != 0 && !json->error)
		json->error = -EINVAL;
	yajl_gen_reset(json->gen, separator);
	json->open = false;
	write_out(json, FLUSH_BYTES);
}

void json_line(struct json *json)
{
	value_end(json, json && json->pretty ? NULL : "\n");
}

void json_next(struct json *json)
{
	value_end(json, ",\n");
}

int json_flush(struct json *json)
{
	if (!json)
		return -ENOMEM;
	write_out(json, 1);
	return json->error;
}

void json_object_begin(struct json *json)
{
	if (!json)
		return;
	json->depth++;
	check(json, yajl_gen_map_open(json->gen));
}

void json_object_end(struct json *json)
{
	if (!json)
		return;
	json->depth--;
	check(json, yajl_gen_map_close(json->gen));
}

void json_array_begin(struct json *json)
{
	if (!json)
		return;
	json->depth++;
	check(json, yajl_gen_array_open(json->gen));
}

void json_array_end(struct json *json)
{
	if (!json)
		return;
	json->depth--;
	check(json, yajl_gen_array_close(json->gen));
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

/* Writes a string with \u for each control character that yajl would write unescaped. */
static void string_escaped(struct json *json, const char *text, size_t len)
{
	char *quoted = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&quoted, &bytes);

	if (!out) {
		json->error = json->error ?: -ENOMEM;
		return;
	}
	fputc('"', out);
	for (size_t at = 0; at < len;) {
		uint32_t control = terminal_control(text + at, len - at);

		if (control) {
			fprintf(out, "\\u%04x",
				control_code((const unsigned char *)text + at, control));
		} else {
			if (text[at] == '"' || text[at] == '\\')
				fputc('\\', out);
			if (text[at])
				fputc(text[at], out);
			else
				fputs("\\u0000", out);
		}
		at += control ? control : 1;
	}
	fputc('"', out);
	if (fclose(out))
		json->error = json->error ?: -ENOMEM;
	else
		check(json, yajl_gen_number(json->gen, quoted, bytes)); /* written unchanged */
	free(quoted);
}

static void string_valid(struct json *json, const char *text, size_t len)
{
	if (plain_length(text, len) < len)
		string_escaped(json, text, len);
	else
		check(json, yajl_gen_string(json->gen, (const unsigned char *)text, len));
}

/* Keys are names of waffle's own or from sites, and need not be restored exactly: control
 * characters are replaced. */
void json_key(struct json *json, const char *key)
{
	size_t len = strlen(key), bytes = 0;
	char *shown = NULL;
	FILE *out;

	if (!json)
		return;
	if (utf8_valid(key, len) == len && plain_length(key, len) == len) {
		check(json, yajl_gen_string(json->gen, (const unsigned char *)key, len));
		return;
	}
	out = open_memstream(&shown, &bytes);
	if (out)
		terminal_put(out, key, len);
	if (!out || fclose(out))
		json->error = json->error ?: -ENOMEM;
	else
		check(json, yajl_gen_string(json->gen, (const unsigned char *)shown, bytes));
	free(shown);
}

void json_string(struct json *json, const char *text)
{
	json_string_len(json, text, strlen(text));
}

static void string_cleaned(struct json *json, const char *text, size_t len)
{
	char *clean = malloc(UTF8_CLEAN_MAX(len));
	size_t written;

	if (!clean) {
		json->error = json->error ?: -ENOMEM;
		return;
	}
	written = utf8_clean(text, len, clean);
	string_valid(json, clean, written);
	free(clean);
}

void json_string_len(struct json *json, const char *text, size_t len)
{
	if (!json)
		return;
	if (utf8_valid(text, len) != len)
		string_cleaned(json, text, len);
	else
		string_valid(json, text, len);
}

void json_number(struct json *json, const char *digits, size_t len)
{
	if (!json)
		return;
	check(json, yajl_gen_number(json->gen, digits, len));
}

/* Writes the digits itself: yajl takes only long long, and printf is slower. */
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
	if (!json)
		return;
	check(json, yajl_gen_bool(json->gen, value));
}

void json_null(struct json *json)
{
	if (!json)
		return;
	check(json, yajl_gen_null(json->gen));
}

void json_hex64(struct json *json, uint64_t value)
{
	char digits[16];

	for (int i = 15; i >= 0; i--, value >>= 4)
		digits[i] = "0123456789abcdef"[value & 15];
	json_string_len(json, digits, sizeof(digits));
}
