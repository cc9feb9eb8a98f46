// SPDX-License-Identifier: Apache-2.0
/*
 * Any headers, one on each line as "name:value", read by all propagators. The first byte chooses
 * the formats, the second one what is set then. What was read and is sent must be read as the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "waffle_propagate.h"

#define ALL 15u
#define SENT_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct headers {
	const char *text;
	size_t len;
};

static const char *line_get(void *user, const char *name, size_t index, size_t *length)
{
	const struct headers *headers = user;
	const char *at = headers->text, *end = at + headers->len;
	size_t name_len = strlen(name);

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));

		line_end = line_end ? line_end : end;
		if ((size_t)(line_end - at) > name_len && !memcmp(at, name, name_len) &&
		    at[name_len] == ':' && !index--) {
			*length = (size_t)(line_end - at) - name_len - 1;
			return at + name_len + 1;
		}
		at = line_end + 1;
	}
	return NULL;
}

struct sent {
	struct {
		const char *name;
		char *value;
	} headers[SENT_MAX];
	size_t count;
};

static int sent_set(void *user, const char *name, const char *value)
{
	struct sent *sent = user;

	for (const char *c = value; *c; c++)
		if (*c < ' ' || *c > '~') /* a header that is sent is one line of ASCII */
			abort();
	if (sent->count == SENT_MAX || !*value)
		abort();
	sent->headers[sent->count].name = name;
	sent->headers[sent->count++].value = strdup(value);
	return 0;
}

static const char *sent_get(void *user, const char *name, size_t index, size_t *length)
{
	const struct sent *sent = user;

	for (size_t i = 0; i < sent->count; i++) {
		if (strcmp(sent->headers[i].name, name) != 0 || index--)
			continue;
		*length = strlen(sent->headers[i].value);
		return sent->headers[i].value;
	}
	return NULL;
}

static void compare(const struct waffle_wire_context *a, const struct waffle_wire_context *b)
{
	if (memcmp(&a->context, &b->context, sizeof(a->context)) != 0 ||
	    strcmp(a->tracestate, b->tracestate) != 0 || strcmp(a->baggage, b->baggage) != 0)
		abort();
}

static void send_again(const struct waffle_wire_context *wire)
{
	const waffle_context_t none = {0, 0, 0};
	struct sent sent = {.count = 0};
	const struct waffle_carrier carrier = {sent_get, sent_set, &sent};
	struct waffle_wire_context again;

	if (waffle_propagate_inject(ALL, &carrier, none, wire))
		abort();
	waffle_propagate_extract(ALL, &carrier, &again);
	compare(wire, &again);
	for (size_t i = 0; i < sent.count; i++)
		free(sent.headers[i].value);
}

/* Keys and values that the program chooses, with any bytes. */
static void set_members(struct waffle_wire_context *wire, const char *key, const char *value)
{
	char text[64];
	long len;

	if (!waffle_tracestate_set(wire, key, value) && wire->context.span_id) {
		len = waffle_tracestate_get(wire, key, text, sizeof(text));
		if (len != (long)strlen(value) || strncmp(text, value, sizeof(text) - 1) != 0)
			abort();
	} else {
		*wire->tracestate = '\0'; /* is not sent without a context */
	}
	if (!waffle_baggage_set(wire, key, value, NULL) &&
	    waffle_baggage_get(wire, key, text, sizeof(text)) < (long)strlen(value))
		abort();
	waffle_baggage_set(wire, key, value, value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct waffle_wire_context wire;
	struct headers headers;
	const struct waffle_carrier carrier = {line_get, NULL, &headers};
	unsigned propagators;
	char *text;

	if (size < 2)
		return 0;
	text = malloc(size - 1);
	if (!text)
		return 0;
	memcpy(text, data + 2, size - 2);
	text[size - 2] = '\0';
	headers = (struct headers){text, size - 2};
	waffle_propagators_parse(text, &propagators);
	waffle_propagate_extract(data[0] & ALL, &carrier, &wire);
	send_again(&wire);
	if (data[1] < size - 2) {
		text[data[1]] = '\0';
		set_members(&wire, text, text + data[1] + 1);
		send_again(&wire);
	}
	free(text);
	return 0;
}
