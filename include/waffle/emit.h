/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an armed site does: number the span or event, lay out the frame (abi.h), call the probe. All
 * of it is out of line and cold; a dormant site never comes here.
 *
 * `words` points to four words for struct waffle_frame, then the keys' values as WAFFLE_WORD_* made
 * them; `types` holds a letter a key, or is NULL if no value needs copying.
 */
#ifndef WAFFLE_EMIT_H
#define WAFFLE_EMIT_H

#include "abi.h"
#include "arch.h"
#include "context.h"
#include "site.h"

#define WAFFLE_COLD_ static __attribute__((unused, noinline, cold))

static inline unsigned long long waffle_word_f64_(double value)
{
	unsigned long long word;

	__builtin_memcpy(&word, &value, sizeof(word));
	return word;
}

static inline unsigned long long waffle_word_str_(const char *text)
{
	return (unsigned long long)(__UINTPTR_TYPE__)text;
}

static inline unsigned long long waffle_word_span_(waffle_span_id_t id)
{
	return id.value;
}

static inline unsigned long long waffle_word_event_(waffle_event_id_t id)
{
	return id.value;
}

/* A span to the end of its block: what the end needs. */
struct waffle_scope_ {
	unsigned long long id;
	const void *probe;
	waffle_context_t outer;
};

/* Copies a string into the frame; returns the words used. */
WAFFLE_COLD_ size_t waffle_copy_string_(unsigned long long *out, const char *text)
{
	size_t length = 0, words;

	if (!text) {
		out[0] = WAFFLE_STR_NULL;
		return 1;
	}
	while (length < WAFFLE_STR_MAX && text[length])
		length++;
	out[0] = length;
	if (length == WAFFLE_STR_MAX && text[length])
		out[0] |= WAFFLE_STR_CUT;
	words = (length + 7) / 8;
	if (words)
		out[words] = 0; /* the padding */
	__builtin_memcpy(out + 1, text, length);
	return 1 + words;
}

WAFFLE_COLD_ void waffle_emit_strings_(const void *probe, const char *name,
				       const unsigned long long *words, const char *types)
{
	unsigned long long frame[WAFFLE_FRAME_MAX / 8];
	size_t used = sizeof(struct waffle_frame) / 8;

	__builtin_memcpy(frame, words, sizeof(struct waffle_frame));
	words += used;
	for (; *types; types++) {
		if (*types == WAFFLE_KEY_STR)
			used += waffle_copy_string_(frame + used,
						    (const char *)(__UINTPTR_TYPE__)*words);
		else
			frame[used++] = *words;
		words++;
	}
	waffle_probe_call_(probe, frame[0], name, frame, used * 8);
}

static inline void waffle_emit_(const void *probe, const char *name,
				const unsigned long long *words, size_t count, const char *types)
{
	/* Touch the name: a tracer that reads it cannot fault a page in (bpf_probe_read_user). */
	(void)*(const volatile char *)name;
	if (types)
		waffle_emit_strings_(probe, name, words, types);
	else
		waffle_probe_call_(probe, words[0], name, words, count * 8);
}

/* Fills in who the parent is; a span outside any trace starts one. */
static inline void waffle_fill_frame_(unsigned long long *words, const waffle_context_t *context)
{
	words[1] = context->span_id;
	words[2] = context->trace_hi;
	words[3] = context->trace_lo;
}

WAFFLE_COLD_ waffle_span_t waffle_span_begin_(const void *probe, const char *name,
					      unsigned long long *words, size_t count,
					      const char *types)
{
	waffle_span_t span;

	waffle_fill_frame_(words, &waffle_thread_.context);
	if (!(words[2] | words[3])) {
		words[2] = waffle_new_id_() * 0x9e3779b97f4a7c15ull;
		words[3] = waffle_new_id_();
	}
	span.id = words[0] = waffle_new_id_();
	span.trace_hi = words[2];
	span.trace_lo = words[3];
	span.probe = probe;
	waffle_emit_(probe, name, words, count, types);
	return span;
}

WAFFLE_COLD_ void waffle_span_end_(unsigned long long id, const void *begin_probe)
{
	const void *probe;

	WAFFLE_SITE_BARE_(probe, WAFFLE_SITE_SPAN_END, "span_end", WAFFLE_META_HEAD_(""));
	waffle_probe_call_(probe, id, begin_probe, NULL, 0);
}

WAFFLE_COLD_ struct waffle_scope_ *waffle_scope_enter_(struct waffle_scope_ *scope,
						       const void *probe, const char *name,
						       unsigned long long *words, size_t count,
						       const char *types)
{
	waffle_span_t span;

	scope->outer = waffle_thread_.context;
	span = waffle_span_begin_(probe, name, words, count, types);
	scope->id = span.id;
	scope->probe = probe;
	waffle_thread_.context = waffle_span_context(span);
	return scope;
}

WAFFLE_COLD_ void waffle_scope_leave_(const struct waffle_scope_ *scope)
{
	waffle_span_end_(scope->id, scope->probe);
	waffle_thread_.context = scope->outer;
}

static inline __attribute__((always_inline)) void
waffle_scope_end_(struct waffle_scope_ *const *open)
{
	if (__builtin_expect(*open != NULL, 0))
		waffle_scope_leave_(*open);
}

WAFFLE_COLD_ waffle_event_id_t waffle_event_(const void *probe, const char *name,
					     unsigned long long *words, size_t count,
					     const char *types)
{
	waffle_event_id_t id;

	waffle_fill_frame_(words, &waffle_thread_.context);
	id.value = words[0] = waffle_new_id_();
	waffle_emit_(probe, name, words, count, types);
	return id;
}

WAFFLE_COLD_ void waffle_counter_(const void *probe, const char *name, unsigned long long *words,
				  size_t count)
{
	waffle_fill_frame_(words, &waffle_thread_.context);
	waffle_emit_(probe, name, words, count, NULL);
}

/* WAFFLE_INJECT: a null context changes nothing. */
struct waffle_injected_ {
	waffle_context_t outer;
};

static inline struct waffle_injected_ waffle_inject_(waffle_context_t context)
{
	struct waffle_injected_ injected;

	injected.outer = waffle_thread_.context;
	if (context.span_id)
		waffle_thread_.context = context;
	return injected;
}

static inline void waffle_injected_end_(struct waffle_injected_ *injected)
{
	waffle_thread_.context = injected->outer;
}

#endif
