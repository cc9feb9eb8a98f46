// SPDX-License-Identifier: Apache-2.0
/*
 * B3 (https://github.com/openzipkin/b3-propagation), in one header and in several. The parent of
 * the sender's span is checked but not kept: a receiver's span has an id of its own here, and the
 * sender's span is its parent. Trace ids of 64 bits have a first half of zeros, and are sent with
 * 64 bits again.
 */
#include <stdio.h>
#include <string.h>

#include "usdt/propagate/propagate_formats.h"

#define ID_DIGITS 16
#define TRACE_TEXT_SIZE (2 * ID_DIGITS + 1)

/* ---- parts ---- */

static bool id_read(struct span_text text, unsigned long long *id)
{
	return text.len == ID_DIGITS && waffle_hex_(text.text, ID_DIGITS, id) && *id;
}

static bool trace_read(struct span_text text, waffle_context_t *context)
{
	context->trace_hi = 0;
	if (text.len == ID_DIGITS)
		return id_read(text, &context->trace_lo);
	return text.len == 2 * (size_t)ID_DIGITS &&
	       waffle_hex_(text.text, ID_DIGITS, &context->trace_hi) &&
	       waffle_hex_(text.text + ID_DIGITS, ID_DIGITS, &context->trace_lo) &&
	       (context->trace_hi || context->trace_lo);
}

static void trace_write(const waffle_context_t *context, char text[TRACE_TEXT_SIZE])
{
	if (context->trace_hi)
		snprintf(text, TRACE_TEXT_SIZE, "%016llx%016llx", context->trace_hi,
			 context->trace_lo);
	else
		snprintf(text, TRACE_TEXT_SIZE, "%016llx", context->trace_lo);
}

static bool has_context(const waffle_context_t *context)
{
	return (context->trace_hi || context->trace_lo) && context->span_id;
}

/* The state of b3 in one header, and of x-b3-sampled where it is not 'd'. */
static bool sampling_read(struct span_text text, enum waffle_sampling *sampling)
{
	if (text.len != 1)
		return false;
	switch (*text.text) {
	case '0':
		*sampling = WAFFLE_SAMPLING_DENY;
		return true;
	case '1':
		*sampling = WAFFLE_SAMPLING_ACCEPT;
		return true;
	case 'd':
		*sampling = WAFFLE_SAMPLING_DEBUG;
		return true;
	default:
		return false;
	}
}

/* "" if nobody has decided. */
static const char *sampling_text(enum waffle_sampling sampling)
{
	static const char *const texts[] = {[WAFFLE_SAMPLING_UNKNOWN] = "",
					    [WAFFLE_SAMPLING_DENY] = "0",
					    [WAFFLE_SAMPLING_ACCEPT] = "1",
					    [WAFFLE_SAMPLING_DEBUG] = "d"};

	return texts[sampling];
}

/* ---- one header ---- */

/* TRACE-SPAN[-SAMPLING[-PARENT]], or SAMPLING alone. */
static bool single_read(struct span_text value, waffle_context_t *context,
			enum waffle_sampling *sampling)
{
	struct span_text trace, span, state, parent, rest;
	unsigned long long parent_id;

	*sampling = WAFFLE_SAMPLING_UNKNOWN;
	if (!text_split(value, '-', &trace, &rest))
		return sampling_read(value, sampling);
	if (!trace_read(trace, context))
		return false;
	if (!text_split(rest, '-', &span, &rest))
		return id_read(span, &context->span_id);
	if (!id_read(span, &context->span_id))
		return false;
	if (text_split(rest, '-', &state, &parent) && !id_read(parent, &parent_id))
		return false;
	return sampling_read(state, sampling);
}

bool b3_extract(const struct waffle_carrier *carrier, struct waffle_wire_context *wire)
{
	waffle_context_t context = {0, 0, 0};
	enum waffle_sampling sampling;
	struct span_text value;

	if (!carrier_line(carrier, "b3", 0, &value) ||
	    !single_read(text_trim(value), &context, &sampling))
		return false;
	wire->context = context;
	wire->sampling = sampling;
	return true;
}

int b3_inject(const struct waffle_carrier *carrier, const struct outgoing *out)
{
	const char *sampling = sampling_text(out->sampling);
	char trace[TRACE_TEXT_SIZE], text[64];

	if (!has_context(&out->context))
		return *sampling ? carrier->set(carrier->user, "b3", sampling) : 0;
	trace_write(&out->context, trace);
	snprintf(text, sizeof(text), "%s-%016llx%s%s", trace, out->context.span_id,
		 *sampling ? "-" : "", sampling);
	return carrier->set(carrier->user, "b3", text);
}

/* ---- several headers ---- */

static bool multi_line(const struct waffle_carrier *carrier, const char *name,
		       struct span_text *value)
{
	if (!carrier_line(carrier, name, 0, value))
		return false;
	*value = text_trim(*value);
	return true;
}

/* Some tracers write words from before the specification. */
static enum waffle_sampling multi_sampling(const struct waffle_carrier *carrier)
{
	enum waffle_sampling sampling;
	struct span_text value;

	if (multi_line(carrier, "x-b3-flags", &value) && text_equal(value, text_of("1")))
		return WAFFLE_SAMPLING_DEBUG;
	if (!multi_line(carrier, "x-b3-sampled", &value))
		return WAFFLE_SAMPLING_UNKNOWN;
	if (text_equal(value, text_of("true")))
		return WAFFLE_SAMPLING_ACCEPT;
	if (text_equal(value, text_of("false")))
		return WAFFLE_SAMPLING_DENY;
	return sampling_read(value, &sampling) ? sampling : WAFFLE_SAMPLING_UNKNOWN;
}

bool b3multi_extract(const struct waffle_carrier *carrier, struct waffle_wire_context *wire)
{
	enum waffle_sampling sampling = multi_sampling(carrier);
	waffle_context_t context = {0, 0, 0};
	unsigned long long parent_id;
	struct span_text value;
	bool valid;

	/* One after the other: a value is valid only until the next call of the carrier. */
	valid = multi_line(carrier, "x-b3-traceid", &value) && trace_read(value, &context);
	valid = valid && multi_line(carrier, "x-b3-spanid", &value) &&
		id_read(value, &context.span_id);
	valid = valid &&
		(!multi_line(carrier, "x-b3-parentspanid", &value) || id_read(value, &parent_id));
	if (!valid && sampling == WAFFLE_SAMPLING_UNKNOWN)
		return false;
	if (valid)
		wire->context = context;
	wire->sampling = sampling;
	return true;
}

int b3multi_inject(const struct waffle_carrier *carrier, const struct outgoing *out)
{
	bool debug = out->sampling == WAFFLE_SAMPLING_DEBUG;
	const char *sampling = sampling_text(out->sampling);
	char trace[TRACE_TEXT_SIZE], span[ID_DIGITS + 1];
	int result = 0;

	if (has_context(&out->context)) {
		trace_write(&out->context, trace);
		snprintf(span, sizeof(span), "%016llx", out->context.span_id);
		result = carrier->set(carrier->user, "x-b3-traceid", trace);
		result = result ? result : carrier->set(carrier->user, "x-b3-spanid", span);
	}
	if (result || !*sampling)
		return result;
	return debug ? carrier->set(carrier->user, "x-b3-flags", "1")
		     : carrier->set(carrier->user, "x-b3-sampled", sampling);
}
