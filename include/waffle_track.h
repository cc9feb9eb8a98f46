/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tracks: spans with explicit times, on lanes that are no threads. They are for what happens
 * elsewhere and becomes known later: work of a device with its own timer, hardware units of a
 * simulator, requests in a queue, phases that are read from a log.
 *
 *	waffle_clock_t *ticks = waffle_clock("gpu 0");
 *	waffle_track_t *copies = waffle_track("copy engine", "gpu 0", ticks);
 *	…
 *	waffle_clock_pair(ticks, gpu_now_ns(), monotonic_now_ns());
 *	waffle_span_complete(copies, copy, record->start_ns, record->duration_ns,
 *			     WAFFLE_VALUES(waffle_u64(record->bytes)));
 *
 * Names are those of waffle_named.h, so all of this is dormant until somebody records. All
 * functions are thread-safe. Those that record may be called in signal handlers; waffle_clock(),
 * waffle_clock_pair() and waffle_track() may not. docs/names-and-tracks.md is the guide.
 */
#ifndef WAFFLE_TRACK_H
#define WAFFLE_TRACK_H

#include "waffle_named.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- clocks ---- */

typedef struct waffle_clock_ waffle_clock_t;

/* Makes a clock, or finds the one of that name. It is never freed, and never NULL. */
waffle_clock_t *waffle_clock(const char *name);

/*
 * Says that the clock showed `own_ns` when CLOCK_MONOTONIC showed `monotonic_ns`. Between two pairs
 * times are converted along the line through both; before the first and after the last pair, along
 * the nearest line. With one pair the clock runs as fast as CLOCK_MONOTONIC, and without one it is
 * CLOCK_MONOTONIC. So add a pair before the first span, and then one every few seconds: a pair does
 * not change what was recorded before it. The 256 pairs with the greatest `own_ns` are kept. A pair
 * with the `own_ns` of an earlier pair replaces that one.
 */
void waffle_clock_pair(waffle_clock_t *clock, unsigned long long own_ns,
		       unsigned long long monotonic_ns);

/* ---- tracks ---- */

typedef struct waffle_track_ waffle_track_t;

/*
 * Makes a track, or finds the one with the same name, group and clock. It is never freed, and never
 * NULL. Tracks of a group are shown together; NULL: none. The clock is that of all times of the
 * track; NULL: CLOCK_MONOTONIC in ns. Name and group have up to 63 bytes, what is longer is cut. A
 * process may have 65536 tracks; nothing is recorded on further ones, as one line on standard error
 * says.
 */
waffle_track_t *waffle_track(const char *name, const char *group, waffle_clock_t *clock);

/* ---- spans, events and counters with times ---- */

/* The ids of a span that is recorded later. */
typedef struct {
	waffle_context_t own; /* the context inside the span, for its children */
	unsigned long long parent;
} waffle_reserved_t;

/* The functions behind those below, without the test of the name's word. */
void waffle_named_complete(waffle_track_t *track, waffle_name_t *name,
			   const waffle_reserved_t *span, unsigned long long start_ns,
			   unsigned long long duration_ns, const waffle_value_t *values,
			   unsigned count);
waffle_event_id_t waffle_named_event_at(waffle_track_t *track, waffle_name_t *name,
					waffle_context_t context, unsigned long long ns,
					const waffle_value_t *values, unsigned count);
void waffle_named_counter_at(waffle_track_t *track, waffle_name_t *name, unsigned long long ns,
			     waffle_value_t value);

/* Gives ids to a span of which children are recorded first. `parent` may be the null context. */
waffle_reserved_t waffle_span_reserve(waffle_context_t parent);

/* Records a span whose ids are reserved. Each may be recorded once. */
static __inline__ void waffle_span_complete_reserved(waffle_track_t *track, waffle_name_t *name,
						     waffle_reserved_t span,
						     unsigned long long start_ns,
						     unsigned long long duration_ns,
						     const waffle_value_t *values, unsigned count)
{
	if (waffle_name_armed(name))
		waffle_named_complete(track, name, &span, start_ns, duration_ns, values, count);
}

/*
 * Records a span of a track with its times, in the track's clock. They may lie in the past or
 * future, and spans of a track may overlap and come in any order. A time that is more than 30 days
 * away from now is taken for that of a wrong clock: the span counts as lost, and one line on
 * standard error says so. Its parent is the span of `context`. Returns the context inside the span;
 * the null context if the name is not armed.
 */
static __inline__ waffle_context_t
waffle_span_complete_in(waffle_track_t *track, waffle_name_t *name, waffle_context_t context,
			unsigned long long start_ns, unsigned long long duration_ns,
			const waffle_value_t *values, unsigned count)
{
	waffle_reserved_t span_ = {{0, 0, 0}, 0};

	if (waffle_name_armed(name)) {
		span_ = waffle_span_reserve(context);
		waffle_named_complete(track, name, &span_, start_ns, duration_ns, values, count);
	}
	return span_.own;
}

/* The same with the current context of the calling thread as the parent. Returns its id. */
static __inline__ waffle_span_id_t
waffle_span_complete(waffle_track_t *track, waffle_name_t *name, unsigned long long start_ns,
		     unsigned long long duration_ns, const waffle_value_t *values, unsigned count)
{
	waffle_span_id_t id_ = {0};

	if (waffle_name_armed(name))
		id_.value = waffle_span_complete_in(track, name, waffle_context_extract(), start_ns,
						    duration_ns, values, count)
				    .span_id;
	return id_;
}

/* Records an event of a track. */
static __inline__ waffle_event_id_t waffle_event_at(waffle_track_t *track, waffle_name_t *name,
						    unsigned long long ns,
						    const waffle_value_t *values, unsigned count)
{
	waffle_event_id_t none_ = {0};

	return waffle_name_armed(name)
		       ? waffle_named_event_at(track, name, waffle_context_extract(), ns, values,
					       count)
		       : none_;
}

/* Records the value of a counter of a track. */
static __inline__ void waffle_counter_at(waffle_track_t *track, waffle_name_t *name,
					 unsigned long long ns, waffle_value_t value)
{
	if (waffle_name_armed(name))
		waffle_named_counter_at(track, name, ns, value);
}

#ifdef __cplusplus
}
#endif

#endif
