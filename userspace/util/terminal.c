// SPDX-License-Identifier: Apache-2.0
#include "util/terminal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static uint32_t character_bytes(const char *text, size_t len)
{
	unsigned char lead = (unsigned char)*text;
	uint32_t bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	return bytes <= len && utf8_valid(text, bytes) == bytes ? bytes : 0;
}

/* Marks of direction and line separators (Unicode 15: Bidi_Control, Zl, Zp), and the deprecated
 * format characters after them. */
static bool is_mark(uint32_t code)
{
	return code == 0x061c || code == 0x200e || code == 0x200f ||
	       (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x206f);
}

uint32_t terminal_control(const char *text, size_t len)
{
	const unsigned char *byte = (const unsigned char *)text;
	uint32_t bytes = character_bytes(text, len);

	if (bytes == 1)
		return (*byte && *byte < 0x20) || *byte == 0x7f;
	if (bytes == 2 && byte[0] == 0xc2 && byte[1] < 0xa0)
		return 2;
	if (bytes == 2)
		return is_mark((byte[0] & 0x1fu) << 6 | (byte[1] & 0x3fu)) ? 2 : 0;
	if (bytes == 3)
		return is_mark((byte[0] & 0x0fu) << 12 | (byte[1] & 0x3fu) << 6 | (byte[2] & 0x3fu))
			       ? 3
			       : 0;
	return 0;
}

struct terminal_char terminal_char(const char *text, size_t len)
{
	uint32_t bytes = character_bytes(text, len);

	if (*text == '\t')
		return (struct terminal_char){1, " ", 1};
	if (!bytes || !*text || terminal_control(text, len))
		return (struct terminal_char){bytes ? bytes : 1, REPLACEMENT, strlen(REPLACEMENT)};
	return (struct terminal_char){bytes, text, bytes};
}

int terminal_put(FILE *out, const char *text, size_t len)
{
	int columns = 0;

	for (size_t at = 0; at < len; columns++) {
		struct terminal_char c = terminal_char(text + at, len - at);

		fwrite(c.shown, 1, c.shown_bytes, out);
		at += c.bytes;
	}
	return columns;
}

static void message_put(FILE *out, bool fault, const char *format, va_list args)
{
	const char *line, *end;
	char *text;

	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	line = text ? text : "out of memory";
	while (fault && (end = strstr(line, "\n  "))) {
		terminal_put(out, line, (size_t)(end - line));
		fputc('\n', out);
		line = end + 1;
	}
	terminal_put(out, line, strlen(line));
	fputc('\n', out);
	free(text);
}

void terminal_message(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	message_put(out, false, format, args);
	va_end(args);
}

void terminal_fault(FILE *out, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	message_put(out, true, format, args);
	va_end(args);
}

void terminal_log(FILE *out, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		terminal_put(out, text, len);
		text += len;
		if (*text)
			fputc(*text++, out);
	}
}

bool terminal_has_colour(FILE *out)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(fileno(out)) && !(no_color && *no_color) && term && strcmp(term, "dumb");
}

void terminal_paint(FILE *out, bool colour, const char *sequence)
{
	if (colour)
		fputs(sequence, out);
}

const char *terminal_skip(const char *text, uint32_t columns)
{
	for (; columns && *text; columns--)
		while ((*++text & 0xc0) == 0x80)
			;
	return text;
}

uint32_t terminal_columns(const char *text)
{
	uint32_t columns = 0;

	for (; *text; text = terminal_skip(text, 1))
		columns++;
	return columns;
}

void terminal_put_cell(FILE *out, uint32_t width, const char *text)
{
	uint32_t columns = terminal_columns(text);

	fprintf(out, "%*s%s", columns < width ? (int)(width - columns) : 1, "", text);
}
