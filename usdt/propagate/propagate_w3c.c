// SPDX-License-Identifier: Apache-2.0
/*
 * W3C Trace Context, level 2 (https://www.w3.org/TR/trace-context-2/): traceparent and tracestate.
 * The format of traceparent itself is in waffle/context.h.
 */
#include <errno.h>
#include <string.h>

#include "usdt/propagate/propagate_formats.h"

#define FLAG_SAMPLED 1u
#define FLAG_RANDOM 2u /* the trace id is random; passed on */

#define MEMBERS_MAX 32
#define KEY_MAX 256
#define VALUE_MAX 256
/* If members have to be dropped, those longer than this are dropped first. */
#define MEMBER_LONG 128

/* ---- traceparent ---- */

static bool parent_read(struct span_text value, struct waffle_wire_context *wire)
{
	char text[WAFFLE_TRACEPARENT_SIZE + 1]; /* one character more tells that there is more */
	unsigned long long flags = 0;

	if (memchr(value.text, '\0', value.len))
		return false;
	text_copy(value, text, sizeof(text));
	if (!waffle_context_from_traceparent(text, &wire->context))
		return false;
	waffle_hex_(text + WAFFLE_TRACEPARENT_FLAGS_, 2, &flags);
	wire->sampling = flags & FLAG_SAMPLED ? WAFFLE_SAMPLING_ACCEPT : WAFFLE_SAMPLING_DENY;
	/* Of a version that we don't know, only the sampled flag has a known meaning. */
	wire->flags = text[0] == '0' && text[1] == '0' ? (unsigned)flags & FLAG_RANDOM : 0;
	return true;
}

/* ---- tracestate ---- */

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Level 1 allowed one '@', between parts of limited lengths. */
static bool key_valid(struct span_text key)
{
	if (!key.len || key.len > KEY_MAX || !(is_lower(*key.text) || is_digit(*key.text)))
		return false;
	for (size_t i = 1; i < key.len; i++)
		if (!is_lower(key.text[i]) && !is_digit(key.text[i]) &&
		    (!key.text[i] || !strchr("_-*/@", key.text[i])))
			return false;
	return true;
}

static bool value_valid(struct span_text value)
{
	if (!value.len || value.len > VALUE_MAX || value.text[value.len - 1] == ' ')
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.text[i] < ' ' || value.text[i] > '~' || value.text[i] == ',' ||
		    value.text[i] == '=')
			return false;
	return true;
}

static bool member_find(const char *list, struct span_text key, struct span_text *value)
{
	struct span_text rest = text_of(list), member, name;

	while (text_next(&rest, ',', &member))
		if (text_split(member, '=', &name, value) && text_equal(name, key))
			return true;
	return false;
}

/* Adds the members of a line. Of a key that occurs several times, the first and so the latest
 * member is kept. False: the whole tracestate is void. */
static bool line_add(struct text_list *list, struct span_text line)
{
	struct span_text member, key, value, other;

	while (text_next(&line, ',', &member)) {
		if (!member.len)
			continue;
		if (!text_split(member, '=', &key, &value) || !key_valid(key) ||
		    !value_valid(value))
			return false;
		if (member_find(list->text, key, &other))
			continue;
		if (list->count == MEMBERS_MAX || !list_add(list, member))
			return false;
	}
	return true;
}

/* Copies a list into tracestate. If it is too long, long members go first, and then the last. */
static void list_shorten(const struct text_list *list, char out[WAFFLE_TRACESTATE_MAX + 1])
{
	struct text_list kept = list_of(out, WAFFLE_TRACESTATE_MAX + 1);
	bool shorten = list->len > WAFFLE_TRACESTATE_MAX;
	struct span_text rest = text_of(list->text), member;

	while (list->count && text_next(&rest, ',', &member))
		if (!(shorten && member.len > MEMBER_LONG) && !list_add(&kept, member))
			break;
}

/*
 * Reads all lines into tracestate. The field for baggage, which is read later, is the buffer for
 * what is longer than tracestate may be. More than fits there is void: servers refuse headers of
 * that size.
 */
static void state_read(const struct waffle_carrier *carrier, struct waffle_wire_context *wire)
{
	struct text_list list = list_of(wire->baggage, sizeof(wire->baggage));
	struct span_text line;
	size_t index = 0;
	bool valid = true;

	*wire->tracestate = '\0';
	while (valid && carrier_line(carrier, "tracestate", index, &line))
		valid = index++ < PROPAGATE_LINES_MAX && line_add(&list, line);
	if (valid)
		list_shorten(&list, wire->tracestate);
	*wire->baggage = '\0';
}

/* ---- the format ---- */

bool tracecontext_extract(const struct waffle_carrier *carrier, struct waffle_wire_context *wire)
{
	struct span_text parent;

	if (!carrier_single(carrier, "traceparent", &parent) || !parent_read(parent, wire))
		return false;
	state_read(carrier, wire);
	return true;
}

int tracecontext_inject(const struct waffle_carrier *carrier, const struct outgoing *out)
{
	unsigned flags = out->flags;
	char text[WAFFLE_TRACEPARENT_SIZE];
	int result;

	if (!waffle_context_to_traceparent(out->context, text))
		return 0;
	if (out->sampling >= WAFFLE_SAMPLING_ACCEPT)
		flags |= FLAG_SAMPLED;
	text[WAFFLE_TRACEPARENT_FLAGS_] = '0';
	text[WAFFLE_TRACEPARENT_FLAGS_ + 1] = (char)('0' + (flags & 3));
	result = carrier->set(carrier->user, "traceparent", text);
	if (result || !*out->tracestate)
		return result;
	return carrier->set(carrier->user, "tracestate", out->tracestate);
}

/* ---- members ---- */

PROPAGATE_API long waffle_tracestate_get(const struct waffle_wire_context *wire, const char *key,
					 char *value, size_t size)
{
	struct span_text found;

	if (!member_find(wire->tracestate, text_of(key), &found))
		return -ENOENT;
	return text_copy(found, value, size);
}

PROPAGATE_API int waffle_tracestate_set(struct waffle_wire_context *wire, const char *key,
					const char *value)
{
	char text[WAFFLE_TRACESTATE_MAX + 1], first[KEY_MAX + VALUE_MAX + 2];
	struct span_text name = text_of(key), rest, member, other, found;
	struct text_list list = list_of(text, sizeof(text));

	if (!key_valid(name) || (value && !value_valid(text_of(value))))
		return -EINVAL;
	if (value) {
		memcpy(first, key, name.len);
		first[name.len] = '=';
		memcpy(first + name.len + 1, value, strlen(value) + 1);
		if (!list_add(&list, text_of(first)))
			return -ENOSPC;
	}
	rest = text_of(wire->tracestate);
	while (text_next(&rest, ',', &member)) {
		if (!member.len ||
		    (text_split(member, '=', &other, &found) && text_equal(other, name)))
			continue;
		if (list.count == MEMBERS_MAX || !list_add(&list, member))
			break;
	}
	memcpy(wire->tracestate, text, list.len + 1);
	return 0;
}
