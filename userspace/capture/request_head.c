// SPDX-License-Identifier: Apache-2.0
#include "capture/request_head_internal.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* The bytes that are left. */
struct rest {
	const char *at, *end;
};

static const char *find(const struct rest *rest, char byte)
{
	return memchr(rest->at, byte, (size_t)(rest->end - rest->at));
}

/* Takes a word of letters, such as "GET", and makes them capital ones. */
static bool word_take(struct rest *rest, size_t len, char word[REQUEST_METHOD_MAX])
{
	if (!len || len >= REQUEST_METHOD_MAX || len > (size_t)(rest->end - rest->at))
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)rest->at[i];

		if (!isalpha(byte) && byte != '.' && byte != '_' && byte != '-')
			return false;
		word[i] = (char)toupper(byte);
	}
	word[len] = '\0';
	rest->at += len;
	return true;
}

/* Takes "*3\r\n": a mark, a number, and the end of the line. */
static bool line_take(struct rest *rest, char mark, size_t *number)
{
	const char *line_end = find(rest, '\r');

	*number = 0;
	if (!line_end || line_end + 1 >= rest->end || line_end[1] != '\n' || *rest->at != mark)
		return false;
	for (const char *at = rest->at + 1; at < line_end; at++) {
		if (!isdigit((unsigned char)*at) || *number > 1000000)
			return false;
		*number = *number * 10 + (size_t)(*at - '0');
	}
	rest->at = line_end + 2;
	return true;
}

/* The same with a number from 1 on. */
static bool number_take(struct rest *rest, char mark, size_t *number)
{
	return line_take(rest, mark, number) && *number > 0;
}

/* "*2\r\n$3\r\nGET\r\n$5\r\n…": an array of texts, of which the first is the command. */
static bool resp_read(struct request_head *head, struct rest rest)
{
	size_t count, len;

	head->protocol = REQUEST_RESP;
	head->path[0] = '\0';
	return number_take(&rest, '*', &count) && rest.at < rest.end &&
	       number_take(&rest, '$', &len) && word_take(&rest, len, head->method) &&
	       (rest.at == rest.end || *rest.at == '\r');
}

/* Copies a path up to its query. `cut`: the bytes end within the path. */
static void path_copy(struct request_head *head, const struct rest *rest, size_t len, bool cut)
{
	const char *query = memchr(rest->at, '?', len);

	if (query) {
		len = (size_t)(query - rest->at);
		cut = false;
	}
	head->path_cut = cut || len >= REQUEST_PATH_MAX;
	if (len >= REQUEST_PATH_MAX)
		len = REQUEST_PATH_MAX - 1;
	for (size_t i = 0; i < len; i++)
		head->path[i] = isgraph((unsigned char)rest->at[i]) ? rest->at[i] : '?';
	head->path[len] = '\0';
}

/* "GET /path?query HTTP/1.1\r\n" */
static bool http_read(struct request_head *head, struct rest rest)
{
	static const char version[] = "HTTP/1.";
	const char *end = find(&rest, ' '), *line_end;
	size_t left;
	bool whole;

	head->protocol = REQUEST_HTTP;
	if (!end || !word_take(&rest, (size_t)(end - rest.at), head->method))
		return false;
	rest.at++;
	end = find(&rest, ' ');
	line_end = find(&rest, '\r');
	whole = end && (!line_end || end < line_end);
	/* Without the version there must be no end of the line. */
	if (!whole && line_end)
		return false;
	left = whole ? (size_t)(rest.end - end - 1) : 0; /* it may have been cut */
	if (memcmp(whole ? end + 1 : version, version,
		   left < sizeof(version) - 1 ? left : sizeof(version) - 1) != 0)
		return false;
	if (rest.at == rest.end || (*rest.at != '/' && *rest.at != '*' && *rest.at != 'h'))
		return false;
	path_copy(head, &rest, (size_t)((whole ? end : rest.end) - rest.at), !whole);
	return true;
}

bool request_head_read(struct request_head *head, const char *bytes, size_t len)
{
	struct rest rest = {bytes, bytes + len};

	head->path_cut = false;
	if (!len)
		return false;
	return *bytes == '*' ? resp_read(head, rest) : http_read(head, rest);
}

/* ---- the end of a request ---- */

/* An array of texts: "*2\r\n$3\r\nGET\r\n$1\r\na\r\n". */
static const char *resp_end(struct rest rest)
{
	size_t count, len;

	if (!number_take(&rest, '*', &count))
		return NULL;
	for (; count; count--) {
		if (rest.at == rest.end || !line_take(&rest, '$', &len) ||
		    len + 2 > (size_t)(rest.end - rest.at))
			return NULL;
		rest.at += len + 2;
	}
	return rest.at;
}

/* Whether a line of a head has this name, in any case. */
static bool has_name(const struct rest *line, const char *name)
{
	return (size_t)(line->end - line->at) > strlen(name) &&
	       !strncasecmp(line->at, name, strlen(name));
}

/* The empty line behind the head. A request with a body ends behind that, so its end is unknown. */
static const char *http_end(struct rest rest)
{
	while (rest.at < rest.end) {
		const char *line_end = memchr(rest.at, '\n', (size_t)(rest.end - rest.at));
		struct rest line = {rest.at, line_end};

		if (!line_end || has_name(&line, "content-length:") ||
		    has_name(&line, "transfer-encoding:") || has_name(&line, "upgrade:"))
			return NULL;
		rest.at = line_end + 1;
		if (line.at == line_end || (line.at + 1 == line_end && *line.at == '\r'))
			return rest.at;
	}
	return NULL;
}

size_t request_head_next(const char *bytes, size_t len)
{
	struct rest rest = {bytes, bytes + len};
	const char *end = !len ? NULL : *bytes == '*' ? resp_end(rest) : http_end(rest);

	return end && end < rest.end ? (size_t)(end - bytes) : 0;
}
