// SPDX-License-Identifier: Apache-2.0
/* Parts of the values of headers, and lists of them. */
#include <string.h>

#include "usdt/propagate/propagate_formats.h"

struct span_text text_of(const char *text)
{
	return (struct span_text){text, strlen(text)};
}

bool text_equal(struct span_text a, struct span_text b)
{
	return a.len == b.len && !memcmp(a.text, b.text, a.len);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

struct span_text text_trim(struct span_text text)
{
	while (text.len && is_blank(*text.text)) {
		text.text++;
		text.len--;
	}
	while (text.len && is_blank(text.text[text.len - 1]))
		text.len--;
	return text;
}

bool text_split(struct span_text text, char separator, struct span_text *before,
		struct span_text *behind)
{
	const char *at = text.len ? memchr(text.text, separator, text.len) : NULL;

	*before = text;
	*behind = (struct span_text){NULL, 0};
	if (!at)
		return false;
	before->len = (size_t)(at - text.text);
	*behind = (struct span_text){at + 1, text.len - before->len - 1};
	return true;
}

bool text_next(struct span_text *rest, char separator, struct span_text *part)
{
	struct span_text all = *rest;

	if (!all.text)
		return false;
	text_split(all, separator, part, rest);
	*part = text_trim(*part);
	return true;
}

long text_copy(struct span_text text, char *out, size_t size)
{
	size_t len = text.len < size ? text.len : size ? size - 1 : 0;

	if (len)
		memcpy(out, text.text, len);
	if (size)
		out[len] = '\0';
	return (long)text.len;
}

struct text_list list_of(char *text, size_t size)
{
	*text = '\0';
	return (struct text_list){text, 0, size, 0};
}

bool list_add(struct text_list *list, struct span_text member)
{
	size_t comma = list->count != 0;

	if (member.len + comma >= list->size - list->len)
		return false;
	if (comma)
		list->text[list->len++] = ',';
	memcpy(list->text + list->len, member.text, member.len);
	list->len += member.len;
	list->text[list->len] = '\0';
	list->count++;
	return true;
}

bool carrier_line(const struct waffle_carrier *carrier, const char *name, size_t index,
		  struct span_text *line)
{
	line->len = 0;
	line->text = carrier->get(carrier->user, name, index, &line->len);
	return line->text != NULL;
}

bool carrier_single(const struct waffle_carrier *carrier, const char *name, struct span_text *value)
{
	struct span_text other;

	if (carrier_line(carrier, name, 1, &other) || !carrier_line(carrier, name, 0, value))
		return false;
	*value = text_trim(*value);
	return true;
}
