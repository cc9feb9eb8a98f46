// SPDX-License-Identifier: Apache-2.0
/* ExportMetricsServiceRequest (opentelemetry/proto/metrics/v1/metrics.proto). */
#include <stdio.h>

#include "export/process/metrics_text.h"
#include "export/process/otlp_out_internal.h"
#include "export/process/otlp_traces.h"

#define CUMULATIVE 2u

struct metrics_otlp {
	struct otlp_out otlp;
	const struct metrics_snapshot *snapshot;
	const struct series_table *table;
};

static void attributes_write(struct metrics_otlp *m, unsigned field, const struct series *series)
{
	otlp_list_begin(&m->otlp, "attributes");
	for (size_t i = 0; i < 2 + m->table->label_count; i++) {
		const char *key = i == 0 ? "kind" : i == 1 ? "name" : m->table->labels[i - 2].label;

		if (series->values[i])
			otlp_attribute_text(&m->otlp, field, key, series->values[i],
					    strlen(series->values[i]));
	}
	if (series->overflow)
		otlp_attribute_bool(&m->otlp, field, "otel.metric.overflow", true);
	otlp_list_end(&m->otlp);
}

static void metric_begin(struct metrics_otlp *m, const char *name, const char *help,
			 const char *unit, unsigned field, const char *kind)
{
	otlp_item_begin(&m->otlp, 2);
	otlp_text(&m->otlp, 1, "name", name);
	otlp_text(&m->otlp, 2, "description", help);
	otlp_text(&m->otlp, 3, "unit", unit);
	otlp_begin(&m->otlp, field, kind);
	otlp_list_begin(&m->otlp, "dataPoints");
}

static void metric_end(struct metrics_otlp *m, bool cumulative, bool monotonic)
{
	otlp_list_end(&m->otlp);
	if (cumulative)
		otlp_number(&m->otlp, 2, "aggregationTemporality", CUMULATIVE);
	if (monotonic)
		otlp_bool(&m->otlp, 3, "isMonotonic", true);
	otlp_end(&m->otlp);
	otlp_end(&m->otlp);
}

/* message NumberDataPoint { fixed64 start_time_unix_nano = 2; fixed64 time_unix_nano = 3;
 * double as_double = 4; sfixed64 as_int = 6; repeated KeyValue attributes = 7; } */
static void count_write(struct metrics_otlp *m, const struct series *series, uint64_t count)
{
	otlp_item_begin(&m->otlp, 1);
	if (series)
		attributes_write(m, 7, series);
	otlp_fixed64(&m->otlp, 2, "startTimeUnixNano", m->table->start_unix_ns);
	otlp_fixed64(&m->otlp, 3, "timeUnixNano", m->snapshot->unix_ns);
	otlp_fixed64(&m->otlp, 6, "asInt", count);
	otlp_end(&m->otlp);
}

static void records_write(struct metrics_otlp *m)
{
	metric_begin(m, "waffle.records", "Spans, events and log messages.", "1", 7, "sum");
	for (size_t i = 0; i < m->table->series.len; i++)
		if (m->table->series.data[i]->count)
			count_write(m, m->table->series.data[i], m->table->series.data[i]->count);
	metric_end(m, true, true);
	metric_begin(m, "waffle.overflowed",
		     "Records that share a series because there are too many.", "1", 7, "sum");
	count_write(m, NULL, m->table->overflowed);
	metric_end(m, true, true);
}

static void counters_write(struct metrics_otlp *m)
{
	bool any = false;

	for (size_t i = 0; i < m->table->series.len; i++) {
		const struct series *series = m->table->series.data[i];

		if (!series->is_counter)
			continue;
		if (!any)
			metric_begin(m, "waffle.counter",
				     "The last value of each counter of the program.", "1", 5,
				     "gauge");
		any = true;
		otlp_item_begin(&m->otlp, 1);
		attributes_write(m, 7, series);
		otlp_fixed64(&m->otlp, 3, "timeUnixNano", series->last_unix_ns);
		otlp_double(&m->otlp, 4, "asDouble", series->last);
		otlp_end(&m->otlp);
	}
	if (any)
		metric_end(m, false, false);
}

/* message Exemplar { fixed64 time_unix_nano = 2; double as_double = 3; bytes span_id = 4;
 * bytes trace_id = 5; } Those that an earlier request had are left out. */
static void exemplars_write(struct metrics_otlp *m, struct exp_histogram *histogram)
{
	otlp_list_begin(&m->otlp, "exemplars");
	for (size_t i = 0; i < EXP_HISTOGRAM_EXEMPLARS; i++) {
		struct exemplar *exemplar = &histogram->exemplars[i];

		if (!exemplar->fresh)
			continue;
		exemplar->fresh = false;
		otlp_item_begin(&m->otlp, 11);
		otlp_fixed64(&m->otlp, 2, "timeUnixNano", exemplar->unix_ns);
		otlp_double(&m->otlp, 3, "asDouble", exemplar->value);
		if (exemplar->span_id)
			otlp_id(&m->otlp, 4, "spanId", exemplar->span_id);
		otlp_id128(&m->otlp, 5, "traceId", exemplar->trace_hi, exemplar->trace_lo);
		otlp_end(&m->otlp);
	}
	otlp_list_end(&m->otlp);
}

/* message ExponentialHistogramDataPoint */
static void histogram_write(struct metrics_otlp *m, const struct series *series,
			    struct exp_histogram *histogram)
{
	struct otlp_out *otlp = &m->otlp;

	otlp_item_begin(otlp, 1);
	attributes_write(m, 1, series);
	otlp_fixed64(otlp, 2, "startTimeUnixNano", m->table->start_unix_ns);
	otlp_fixed64(otlp, 3, "timeUnixNano", m->snapshot->unix_ns);
	otlp_fixed64(otlp, 4, "count", histogram->count);
	otlp_double(otlp, 5, "sum", histogram->sum);
	otlp_signed(otlp, 6, "scale", histogram->scale);
	otlp_fixed64(otlp, 7, "zeroCount", histogram->zeros);
	otlp_begin(otlp, 8, "positive");
	otlp_signed(otlp, 1, "offset", histogram->offset);
	otlp_counts(otlp, 2, "bucketCounts", histogram->buckets, histogram->used);
	otlp_end(otlp);
	exemplars_write(m, histogram);
	if (histogram->count) {
		otlp_double(otlp, 12, "min", histogram->min);
		otlp_double(otlp, 13, "max", histogram->max);
	}
	otlp_end(otlp);
}

static void histograms_write(struct metrics_otlp *m)
{
	for (size_t i = 0; i < m->table->histogram_count; i++) {
		const struct series_choice *choice = &m->table->histograms[i];
		bool is_duration = choice->field == SERIES_DUR;
		char name[128];

		if (is_duration)
			snprintf(name, sizeof(name), "waffle.span.duration");
		else
			snprintf(name, sizeof(name), "waffle.kv.%s", choice->key);
		metric_begin(m, name, is_duration ? "Durations of spans." : "Values of a key.",
			     is_duration ? "s" : "1", 10, "exponentialHistogram");
		for (size_t j = 0; j < m->table->series.len; j++)
			if (m->table->series.data[j]->histograms[i])
				histogram_write(m, m->table->series.data[j],
						m->table->series.data[j]->histograms[i]);
		metric_end(m, true, false);
	}
}

void otlp_metrics(struct out_bytes *out, bool json, const char *service, uint32_t pid,
		  const struct metrics_snapshot *snapshot)
{
	struct metrics_otlp m = {.snapshot = snapshot, .table = snapshot->table};
	struct otlp_out *otlp = &m.otlp;

	otlp_request_begin(otlp, out, json);
	otlp_list_begin(otlp, "resourceMetrics");
	otlp_item_begin(otlp, 1);
	otlp_resource(otlp, service, pid, NULL);
	otlp_list_begin(otlp, "scopeMetrics");
	otlp_item_begin(otlp, 2);
	otlp_scope(otlp);
	otlp_list_begin(otlp, "metrics");
	records_write(&m);
	counters_write(&m);
	histograms_write(&m);
	otlp_list_end(otlp);
	otlp_end(otlp);
	otlp_list_end(otlp);
	otlp_end(otlp);
	otlp_list_end(otlp);
	otlp_request_end(otlp);
}
