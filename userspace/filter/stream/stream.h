/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A filter as a stage between records in the order of time and whoever takes those that it keeps:
 * the collector inside a program, and the tracer for programs whose records come through rings.
 *
 *	sites, names of threads, hits, span ends, exits ──→ filter_stream ──→ deliver()
 *
 * It has the meaning of a capture's filter in the kernel (bpf/filter.bpf.c), with the same limits:
 *
 * - A span is decided at its begin if possible. Its end is kept if its begin was.
 * - A span whose duration matters is deferred: its begin is copied. If it passes at its end, both
 *   are delivered then. So the time of a delivered record may be before those of others.
 * - depth and parent.name are those of open spans. A parent that has ended is unknown.
 * - rate() counts what passes all else, at the time of the decision.
 * - keep_children: what happens inside a kept span is kept, too. What happens inside a deferred
 *   span waits in a buffer of its thread, which has the last 128 records.
 *
 * Records of a traced process are not trusted. The memory that a process can take is limited
 * (WAFFLE_OPEN_MAX and the others in bpf/filter.h), and so is the memory of all together. A record
 * that finds no room, or is left without memory, counts as lost. Spans that are left without an end
 * are forgotten after some seconds when their process needs the room.
 *
 * One thread uses a stream, except for filter_stream_use().
 */
#ifndef WAFFLE_FILTER_STREAM_STREAM_H
#define WAFFLE_FILTER_STREAM_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/record.h"
#include "filter/filter.h"
#include "target/elf/site.h"
#include "util/error.h"

struct filter_stream;

struct filter_stream_options {
	const struct filter_expr *filter; /* lives as long as the stream; NULL keeps everything */
	bool keep_children;
	/* Calls are decided like spans, by their begins and durations. Otherwise their hits are
	 * delivered as they are, since the kernel has decided them. */
	bool decides_calls;
	/* Counts of rate() that others take from as well (bpf/rate.h); NULL: the stream has its
	 * own. */
	uint64_t *rate_windows;
	/* Takes a record that is kept. It may change the record, which is valid until it returns.
	 */
	void (*deliver)(struct waffle_rec *rec, void *arg);
	void *arg;
};

int filter_stream_open(struct filter_stream **stream, const struct filter_stream_options *options,
		       struct error *err);
/* What is deferred is dropped: a span that has not ended is kept only if its duration does not
 * matter. */
void filter_stream_free(struct filter_stream *stream);

enum filter_stream_use {
	FILTER_STREAM_DORMANT, /* no hit is of any use: the site need not be armed */
	FILTER_STREAM_CONTEXT, /* can't match, but must be armed: as a parent or as a child */
	FILTER_STREAM_ALWAYS,  /* matches always */
	FILTER_STREAM_ASKS,    /* the values of each hit decide */
};
/* The same decision as in plan.h. Any thread may call it. */
enum filter_stream_use filter_stream_use(const struct filter_stream *stream,
					 const struct site_info *site);

/*
 * Adds the next site: hits refer to sites by 0, 1, … in the order of adding. The site and its
 * strings live as long as the stream. NULL: a site whose hits are not wanted. False: out of memory,
 * and nothing was added.
 */
bool filter_stream_add_site(struct filter_stream *stream, const struct site_info *site);

/*
 * Everything that follows comes in the order of time, as far as that is known. A delivered record
 * may be the one that is passed here.
 */

/* A thread has this name from now on. The record itself is not delivered. */
void filter_stream_name(struct filter_stream *stream, uint32_t tgid, uint32_t tid,
			const char comm[WAFFLE_COMM_BYTES]);
/*
 * `now`: when the record was made, which is what rate() counts by and what makes spans old. It is
 * the record's own time, but for records of tracks: a program may give these any time of any clock.
 */

/* The frame follows the hit. */
void filter_stream_hit(struct filter_stream *stream, struct waffle_rec_hit *hit, uint64_t now);
/* If no record of the span is pending or kept, its end is rejected. `site` is that of the begin if
 * it is known. */
void filter_stream_end(struct filter_stream *stream, struct waffle_rec_span_end *end, uint64_t now);
void filter_stream_thread_exit(struct filter_stream *stream, uint32_t tgid, uint32_t tid);
/* Also for exec(). All that the process has left open is forgotten. */
void filter_stream_process_exit(struct filter_stream *stream, uint32_t tgid);

struct filter_stream_counts {
	/* For the account of a capture: produced = delivered + lost. Rejected records are not
	 * produced. */
	uint64_t delivered;
	uint64_t lost; /* records that may have been kept if there had been room */
	uint64_t open; /* spans that are open now */
};
struct filter_stream_counts filter_stream_counts(const struct filter_stream *stream);

#endif
