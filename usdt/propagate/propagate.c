// SPDX-License-Identifier: Apache-2.0
/* The set of formats that a program speaks, and what is sent when. */
#include "waffle_propagate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "usdt/propagate/propagate_formats.h"
#include "usdt/say/say.h"

#define PROPAGATORS_DEFAULT (WAFFLE_PROPAGATE_TRACECONTEXT | WAFFLE_PROPAGATE_BAGGAGE)
#define PROPAGATORS_KNOWN (1u << 31) /* of the variable: it was read */

const char *const propagate_names[] = {
	"traceparent",  "tracestate", "baggage",           "b3", "x-b3-traceid", "x-b3-spanid",
	"x-b3-sampled", "x-b3-flags", "x-b3-parentspanid", NULL};

static const struct {
	const char *name;
	unsigned bit; /* 0: none */
} formats[] = {
	{"tracecontext", WAFFLE_PROPAGATE_TRACECONTEXT},
	{"b3", WAFFLE_PROPAGATE_B3},
	{"b3multi", WAFFLE_PROPAGATE_B3MULTI},
	{"baggage", WAFFLE_PROPAGATE_BAGGAGE},
	{"none", 0},
};

#define FORMAT_COUNT (sizeof(formats) / sizeof(*formats))

PROPAGATE_API int waffle_propagators_parse(const char *text, unsigned *propagators)
{
	struct span_text rest = text_of(text ? text : ""), name;
	int result = 0;

	*propagators = 0;
	if (!text_trim(rest).len)
		*propagators = PROPAGATORS_DEFAULT;
	while (text_next(&rest, ',', &name)) {
		size_t i = 0;

		while (i < FORMAT_COUNT && !text_equal(name, text_of(formats[i].name)))
			i++;
		if (i < FORMAT_COUNT)
			*propagators |= formats[i].bit;
		else if (name.len)
			result = -EINVAL;
	}
	return result;
}

PROPAGATE_API unsigned waffle_propagators(void)
{
	static unsigned chosen;
	unsigned now = __atomic_load_n(&chosen, __ATOMIC_RELAXED), none = 0;
	const char *text;

	if (now)
		return now & ~PROPAGATORS_KNOWN;
	text = secure_getenv("OTEL_PROPAGATORS");
	if (waffle_propagators_parse(text, &now))
		now = PROPAGATORS_DEFAULT;
	else
		text = NULL;
	if (__atomic_compare_exchange_n(&chosen, &none, now | PROPAGATORS_KNOWN, false,
					__ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
	    text)
		say_line("OTEL_PROPAGATORS is '%.200s'; known are tracecontext, baggage, b3, "
			 "b3multi and none; tracecontext,baggage is used",
			 text);
	return now;
}

PROPAGATE_API bool waffle_propagate_extract(unsigned propagators,
					    const struct waffle_carrier *carrier,
					    struct waffle_wire_context *wire)
{
	/* Not all of it, which is 9 KiB. */
	wire->context = (waffle_context_t){0, 0, 0};
	wire->sampling = WAFFLE_SAMPLING_UNKNOWN;
	wire->flags = 0;
	*wire->tracestate = '\0';
	*wire->baggage = '\0';
	if (!(propagators & WAFFLE_PROPAGATE_TRACECONTEXT && tracecontext_extract(carrier, wire)) &&
	    !(propagators & WAFFLE_PROPAGATE_B3 && b3_extract(carrier, wire)) &&
	    propagators & WAFFLE_PROPAGATE_B3MULTI)
		b3multi_extract(carrier, wire);
	if (propagators & WAFFLE_PROPAGATE_BAGGAGE)
		baggage_extract(carrier, wire);
	return wire->context.span_id != 0;
}

static bool same_trace(const waffle_context_t *a, const waffle_context_t *b)
{
	return a->trace_hi == b->trace_hi && a->trace_lo == b->trace_lo;
}

/*
 * What follows from `context` and *wire. The decision of whoever began the trace is passed on, also
 * a denial: waffle records what is armed, and that must not turn on the tracers of all services
 * behind. A decision without a context is about the trace that begins here. Where nobody decided, a
 * span that was recorded here is sampled.
 */
static struct outgoing outgoing_make(waffle_context_t context,
				     const struct waffle_wire_context *wire)
{
	struct outgoing out = {context, WAFFLE_SAMPLING_UNKNOWN, 0, "", ""};

	if (!wire) {
		out.sampling = context.span_id ? WAFFLE_SAMPLING_ACCEPT : WAFFLE_SAMPLING_UNKNOWN;
		return out;
	}
	out.baggage = wire->baggage;
	if (!context.span_id)
		out.context = wire->context;
	if (!wire->context.span_id) {
		out.sampling = wire->sampling;
	} else if (same_trace(&out.context, &wire->context)) {
		out.sampling = wire->sampling;
		out.flags = wire->flags;
		out.tracestate = wire->tracestate;
	}
	if (out.sampling == WAFFLE_SAMPLING_UNKNOWN && out.context.span_id &&
	    out.context.span_id != wire->context.span_id)
		out.sampling = WAFFLE_SAMPLING_ACCEPT;
	return out;
}

PROPAGATE_API int waffle_propagate_inject(unsigned propagators,
					  const struct waffle_carrier *carrier,
					  waffle_context_t context,
					  const struct waffle_wire_context *wire)
{
	struct outgoing out = outgoing_make(context, wire);
	int result = 0;

	if (propagators & WAFFLE_PROPAGATE_TRACECONTEXT)
		result = tracecontext_inject(carrier, &out);
	if (!result && propagators & WAFFLE_PROPAGATE_B3)
		result = b3_inject(carrier, &out);
	if (!result && propagators & WAFFLE_PROPAGATE_B3MULTI)
		result = b3multi_inject(carrier, &out);
	if (!result && propagators & WAFFLE_PROPAGATE_BAGGAGE)
		result = baggage_inject(carrier, &out);
	return result;
}
