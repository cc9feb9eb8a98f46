// SPDX-License-Identifier: Apache-2.0
/*
 * A Chrome JSON array of events. A scanner finds where its elements end, and yajl checks that they
 * are JSON. An array that ends within an element, or without its bracket, was cut off.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "export/repair/pieces_internal.h"
#include "export/repair/repair.h"
#include "util/memory.h"
#include "util/yajl_memory.h"

#define DEPTH_MAX 64
/* Of one element: yajl keeps a string in memory. */
#define ELEMENT_MAX ((uint64_t)64 << 20)

struct array_scan {
	struct pieces *pieces;
	const char *path;
	yajl_handle parser;
	unsigned depth; /* of open brackets; 1: in the array itself */
	bool begun, ended;
	bool in_string, escaped;
	uint64_t items;
	uint64_t open_end;    /* after the array's bracket */
	uint64_t element;     /* where the last one begins */
	uint64_t element_end; /* after the last whole one; 0: none */
};

static int no_array(const struct array_scan *scan, uint64_t at, const char *why, struct error *err)
{
	return error_set(err, EBADMSG,
			 "%s: is not a JSON array of events, or damaged: %s at byte %" PRIu64,
			 scan->path, why, at);
}

/* NULL: the character may follow. */
static const char *bracket_take(struct array_scan *scan, unsigned char c, uint64_t at)
{
	if (c == '[' || c == '{') {
		if (scan->depth == DEPTH_MAX)
			return "too many brackets";
		if (!scan->begun && c == '{')
			return "an object";
		if (scan->depth == 1 && c == '[')
			return "another array";
		if (scan->depth == 1)
			scan->element = at;
		if (!scan->begun)
			scan->open_end = at + 1;
		scan->begun = true;
		scan->depth++;
		return NULL;
	}
	scan->depth--;
	if (!scan->depth)
		scan->ended = true;
	if (scan->depth == 1) {
		scan->element_end = at + 1;
		scan->items++;
	}
	return NULL;
}

/* NULL: the character may follow. yajl checks what is inside the elements. */
static const char *character_take(struct array_scan *scan, unsigned char c, uint64_t at)
{
	if (scan->in_string) {
		scan->in_string = scan->escaped || c != '"';
		scan->escaped = !scan->escaped && c == '\\';
		return NULL;
	}
	if (strchr(" \t\r\n", c) && c)
		return NULL;
	if (scan->ended)
		return "something behind its end";
	if (c == '[' || c == '{' || ((c == ']' || c == '}') && scan->depth))
		return bracket_take(scan, c, at);
	if (scan->depth == 0)
		return "no bracket";
	if (scan->depth == 1 && c != ',')
		return "something that is not an event";
	scan->in_string = c == '"';
	return NULL;
}

/* Scans a piece up to the first 0, which is no JSON. */
static int piece_scan(struct array_scan *scan, size_t *bytes, struct error *err)
{
	const struct pieces *pieces = scan->pieces;
	const unsigned char *zero = memchr(pieces->bytes, 0, pieces->len);
	size_t len = zero ? (size_t)(zero - pieces->bytes) : pieces->len;

	*bytes = len;
	for (size_t i = 0; i < len; i++) {
		const char *why = character_take(scan, pieces->bytes[i], pieces->from + i);

		if (why)
			return no_array(scan, pieces->from + i, why, err);
	}
	if (scan->depth > 1 && pieces->from + len - scan->element > ELEMENT_MAX)
		return no_array(scan, scan->element, "an event of more than 64 MiB", err);
	if (yajl_parse(scan->parser, pieces->bytes, len) != yajl_status_ok)
		return no_array(scan, pieces->from + yajl_get_bytes_consumed(scan->parser),
				"no JSON", err);
	return 0;
}

/* Scans all pieces. *end: where the text ends, and only zeros follow. */
static int file_scan(struct array_scan *scan, uint64_t *end, struct error *err)
{
	struct pieces *pieces = scan->pieces;
	int result = 0;

	*end = 0;
	while (!result && pieces->len) {
		size_t len;
		bool zeros;

		result = piece_scan(scan, &len, err);
		*end = pieces->from + len;
		if (result || len == pieces->len) {
			result = result ?: pieces_next(pieces, scan->path, err);
			continue;
		}
		result = pieces_only_zeros(pieces, *end, scan->path, &zeros, err);
		return result ?: zeros ? 0 : no_array(scan, *end, "no text", err);
	}
	return result;
}

static void plan_make(const struct array_scan *scan, uint64_t end, struct repair_plan *plan)
{
	plan->items = scan->items;
	if (scan->ended) {
		plan->kept = end;
		plan->tail = "";
	} else {
		plan->kept = scan->element_end ?: scan->open_end;
		plan->tail = "\n]\n";
	}
	plan->dropped = scan->pieces->size - plan->kept;
}

int repair_scan_chrome(struct repair_plan *plan, int fd, const char *path, struct error *err)
{
	yajl_alloc_funcs allocator = yajl_memory();
	struct pieces *pieces = memory_get(sizeof(*pieces));
	struct array_scan scan = {.pieces = pieces, .path = path};
	uint64_t end;
	int result = pieces_begin(pieces, fd, path, err);

	*plan = (struct repair_plan){.tail = ""};
	scan.parser = yajl_alloc(NULL, &allocator, NULL);
	if (!result)
		result = file_scan(&scan, &end, err);
	if (!result && !scan.begun)
		result = no_array(&scan, 0, "no bracket", err);
	if (!result)
		plan_make(&scan, end, plan);
	yajl_free(scan.parser);
	free(pieces);
	return result;
}
