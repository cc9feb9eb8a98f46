// SPDX-License-Identifier: Apache-2.0
/* ExportMetricsServiceRequest (opentelemetry/proto/metrics/v1/metrics.proto). */
#include <stdio.h>

#include "export/process/metrics_text.h"
#include "export/process/otlp_out_internal.h"
#include "export/process/otlp_traces.h"

#define CUMULATIVE 2u
#define COUNTER_NAME "waffle.counter"
#define COUNTER_HELP "The last value of each counter of the program."

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

static void metric_begin(struct otlp_out *otlp, const char *name, const char *help,
			 const char *unit, unsigned field, const char *kind)
{
	otlp_item_begin(otlp, 2);
	otlp_text(otlp, 1, "name", name);
	otlp_text(otlp, 2, "description", help);
	otlp_text(otlp, 3, "unit", unit);
	otlp_begin(otlp, field, kind);
	otlp_list_begin(otlp, "dataPoints");
}

static void metric_end(struct otlp_out *otlp, bool cumulative, bool monotonic)
{
	otlp_list_end(otlp);
	if (cumulative)
		otlp_number(otlp, 2, "aggregationTemporality", CUMULATIVE);
	if (monotonic)
		otlp_bool(otlp, 3, "isMonotonic", true);
	otlp_end(otlp);
	otlp_end(otlp);
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
	metric_begin(&m->otlp, "waffle.records", "Spans, events and log messages.", "1", 7, "sum");
	for (size_t i = 0; i < m->table->series.len; i++)
		if (m->table->series.data[i]->count)
			count_write(m, m->table->series.data[i], m->table->series.data[i]->count);
	metric_end(&m->otlp, true, true);
	metric_begin(&m->otlp, "waffle.overflowed",
		     "Records that share a series because there are too many.", "1", 7, "sum");
	count_write(m, NULL, m->table->overflowed);
	metric_end(&m->otlp, true, true);
}

static void simulated_write(struct metrics_otlp *m)
{
	if (!m->table->simulated)
		return;
	metric_begin(&m->otlp, "waffle.simulated", METRICS_HELP_SIMULATED, "1", 5, "gauge");
	count_write(m, NULL, 1);
	metric_end(&m->otlp, false, false);
}

static void counters_write(struct metrics_otlp *m)
{
	bool any = false;

	for (size_t i = 0; i < m->table->series.len; i++) {
		const struct series *series = m->table->series.data[i];

		if (!series->is_counter)
			continue;
		if (!any)
			metric_begin(&m->otlp, COUNTER_NAME, COUNTER_HELP, "1", 5, "gauge");
		any = true;
		otlp_item_begin(&m->otlp, 1);
		attributes_write(m, 7, series);
		otlp_fixed64(&m->otlp, 3, "timeUnixNano", series->last_unix_ns);
		otlp_double(&m->otlp, 4, "asDouble", series->last);
		otlp_end(&m->otlp);
	}
	if (any)
		metric_end(&m->otlp, false, false);
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
		metric_begin(&m->otlp, name,
			     is_duration ? "Durations of spans." : "Values of a key.",
			     is_duration ? "s" : "1", 10, "exponentialHistogram");
		for (size_t j = 0; j < m->table->series.len; j++)
			if (m->table->series.data[j]->histograms[i])
				histogram_write(m, m->table->series.data[j],
						m->table->series.data[j]->histograms[i]);
		metric_end(&m->otlp, true, false);
	}
}

/* message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
 * message ScopeMetrics { InstrumentationScope scope = 1; repeated Metric metrics = 2; } */
static void resource_begin(struct otlp_out *otlp, const char *service, uint32_t pid,
			   const struct record_facts *facts, struct resource_cache *cache)
{
	otlp_item_begin(otlp, 1);
	otlp_resource(otlp, service, pid, facts, cache);
	otlp_list_begin(otlp, "scopeMetrics");
	otlp_item_begin(otlp, 2);
	otlp_scope(otlp);
	otlp_list_begin(otlp, "metrics");
}

static void resource_end(struct otlp_out *otlp)
{
	otlp_list_end(otlp);
	otlp_end(otlp);
	otlp_list_end(otlp);
	otlp_end(otlp);
}

void otlp_metrics(struct out_bytes *out, bool json, const char *service, uint32_t pid,
		  const struct metrics_snapshot *snapshot)
{
	struct metrics_otlp m = {.snapshot = snapshot, .table = snapshot->table};
	struct otlp_out *otlp = &m.otlp;

	otlp_request_begin(otlp, out, json);
	otlp_list_begin(otlp, "resourceMetrics");
	resource_begin(otlp, service, pid, NULL, NULL);
	records_write(&m);
	simulated_write(&m);
	counters_write(&m);
	histograms_write(&m);
	resource_end(otlp);
	otlp_list_end(otlp);
	otlp_request_end(otlp);
}

/* ---- counters of records ---- */

static void label_write(struct otlp_out *otlp, const char *key, const char *text)
{
	if (*text)
		otlp_attribute_text(otlp, 7, key, text, strlen(text));
}

/* A NumberDataPoint. */
static bool value_write(struct otlp_out *otlp, const struct full_record *record)
{
	struct full_record full = *record;
	struct full_record_values room;
	const struct waffle_record *of = &full.record;

	full_record_decode(&full, &room);
	if (!of->value_count)
		return false;
	otlp_item_begin(otlp, 1);
	otlp_list_begin(otlp, "attributes");
	label_write(otlp, "name", of->name);
	label_write(otlp, "waffle.category", of->category);
	label_write(otlp, "waffle.track", of->track);
	label_write(otlp, "waffle.track.group", of->track_group);
	otlp_list_end(otlp);
	otlp_fixed64(otlp, 3, "timeUnixNano", of->start_ns + (uint64_t)of->unix_offset_ns);
	if (room.values[0].type == WAFFLE_VALUE_F64)
		otlp_double(otlp, 4, "asDouble", room.values[0].f64);
	else if (room.values[0].type == WAFFLE_VALUE_U64 && room.values[0].u64 > INT64_MAX)
		otlp_double(otlp, 4, "asDouble", (double)room.values[0].u64);
	else
		otlp_fixed64(otlp, 6, "asInt", room.values[0].u64);
	otlp_end(otlp);
	return true;
}

static bool is_counter_of(const struct full_record *record, uint32_t pid)
{
	return record->record.kind == WAFFLE_RECORD_COUNTER && record->record.pid == pid;
}

static bool is_first(struct full_record *const *records, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (is_counter_of(records[i], records[index]->record.pid))
			return false;
	return records[index]->record.kind == WAFFLE_RECORD_COUNTER;
}

uint32_t otlp_counters(struct out_bytes *out, bool json, const struct otlp_source *source,
		       struct full_record *const *records, size_t count)
{
	struct otlp_out otlp;
	size_t begin = out->len;
	uint32_t written = 0;

	otlp_request_begin(&otlp, out, json);
	otlp_list_begin(&otlp, "resourceMetrics");
	for (size_t first = 0; first < count; first++) {
		uint32_t pid = records[first]->record.pid;

		if (!is_first(records, first))
			continue;
		resource_begin(&otlp, source->service, pid, records[first]->facts, source->cache);
		metric_begin(&otlp, COUNTER_NAME, COUNTER_HELP, "1", 5, "gauge");
		for (size_t i = first; i < count; i++)
			if (is_counter_of(records[i], pid))
				written += value_write(&otlp, records[i]);
		metric_end(&otlp, false, false);
		resource_end(&otlp);
	}
	otlp_list_end(&otlp);
	otlp_request_end(&otlp);
	if (!written)
		out->len = begin;
	return written;
}
