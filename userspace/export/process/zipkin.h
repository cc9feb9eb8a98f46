/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as Zipkin takes them: version 2 of its API (zipkin.io/zipkin-api), POST /api/v2/spans. */
#ifndef WAFFLE_EXPORT_PROCESS_ZIPKIN_H
#define WAFFLE_EXPORT_PROCESS_ZIPKIN_H

#include "export/process/otlp_traces.h"

/* Appends a list of spans, with the meaning of otlp_traces(). Events are annotations. */
uint32_t zipkin_spans(struct out_bytes *out, const struct otlp_source *source,
		      struct full_record *const *records, size_t count);

#endif
