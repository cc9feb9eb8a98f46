// SPDX-License-Identifier: Apache-2.0
#include "export/process/bytes_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/json.h"
#include "util/terminal.h"

#define CAP_MIN 256

bool bytes_grow_(struct out_bytes *bytes, size_t len)
{
	size_t cap = bytes->cap ? bytes->cap : CAP_MIN;
	char *data;

	if (bytes->failed)
		return false;
	if (len <= bytes->cap - bytes->len)
		return true;
	while (cap - bytes->len < len && cap < SIZE_MAX / 2)
		cap *= 2;
	data = cap - bytes->len < len ? NULL : realloc(bytes->data, cap);
	if (!data) {
		bytes->failed = true;
		return false;
	}
	bytes->data = data;
	bytes->cap = cap;
	return true;
}

void bytes_add_slow_(struct out_bytes *bytes, const void *data, size_t len)
{
	if (!len || !bytes_grow_(bytes, len))
		return;
	memcpy(bytes->data + bytes->len, data, len);
	bytes->len += len;
}

void bytes_print(struct out_bytes *bytes, const char *format, ...)
{
	char text[256];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len < 0)
		return;
	if ((size_t)len < sizeof(text)) {
		bytes_add(bytes, text, (size_t)len);
	} else if (bytes_grow_(bytes, (size_t)len + 1)) {
		va_start(args, format);
		vsnprintf(bytes->data + bytes->len, (size_t)len + 1, format, args);
		va_end(args);
		bytes->len += (size_t)len;
	}
}

void bytes_u64(struct out_bytes *bytes, uint64_t value)
{
	char text[20];
	size_t at = sizeof(text);

	do {
		text[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	bytes_add(bytes, text + at, sizeof(text) - at);
}

void bytes_hex64(struct out_bytes *bytes, uint64_t value)
{
	char text[16];

	for (unsigned i = 16; i-- > 0; value >>= 4)
		text[i] = "0123456789abcdef"[value & 15];
	bytes_add(bytes, text, sizeof(text));
}

void bytes_f64(struct out_bytes *bytes, double value)
{
	char text[40];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	/* The program's locale may have a decimal comma. */
	if (isfinite(value))
		json_plain_point(text, strlen(text));
	bytes_text(bytes, text);
}

void bytes_free(struct out_bytes *bytes)
{
	free(bytes->data);
	*bytes = (struct out_bytes){0};
}

/* ---- JSON ---- */

/* The code point of a valid UTF-8 sequence. */
static uint32_t code_point(const unsigned char *at, size_t len)
{
	if (len == 1)
		return at[0];
	if (len == 2)
		return (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
	return (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
}

static size_t json_char(struct out_bytes *bytes, const char *text, size_t len)
{
	uint32_t control = terminal_control(text, len);
	struct terminal_char shown;

	if (*text == '"' || *text == '\\') {
		bytes_char(bytes, '\\');
		bytes_char(bytes, *text);
		return 1;
	}
	if (!*text)
		control = 1;
	/* All control characters are in the basic plane: at most three bytes. */
	if (control) {
		bytes_print(bytes, "\\u%04x", code_point((const unsigned char *)text, control));
		return control;
	}
	shown = terminal_char(text, len);
	bytes_add(bytes, shown.shown, shown.shown_bytes);
	return shown.bytes;
}

void bytes_json_string(struct out_bytes *bytes, const char *text, size_t len)
{
	size_t plain = 0;

	bytes_char(bytes, '"');
	for (size_t at = 0; at < len;) {
		while (at + plain < len && text[at + plain] >= ' ' && text[at + plain] < 0x7f &&
		       text[at + plain] != '"' && text[at + plain] != '\\')
			plain++;
		bytes_add(bytes, text + at, plain);
		at += plain;
		plain = 0;
		if (at < len)
			at += json_char(bytes, text + at, len - at);
	}
	bytes_char(bytes, '"');
}

void bytes_json_f64(struct out_bytes *bytes, double value)
{
	if (isnan(value))
		bytes_text(bytes, "\"NaN\"");
	else if (isinf(value))
		bytes_text(bytes, value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
	else
		bytes_f64(bytes, value);
}
