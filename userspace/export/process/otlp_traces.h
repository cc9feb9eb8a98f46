/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of OTLP: spans with their events, and metrics. */
#ifndef WAFFLE_EXPORT_PROCESS_OTLP_TRACES_H
#define WAFFLE_EXPORT_PROCESS_OTLP_TRACES_H

#include "export/process/bytes_internal.h"
#include "export/process/joiner_internal.h"
#include "export/process/pending_events.h"
#include "export/process/resource_internal.h"
#include "export/process/series_internal.h"

struct otlp_source {
	const char *service;
	const struct joiner *joiner;    /* for traces of links; NULL: records have facts */
	struct pending_events *pending; /* events of the spans */
	struct resource_cache *cache;   /* of processes of this host; may be NULL */
};

/* OpenTelemetry's name of a machine, such as "amd64" for uname()'s "x86_64". */
const char *otlp_arch_name(const char *machine);

/*
 * Appends an ExportTraceServiceRequest of these records to `out`. Spans take their events from
 * `pending`; events and log messages become spans without duration, and counters are left out.
 * Returns how many records are in it; 0: nothing was appended.
 */
uint32_t otlp_traces(struct out_bytes *out, bool json, const struct otlp_source *source,
		     struct full_record *const *records, size_t count);

/* Appends an ExportMetricsServiceRequest of the counters among these records: each value is a point
 * of the gauge waffle.counter. Returns how many there are; 0: nothing was appended. */
uint32_t otlp_counters(struct out_bytes *out, bool json, const struct otlp_source *source,
		       struct full_record *const *records, size_t count);

/* Appends an ExportMetricsServiceRequest of the metrics of the processor metrics(). */
void otlp_metrics(struct out_bytes *out, bool json, const char *service, uint32_t pid,
		  const struct metrics_snapshot *snapshot);

#endif
