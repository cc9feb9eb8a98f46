// SPDX-License-Identifier: Apache-2.0
/*
 * Spans, events and counters of names that are made at run time: the functions of waffle_named.h.
 * They do what the macros do (waffle/emit.h), but lay out the values by the types of the name.
 */
#include <string.h>

#include "usdt/name/names.h"
#include "usdt/ring/rings.h"
#include "usdt/name/values.h"
#include "waffle/emit.h"

#define API __attribute__((visibility("default")))

_Static_assert(sizeof(waffle_scope_t) >= sizeof(struct waffle_scope_),
	       "a scope of waffle_named.h has room for one of the macros");

/* The word that says whether a scope is open, and in what way. It is behind the macros' scope. */
struct named_scope {
	unsigned long long open; /* SCOPE_* */
	struct waffle_scope_ scope;
};
_Static_assert(sizeof(struct named_scope) <= sizeof(waffle_scope_t), "and for the word");

_Static_assert(sizeof(struct rings_gate) == sizeof(unsigned long long), "the gate is one word");

enum { SCOPE_SPAN = 1, SCOPE_CONTEXT = 2 };

/* Its texts are in the order of a site's meta. */
static const struct name_site *name_of(const waffle_name_t *name)
{
	return (const struct name_site *)name; /* its first member */
}

static void deliver(const struct name_site *name, const unsigned long long *frame, size_t bytes)
{
	/* The kernel has no probe here that could deliver what a tracer's ring can't take yet. */
	if (__atomic_load_n(&rings_gate.ring, __ATOMIC_RELAXED))
		rings_write(RING_HIT, (const uint64_t *)frame - 1, 1 + bytes / 8);
	else if (__atomic_load_n(&rings_gate.collector, __ATOMIC_RELAXED))
		rings_hit(name, frame[0], name->site.name, frame, bytes);
	else
		names_disarm_one(name);
}

/* Words of a RING_TRACK_HIT in front of the frame. */
#define TRACK_WORDS 4

/* The stack gets only as much as the strings need, since it may be small. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Walloca"
__attribute__((noinline)) void named_emit(const struct name_site *name,
					  const unsigned long long *words,
					  const struct named_time *time,
					  const waffle_value_t *values, unsigned count)
{
	struct values_layout layout = values_measure(&name->site, values, count);
	size_t bytes = sizeof(struct waffle_frame) + layout.bytes;
	unsigned long long *all = __builtin_alloca(TRACK_WORDS * sizeof(*all) + bytes);
	unsigned long long *frame = all + TRACK_WORDS;

	memcpy(frame, words, sizeof(struct waffle_frame));
	values_put(frame + sizeof(struct waffle_frame) / 8, &name->site, values, &layout);
	if (!time) {
		frame[-1] = (uintptr_t)name;
		deliver(name, frame, bytes);
		return;
	}
	all[0] = (uintptr_t)name;
	all[1] = time->track;
	all[2] = time->start_ns;
	all[3] = time->end_ns;
	rings_write(RING_TRACK_HIT, (const uint64_t *)all, TRACK_WORDS + bytes / 8);
}
#pragma GCC diagnostic pop

/* What a site passes as its line. In full mode it is not 0, also if the line is. */
static unsigned long long line_of(const waffle_name_t *name)
{
	return waffle_mode_here_() == WAFFLE_MODE_FULL ? 1ull << 32 | name_of(name)->site.line : 0;
}

static bool is_span(const waffle_name_t *name)
{
	return named_is_recorded(name) && name_of(name)->site.kind == WAFFLE_SITE_SPAN;
}

API waffle_span_t waffle_named_span_begin(waffle_name_t *name, const waffle_value_t *values,
					  unsigned count)
{
	struct waffle_thread_ *thread = waffle_thread_ready_();
	unsigned long long words[sizeof(struct waffle_frame) / 8];
	waffle_span_t span = {0};

	if (!is_span(name))
		return span;
	words[1] = line_of(name);
	waffle_number_span_(thread, words);
	waffle_span_opened_(thread, name_of(name)->site.name, words, NULL);
	span = (waffle_span_t){
		.id = words[0], .trace_hi = words[2], .trace_lo = words[3], .probe = name};
	named_emit(name_of(name), words, NULL, values, count);
	return span;
}

API void waffle_named_span_end(waffle_span_t span)
{
	const uint64_t words[] = {span.id, (uintptr_t)span.probe};

	if (!span.id)
		return;
	waffle_span_closed_(span.id);
	rings_write(RING_SPAN_END, words, 2);
}

API void waffle_named_scope_begin(waffle_scope_t *scope, waffle_name_t *name,
				  const waffle_value_t *values, unsigned count)
{
	struct named_scope *made = (struct named_scope *)scope;
	struct waffle_thread_ *thread = waffle_thread_ready_();
	unsigned long long words[sizeof(struct waffle_frame) / 8];
	waffle_context_t context;

	made->open = 0;
	if (!is_span(name))
		return;
	waffle_scope_prune_(thread, &made->scope);
	words[1] = line_of(name);
	waffle_number_span_(thread, words);
	waffle_span_opened_(thread, name_of(name)->site.name, words, &made->scope);
	named_emit(name_of(name), words, NULL, values, count);
	context =
		(waffle_context_t){.trace_hi = words[2], .trace_lo = words[3], .span_id = words[0]};
	made->open = SCOPE_SPAN;
	made->scope.probe_ = name;
	waffle_scope_push_(thread, &made->scope, &context);
}

API void waffle_scope_inject(waffle_scope_t *scope, waffle_context_t context)
{
	struct named_scope *made = (struct named_scope *)scope;

	made->open = context.span_id ? SCOPE_CONTEXT : 0;
	if (made->open)
		waffle_inject_(&made->scope, context);
}

API void waffle_named_scope_end(waffle_scope_t *scope)
{
	struct named_scope *made = (struct named_scope *)scope;

	if (made->open == SCOPE_SPAN)
		waffle_named_span_end(
			(waffle_span_t){.id = made->scope.id_, .probe = made->scope.probe_});
	if (made->open)
		waffle_scope_pop_(&made->scope);
	made->open = 0;
}

API waffle_event_id_t waffle_named_event(waffle_name_t *name, const waffle_value_t *values,
					 unsigned count)
{
	struct waffle_thread_ *thread = waffle_thread_ready_();
	unsigned long long words[sizeof(struct waffle_frame) / 8];
	waffle_event_id_t id = {0};
	uint16_t kind = name_of(name)->site.kind;

	if (!named_is_recorded(name) || (kind != WAFFLE_SITE_EVENT && !site_kind_is_log(kind)))
		return id;
	waffle_fill_frame_(words, &thread->context_);
	id.value = words[0] = waffle_new_id_(thread);
	named_emit(name_of(name), words, NULL, values, count);
	return id;
}

API void waffle_named_counter(waffle_name_t *name, waffle_value_t value)
{
	unsigned long long words[sizeof(struct waffle_frame) / 8];

	if (!named_is_recorded(name) || name_of(name)->site.kind != WAFFLE_SITE_COUNTER)
		return;
	waffle_fill_frame_(words, &waffle_thread_get_()->context_);
	words[0] = 0;
	named_emit(name_of(name), words, NULL, &value, 1);
}

API const unsigned long long *waffle_named_gate(void)
{
	return (const unsigned long long *)&rings_gate;
}

API waffle_context_t waffle_named_context(void)
{
	return waffle_context_extract();
}

API void waffle_named_set_context(waffle_context_t context)
{
	waffle_thread_get_()->context_ = context;
}
