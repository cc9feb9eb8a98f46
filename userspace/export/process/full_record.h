/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a chain of processors passes on: a span from begin to end, or an event, counter or log
 * message, with all that is known of it.
 */
#ifndef WAFFLE_EXPORT_PROCESS_FULL_RECORD_H
#define WAFFLE_EXPORT_PROCESS_FULL_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/record.h"
#include "filter/eval.h"
#include "target/elf/site.h"
#include "waffle_process.h"

/* A cause by the ids under which a server knows it: an event inside of a span has none of its own,
 * so that is its span. */
struct record_fact_link {
	uint64_t trace_hi, trace_lo, id;
	const char *to_event;   /* name of the event that is the cause; NULL: the span is */
	const char *from_event; /* name of the event in this span that was caused; NULL: the span */
};

/* What a finished capture knows of a record beyond the record (export/backend/records_internal.h).
 * Links replace those of the record, which lack the ids of other processes. */
struct record_facts {
	const struct waffle_value *attributes;
	size_t attribute_count;
	const struct record_fact_link *links;
	size_t link_count;
	/* The process, by the names of OpenTelemetry's resources. Records of one pid have the same
	 * ones. */
	const struct waffle_value *resource;
	size_t resource_count;
};

struct full_record {
	/* Its values and links are only there after full_record_decode(). */
	struct waffle_record record;
	const struct site_info *site;
	/* A struct waffle_frame and the values; of a call also those of its return. */
	const void *frame;
	uint32_t frame_bytes;
	const char *parent_name; /* NULL: no parent, or unknown */
	int64_t depth;           /* number of spans around it; -1: unknown */
	/* NULL: it comes from a chain. A copy shares them. */
	const struct record_facts *facts;
	/* Of a span of a chain: what the scheduler did with its thread, if `has_sched`. */
	bool has_sched;
	uint64_t running_ns, runnable_ns;
	bool simulated; /* of a chain: a stand-in made it, no GPU (docs/simulation.md) */
};

/* Room for the values and links of one record. */
struct full_record_values {
	struct waffle_value values[WAFFLE_KEYS_MAX];
	struct waffle_record_link links[WAFFLE_KEYS_MAX];
};

/* Sets the members `values` and `links`, which point into the frame and into `room`. The traces of
 * links stay 0. */
void full_record_decode(struct full_record *full, struct full_record_values *room);
/* Fills in the scheduler's times as attributes: waffle.running_ns, waffle.runnable_ns and
 * waffle.blocked_ns. Returns their number: 0 if the times are not known, otherwise 3. */
size_t full_record_times(const struct full_record *full, struct waffle_value values[3]);
/* The same record for a filter. */
struct filter_subject full_record_subject(const struct full_record *full);
/* A copy of its own in one block, for free(). It shares only the site. NULL: out of memory. */
struct full_record *full_record_copy(const struct full_record *full);
/* Bytes of such a copy. */
size_t full_record_bytes(const struct full_record *full);
/* The first value with this key; false: it has none. */
bool full_record_value(const struct full_record *full, const char *key, struct waffle_value *value);

#endif
