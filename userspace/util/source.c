// SPDX-License-Identifier: Apache-2.0
#include "util/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdbool.h>
#include <string.h>

#include "util/terminal.h"
#include "util/utf8.h"

#define INDENT 2
#define LINE_COLUMNS (100 - INDENT)
#define CUT "..."
#define CUT_COLUMNS 3
#define ORIGIN_COLUMNS 50
#define MESSAGE_BYTES 300
/* An origin and a line with four bytes a character, the message, a line number, the carets. */
_Static_assert(4 * (ORIGIN_COLUMNS + LINE_COLUMNS) + MESSAGE_BYTES + 20 + LINE_COLUMNS +
			       2 * INDENT <
		       sizeof(((struct error *)0)->message),
	       "a message fits");

static uint32_t count_columns(const char *text, size_t len)
{
	uint32_t columns = 0;

	for (size_t at = 0; at < len; columns++)
		at += terminal_char(text + at, len - at).bytes;
	return columns;
}

/* A text under construction; text beyond its room is dropped. */
struct source_builder {
	char *text;
	size_t len, room; /* including the NUL */
};

static void add(struct source_builder *builder, const char *text, size_t len)
{
	if (len >= builder->room - builder->len)
		return;
	memcpy(builder->text + builder->len, text, len);
	builder->len += len;
	builder->text[builder->len] = '\0';
}

/* Appends columns [first, first + count) of a text. */
static void add_columns(struct source_builder *builder, const char *text, size_t len,
			uint32_t first, uint32_t count)
{
	size_t at = 0;

	for (uint32_t i = 0; at < len && i < first + count; i++) {
		struct terminal_char column = terminal_char(text + at, len - at);

		if (i >= first)
			add(builder, column.shown, column.shown_bytes);
		at += column.bytes;
	}
}

static void add_many(struct source_builder *builder, char c, uint32_t count)
{
	while (count--)
		add(builder, &c, 1);
}

struct source_shown source_show(const char *text, size_t len)
{
	struct source_shown shown = {""};
	struct source_builder builder = {shown.text, 0, sizeof(shown.text)};
	uint32_t columns = count_columns(text, len);

	if (columns <= SOURCE_SHOWN_COLUMNS) {
		add_columns(&builder, text, len, 0, columns);
	} else {
		add_columns(&builder, text, len, 0, SOURCE_SHOWN_COLUMNS - CUT_COLUMNS);
		add(&builder, CUT, CUT_COLUMNS);
	}
	return shown;
}

/* First column to show of a line that is too long, so that the marked place appears with its
 * surroundings. */
static uint32_t window_first(uint32_t columns, uint32_t from, uint32_t to)
{
	uint32_t place = to - from > LINE_COLUMNS / 2 ? from + LINE_COLUMNS / 4 : (from + to) / 2;

	if (columns <= LINE_COLUMNS || place <= LINE_COLUMNS / 2)
		return 0;
	if (place + LINE_COLUMNS / 2 >= columns)
		return columns - LINE_COLUMNS;
	return place - LINE_COLUMNS / 2;
}

/* Adds a line of the source, and below it a mark under columns [from, to). */
static void add_line(struct source_builder *builder, const char *line, size_t len, uint32_t from,
		     uint32_t to)
{
	/* The place may be after the last column. */
	uint32_t columns = count_columns(line, len) + (to > count_columns(line, len));
	uint32_t first = window_first(columns, from, to), shown = columns - first;
	bool cut_before = first > 0, cut_after;

	if (shown > LINE_COLUMNS)
		shown = LINE_COLUMNS;
	cut_after = first + shown < columns;
	add_many(builder, ' ', INDENT);
	if (cut_before)
		add(builder, CUT, CUT_COLUMNS);
	add_columns(builder, line, len, first + CUT_COLUMNS * cut_before,
		    shown - CUT_COLUMNS * (cut_before + cut_after));
	if (cut_after)
		add(builder, CUT, CUT_COLUMNS);
	if (to > first + shown)
		to = first + shown;
	add(builder, "\n", 1);
	add_many(builder, ' ', INDENT + from - first);
	add(builder, "^", 1);
	add_many(builder, '~', to > from ? to - from - 1 : 0);
}

/* Adds "--filter: ", or for an expression of several lines "--filter: line 3: ". */
static void add_origin(struct source_builder *builder, const struct source *source, uint32_t at)
{
	char number[32];
	uint32_t line = 1;
	const char *origin = source->origin;
	uint32_t columns = count_columns(origin, strlen(origin)), first = 0;

	/* The end of a long path says more: it has the name of the file. */
	if (columns > ORIGIN_COLUMNS) {
		add(builder, CUT, CUT_COLUMNS);
		first = columns - ORIGIN_COLUMNS + CUT_COLUMNS;
	}
	add_columns(builder, origin, strlen(origin), first, ORIGIN_COLUMNS);
	add(builder, ": ", 2);
	if (!memchr(source->text, '\n', source->len))
		return;
	for (uint32_t i = 0; i < at; i++)
		line += source->text[i] == '\n';
	add(builder, number, (size_t)snprintf(number, sizeof(number), "line %u: ", line));
}

int source_fault(const struct source *source, uint32_t from, uint32_t to, struct error *err,
		 const char *format, ...)
{
	char message[sizeof(err->message)], text[MESSAGE_BYTES];
	struct source_builder builder = {message, 0, sizeof(message)};
	uint32_t begin = from, end = from;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	error_one_line(text); /* the only line breaks are those around the quoted line */
	while (begin > 0 && source->text[begin - 1] != '\n')
		begin--;
	while (end < source->len && source->text[end] != '\n')
		end++;
	/* The '\r' of a DOS line break is not part of the line. */
	if (end > begin && end > from && source->text[end - 1] == '\r')
		end--;
	if (to > end)
		to = end > from ? end : from;
	message[0] = '\0';
	add_origin(&builder, source, from);
	add(&builder, text, utf8_valid(text, strlen(text)));
	add(&builder, "\n", 1);
	from = count_columns(source->text + begin, from - begin);
	to = count_columns(source->text + begin, to - begin);
	add_line(&builder, source->text + begin, end - begin, from, to > from ? to : from + 1);
	return error_set(err, EINVAL, "%s", message);
}

#define PLACE_COLUMNS 24

void source_fault_one_line(struct error *err)
{
	char *line = strchr(err->message, '\n'), *marks = line ? strchr(line + 1, '\n') : NULL;
	char place[4 * PLACE_COLUMNS + 1] = "", text[sizeof(err->message)] = "";
	struct source_builder builder = {place, 0, sizeof(place)},
			      message = {text, 0, sizeof(text)};
	uint32_t column;

	if (!marks)
		return;
	*line++ = *marks++ = '\0';
	column = (uint32_t)strcspn(marks, "^");
	add_columns(&builder, line, strlen(line), column, PLACE_COLUMNS);
	add(&message, err->message, strlen(err->message));
	add(&message, *place ? " (at '" : " (at the end)",
	    strlen(*place ? " (at '" : " (at the end)"));
	add(&message, place, strlen(place));
	add(&message, "')", *place ? 2 : 0);
	memcpy(err->message, text, sizeof(text));
}
