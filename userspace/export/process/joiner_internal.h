/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Joins records to whole spans, events, counters and log messages, as they come: a span is
 * delivered at its end, everything else at once. Input are the records of a capture in the order of
 * time, from a live collector or a file. They are not trusted.
 *
 *	begin of a span ──→ open spans ──→ its end ──→ deliver()
 *	event, counter, log ─────────────────────────→ deliver()
 *
 * The memory is bounded: when open spans take more than `open_bytes`, the oldest ones are delivered
 * as unfinished.
 */
#ifndef WAFFLE_EXPORT_PROCESS_JOINER_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_JOINER_INTERNAL_H

#include <stdint.h>

#include "export/process/full_record.h"

#define JOINER_OPEN_BYTES (64u << 20)

struct joiner;

struct joiner_counts {
	uint64_t delivered;
	uint64_t unfinished; /* of them: spans that ended too late, or not at all */
	uint64_t ends_alone; /* ends of spans whose begin is not known; not delivered */
	uint64_t lost;       /* records that were lost before they came here */
	uint64_t out_of_memory;
};

/* The record is valid during the call. */
typedef void (*joiner_deliver)(struct full_record *record, void *arg);

/* NULL: out of memory. */
struct joiner *joiner_new(size_t open_bytes, joiner_deliver deliver, void *arg);
void joiner_free(struct joiner *joiner);
/* Added to CLOCK_MONOTONIC for the time since 1970; of records that are delivered from now on. */
void joiner_set_unix_offset(struct joiner *joiner, int64_t offset_ns);
/* Takes a record. `site`: that of a hit, which is copied; it may be NULL for a number that had its
 * site before. */
void joiner_record(struct joiner *joiner, const struct waffle_rec *rec,
		   const struct site_info *site);
/* Delivers the spans that are still open as unfinished. */
void joiner_finish(struct joiner *joiner, uint64_t ts);
struct joiner_counts joiner_counts(const struct joiner *joiner);
/* full_record_decode(), and the traces of links to spans that are open or were so recently. */
void joiner_decode(const struct joiner *joiner, struct full_record *full,
		   struct full_record_values *room);

#endif
