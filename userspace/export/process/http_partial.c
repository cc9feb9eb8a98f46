// SPDX-License-Identifier: Apache-2.0
/*
 * Partial success in an answer of OTLP/HTTP:
 *
 *	message Export…ServiceResponse { Export…PartialSuccess partial_success = 1; }
 *	message Export…PartialSuccess { int64 rejected_… = 1; string error_message = 2; }
 */
#include <ctype.h>
#include <stdlib.h>

#include "export/process/http_sender.h"
#include "export/process/wire_read_internal.h"

/* ---- protobuf ---- */

static void text_copy(struct http_partial *partial, const char *text, size_t len)
{
	if (len >= sizeof(partial->why))
		len = sizeof(partial->why) - 1;
	memcpy(partial->why, text, len);
	partial->why[len] = '\0';
}

static void partial_fields(struct http_partial *partial, struct wire_part wire)
{
	uint64_t tag, number;
	struct wire_part bytes = {0};

	while (wire_field(&wire, &tag, &number, &bytes)) {
		if (tag == WIRE_NUMBER(1) && number <= INT64_MAX)
			partial->rejected = number;
		else if (tag == WIRE_MESSAGE(2))
			text_copy(partial, (const char *)bytes.at, wire_part_len(&bytes));
	}
}

static void read_protobuf(struct http_partial *partial, const char *body, size_t len)
{
	struct wire_part wire = wire_part_of(body, len);
	struct wire_part bytes = {0};
	uint64_t tag, number;

	while (wire_field(&wire, &tag, &number, &bytes))
		if (tag == WIRE_MESSAGE(1))
			partial_fields(partial, bytes);
}

/* ---- JSON ---- */

/* The text behind `"key":`, without blanks and an opening quote. NULL: there is none. */
static const char *json_find(const char *body, size_t len, const char *key, size_t *left)
{
	const char *at = memmem(body, len, key, strlen(key)), *end = body + len;

	if (!at)
		return NULL;
	at += strlen(key);
	while (at < end && (isspace((unsigned char)*at) || *at == ':'))
		at++;
	if (at < end && *at == '"')
		at++;
	*left = (size_t)(end - at);
	return at;
}

/* Both members are flat, so they are looked for by name. */
static void read_json(struct http_partial *partial, const char *body, size_t len)
{
	static const char *const keys[] = {"\"rejectedSpans\"", "\"rejectedDataPoints\""};
	size_t left, end = 0;
	const char *at;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		at = json_find(body, len, keys[i], &left);
		for (; at && left && isdigit((unsigned char)*at); at++, left--)
			if (partial->rejected < INT64_MAX / 10 - 9)
				partial->rejected = partial->rejected * 10 + (uint64_t)(*at - '0');
	}
	at = json_find(body, len, "\"errorMessage\"", &left);
	while (at && end < left && at[end] != '"')
		end++;
	if (at)
		text_copy(partial, at, end);
}

struct http_partial http_partial_read(const char *body, size_t len, bool json)
{
	struct http_partial partial = {0};

	if (json)
		read_json(&partial, body, len);
	else
		read_protobuf(&partial, body, len);
	return partial;
}
