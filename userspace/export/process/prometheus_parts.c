// SPDX-License-Identifier: Apache-2.0
#include "export/process/prometheus_parts_internal.h"

#include <inttypes.h>
#include <stdio.h>

/* message Label { string name = 1; string value = 2; }, and the same of LabelPair */
void prometheus_label(struct otlp_out *out, const char *name, const char *value)
{
	otlp_item_begin(out, 1);
	otlp_text(out, 1, "name", name);
	otlp_text(out, 2, "value", value);
	otlp_end(out);
}

void prometheus_exemplar_labels(struct otlp_out *out, const struct exemplar *exemplar)
{
	char trace[33], span[17];

	snprintf(trace, sizeof(trace), "%016" PRIx64 "%016" PRIx64, exemplar->trace_hi,
		 exemplar->trace_lo);
	snprintf(span, sizeof(span), "%016" PRIx64, exemplar->span_id);
	if (exemplar->span_id)
		prometheus_label(out, "span_id", span);
	prometheus_label(out, "trace_id", trace);
}

/* message BucketSpan { sint32 offset = 1; uint32 length = 2; }
 * Prometheus names a bucket by its upper bound, and OpenTelemetry by its lower one. The first count
 * is followed by differences. */
void prometheus_buckets(struct otlp_out *out, unsigned spans, unsigned deltas,
			const struct exp_histogram *histogram)
{
	uint64_t counts[EXP_HISTOGRAM_BUCKETS], last = 0;

	if (!histogram->used)
		return;
	otlp_item_begin(out, spans);
	otlp_signed(out, 1, "offset", histogram->offset + 1);
	otlp_number(out, 2, "length", histogram->used);
	otlp_end(out);
	for (uint32_t i = 0; i < histogram->used; i++) {
		int64_t delta = (int64_t)(histogram->buckets[i] - last);

		counts[i] = (uint64_t)delta << 1 ^ (uint64_t)(delta >> 63); /* zigzag */
		last = histogram->buckets[i];
	}
	otlp_counts(out, deltas, "deltas", counts, histogram->used);
}
