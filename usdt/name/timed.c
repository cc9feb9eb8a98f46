// SPDX-License-Identifier: Apache-2.0
/* Spans, events and counters of tracks: the functions of waffle_track.h that record. */
#include <stdint.h>

#include "usdt/name/names.h"
#include "usdt/name/tracks.h"
#include "waffle/emit.h"

#define API __attribute__((visibility("default")))

static const struct name_site *name_of(const waffle_name_t *name)
{
	return (const struct name_site *)name;
}

static void emit_at(const struct waffle_track_ *track, const waffle_name_t *name,
		    const unsigned long long *words, uint64_t from, uint64_t to,
		    const waffle_value_t *values, unsigned count)
{
	struct named_time time = {.track = track->number};

	if (!track->number)
		return;
	time.start_ns = tracks_time(track, from);
	time.end_ns = tracks_time(track, to);
	if (time.end_ns < time.start_ns)
		time.end_ns = time.start_ns;
	named_emit(name_of(name), words, &time, values, count);
}

API waffle_reserved_t waffle_span_reserve(waffle_context_t parent)
{
	struct waffle_thread_ *thread = waffle_thread_ready_();
	waffle_reserved_t span = {.own = parent, .parent = parent.span_id};

	/* A span outside any trace starts a new one, as waffle_number_span_() does it. */
	if (!(parent.trace_hi | parent.trace_lo)) {
		span.own.trace_hi = waffle_new_id_(thread) * 0x9e3779b97f4a7c15ull;
		span.own.trace_lo = waffle_new_id_(thread);
	}
	span.own.span_id = waffle_new_id_(thread);
	return span;
}

API void waffle_named_complete(waffle_track_t *track, waffle_name_t *name,
			       const waffle_reserved_t *span, unsigned long long start_ns,
			       unsigned long long duration_ns, const waffle_value_t *values,
			       unsigned count)
{
	unsigned long long words[sizeof(struct waffle_frame) / 8] = {
		span->own.span_id, span->parent, span->own.trace_hi, span->own.trace_lo};
	uint64_t end = start_ns + duration_ns;

	if (!named_is_recorded(name) || name_of(name)->site.kind != WAFFLE_SITE_SPAN || !words[0])
		return;
	emit_at(track, name, words, start_ns, end < start_ns ? UINT64_MAX : end, values, count);
}

API waffle_event_id_t waffle_named_event_at(waffle_track_t *track, waffle_name_t *name,
					    waffle_context_t context, unsigned long long ns,
					    const waffle_value_t *values, unsigned count)
{
	unsigned long long words[sizeof(struct waffle_frame) / 8];
	waffle_event_id_t id = {0};
	uint16_t kind = name_of(name)->site.kind;

	if (!named_is_recorded(name) || (kind != WAFFLE_SITE_EVENT && !site_kind_is_log(kind)))
		return id;
	waffle_fill_frame_(words, &context);
	id.value = words[0] = waffle_new_id_(waffle_thread_ready_());
	emit_at(track, name, words, ns, ns, values, count);
	return id;
}

API void waffle_named_counter_at(waffle_track_t *track, waffle_name_t *name, unsigned long long ns,
				 waffle_value_t value)
{
	struct waffle_thread_ *thread = waffle_thread_ready_();
	unsigned long long words[sizeof(struct waffle_frame) / 8];

	if (!named_is_recorded(name) || name_of(name)->site.kind != WAFFLE_SITE_COUNTER)
		return;
	waffle_fill_frame_(words, &thread->context_);
	/* The id tells it from others on its way to the reader (struct waffle_rec_on_track). */
	words[0] = waffle_new_id_(thread);
	emit_at(track, name, words, ns, ns, &value, 1);
}
