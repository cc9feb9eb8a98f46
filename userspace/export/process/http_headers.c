// SPDX-License-Identifier: Apache-2.0
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/process/http_headers_internal.h"

#define VARIABLE "OTEL_EXPORTER_OTLP_HEADERS"
#define LINE_BYTES 8192
#define LINES_MAX 64
/* A shorter value occurs in other texts. */
#define SECRET_MIN 4
#define WORD_ENDS " \t,;:=\""

void http_headers_free(struct http_headers *headers)
{
	for (size_t i = 0; i < headers->lines.len; i++) {
		explicit_bzero(headers->lines.data[i], strlen(headers->lines.data[i]));
		free(headers->lines.data[i]);
	}
	vec_free(&headers->lines);
}

static bool is_token(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)name[i]) && !strchr("!#$%&'*+-.^_`|~", name[i]))
			return false;
	return len;
}

/* `value` has no blanks at its ends. */
static int add(struct http_headers *headers, const char *name, size_t name_len, const char *value,
	       const char *where, struct error *err)
{
	char *line;

	if (!is_token(name, name_len))
		return error_set(err, EINVAL, "%s: the name of a header is not valid", where);
	for (const char *at = value; *at; at++)
		if ((unsigned char)*at < ' ' && *at != '\t')
			return error_set(err, EINVAL,
					 "%s: the value of %.*s has a control character", where,
					 (int)name_len, name);
	if (headers->lines.len == LINES_MAX)
		return error_set(err, EINVAL, "%s: more than %d headers", where, LINES_MAX);
	if (asprintf(&line, "%.*s: %s", (int)name_len, name, value) < 0)
		return error_set(err, ENOMEM, "%s: out of memory", where);
	if (vec_push(&headers->lines, line))
		return 0;
	free(line);
	return error_set(err, ENOMEM, "%s: out of memory", where);
}

/* Cuts blanks off both ends. */
static char *trimmed(char *text)
{
	size_t len;

	while (isspace((unsigned char)*text))
		text++;
	len = strlen(text);
	while (len && isspace((unsigned char)text[len - 1]))
		text[--len] = '\0';
	return text;
}

int http_headers_file(struct http_headers *headers, const char *path, struct error *err)
{
	FILE *file = fopen(path, "re");
	char line[LINE_BYTES];
	int result = 0;

	if (!file && strchr(path, ':')) /* it may be a header itself */
		return error_set(err, errno,
				 "headers: %s; expected the name of a file with lines "
				 "'Name: value'",
				 strerror(errno));
	if (!file)
		return error_set(err, errno, "%s: %s", path, strerror(errno));
	while (!result && fgets(line, sizeof(line), file)) {
		char *text = trimmed(line), *colon = strchr(text, ':');

		if (!*text || *text == '#')
			continue;
		if (!colon)
			result = error_set(err, EINVAL, "%s: expected lines 'Name: value'", path);
		else
			result = add(headers, text, (size_t)(colon - text), trimmed(colon + 1),
				     path, err);
	}
	explicit_bzero(line, sizeof(line));
	fclose(file);
	return result;
}

static int hex(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

void http_percent_decode(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '%' && hex(text[1]) >= 0 && hex(text[2]) >= 0) {
			*to++ = (char)(hex(text[1]) << 4 | hex(text[2]));
			text += 2;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

int http_headers_variable(struct http_headers *headers, const char *text, struct error *err)
{
	char *copy = strdup(text), *rest = copy, *part;
	int result = copy ? 0 : error_set(err, ENOMEM, VARIABLE ": out of memory");

	while (!result && (part = strsep(&rest, ","))) {
		char *equals = strchr(part, '='), *name;

		if (!*trimmed(part))
			continue;
		if (!equals) {
			result = error_set(err, EINVAL, VARIABLE ": expected name=value,…");
			continue;
		}
		*equals = '\0';
		name = trimmed(part);
		http_percent_decode(equals + 1);
		result = add(headers, name, strlen(name), trimmed(equals + 1), VARIABLE, err);
	}
	if (copy)
		explicit_bzero(copy, strlen(text));
	free(copy);
	return result;
}

static void word_redact(const char *word, size_t word_len, char *data, size_t len)
{
	char *at = data;

	while (word_len >= SECRET_MIN &&
	       (at = memmem(at, len - (size_t)(at - data), word, word_len))) {
		memset(at, '*', word_len);
		at += word_len;
	}
}

/* A value may be a list such as 'Basic YWJj' or 'id=5, secret="abc"', of which a server repeats a
 * part. */
void http_headers_redact(const struct http_headers *headers, char *data, size_t len)
{
	for (size_t i = 0; i < headers->lines.len; i++) {
		const char *value = strchr(headers->lines.data[i], ':') + 2, *part = value;

		word_redact(value, strlen(value), data, len);
		while (*(part += strspn(part, WORD_ENDS))) {
			word_redact(part, strcspn(part, WORD_ENDS), data, len);
			part += strcspn(part, WORD_ENDS);
		}
	}
}
