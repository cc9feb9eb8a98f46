/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arranges the records of a program as slices on its threads, for the formats of viewers.
 *
 * Slices of a thread have to nest, and whether a span nests is only known at its end. So records
 * are collected for a window of about a second. Then spans that have ended by then are written as
 * the exporters of captures write them: on their thread if they nest there, else aside. A span that
 * is still open gets a begin on its thread, and its end in a later window. If another span of the
 * thread turns out to end within it, the slice ends there and the rest of the span continues aside.
 *
 * A program may leave spans open for ever, and start threads for ever. What is kept of both is
 * bounded (timeline_state.h).
 *
 * Spans of a track have any times, but are complete. What is before the recording is left out,
 * since the file begins then.
 *
 * All functions call memory_failed() when memory runs out, so they belong into an attempt
 * (usdt/record/attempt.h).
 */
#ifndef WAFFLE_USDT_SINK_TIMELINE_H
#define WAFFLE_USDT_SINK_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "export/node.h"
#include "store/record.h"
#include "store/store.h"

#define TIMELINE_OPEN UINT64_MAX /* the end of a span that has not ended yet */

/* One end of an arrow from a cause to what it caused. */
struct timeline_flow {
	uint64_t id; /* the same at both ends, unique */
	bool caused; /* the node was caused; else it is the cause */
	bool ends;   /* the same, and the cause is older */
	bool alone;  /* the cause was written in an earlier window, without the arrow */
	uint64_t cause_id, cause_ts;
	uint32_t cause_thread, cause_tid;
};

/* A track of the program (waffle_track.h). It stands among the threads, and has the number of a
 * thread that no kernel gives to one. */
#define TIMELINE_TRACK_TID 0x40000000u

struct timeline_track {
	uint32_t tid;
	const char *name, *group; /* group: may be empty */
};

/* A span, event or counter as it is written. Threads are numbered 0, 1, … */
struct timeline_node {
	struct export_node node;
	uint32_t site, thread;
	uint64_t end_ts; /* of a span on its thread: where its slice ends; or TIMELINE_OPEN */
	uint64_t track;  /* of a span aside: what `aside` returned */
	const struct timeline_flow *flows;
	size_t flow_count;
};

/* What a format does. All are called while a window is written, thread by thread, each in the order
 * of time. Spans aside come between those of their thread. */
struct timeline_format {
	void (*site)(void *arg, const struct site_info *site);
	/* A thread is new or has another name; "": it is not known, or was told before. Its number
	 * may have been that of another thread, which has nothing more. */
	void (*thread)(void *arg, uint32_t thread, uint32_t tid, const char *name, uint64_t ts);
	/* The same for a track. */
	void (*track)(void *arg, uint32_t thread, const struct timeline_track *track);
	/* A slice begins on its thread, and ends, innermost first. `whole`: its end was known when
	 * it began. */
	void (*begin)(void *arg, const struct timeline_node *span);
	void (*end)(void *arg, const struct timeline_node *span, bool whole);
	/* A span that does not nest. If its end is not known, aside_end follows in a later window.
	 */
	uint64_t (*aside)(void *arg, const struct timeline_node *span);
	void (*aside_end)(void *arg, const struct timeline_node *span);
	void (*instant)(void *arg, const struct timeline_node *event);
	void (*counter)(void *arg, const struct timeline_node *counter);
	void (*loss)(void *arg, const struct waffle_rec_loss *loss);
};

struct timeline;

struct timeline *timeline_new(const struct timeline_format *format, void *arg, uint32_t pid,
			      uint64_t start_ts);
void timeline_free(struct timeline *timeline);
/* The site has to live as long. */
void timeline_add_site(struct timeline *timeline, const struct site_info *site);
/* Takes a record of a kind that it knows; others have no place in the formats. Returns false for
 * one that is not valid. */
bool timeline_record(struct timeline *timeline, const struct waffle_rec *rec);
/* Number of spans that were given up, since too many were open. */
uint64_t timeline_given_up(const struct timeline *timeline);
/* Whether the window has become too large to wait for its end. */
bool timeline_is_full(const struct timeline *timeline);
/* Writes the window. `end_ts`: the recording ends then, and so do all spans; else TIMELINE_OPEN. */
void timeline_write(struct timeline *timeline, uint64_t end_ts);

#endif
