// SPDX-License-Identifier: Apache-2.0
#include "export/process/metrics_protobuf_internal.h"

#include <stdio.h>

#include "export/process/metrics_text.h"
#include "export/process/prometheus_parts_internal.h"

/* enum MetricType */
enum family_type { FAMILY_COUNTER = 0, FAMILY_GAUGE = 1, FAMILY_HISTOGRAM = 4 };

/* message MetricFamily { string name = 1; string help = 2; MetricType type = 3;
 * repeated Metric metric = 4; } */
static void family_begin(struct otlp_out *out, struct out_bytes *bytes, const char *name,
			 const char *help, enum family_type type)
{
	otlp_delimited_begin(out, bytes);
	otlp_text(out, 1, "name", name);
	otlp_text(out, 2, "help", help);
	otlp_number(out, 3, "type", type);
}

/* message Metric { repeated LabelPair label = 1; Gauge gauge = 2; Counter counter = 3;
 * Histogram histogram = 7; } */
static void metric_begin(struct otlp_out *out, const struct series_table *table,
			 const struct series *series)
{
	otlp_item_begin(out, 4);
	for (size_t i = 0; i < 2 + table->label_count; i++)
		if (series->values[i])
			prometheus_label(out,
					 i == 0   ? "kind"
					 : i == 1 ? "name"
						  : table->labels[i - 2].label,
					 series->values[i]);
	if (series->overflow)
		prometheus_label(out, "overflow", "true");
}

/* message Gauge { double value = 1; }, and the same of Counter */
static void value_write(struct otlp_out *out, enum family_type type, double value)
{
	otlp_begin(out, type == FAMILY_GAUGE ? 2 : 3, "value");
	otlp_double(out, 1, "value", value);
	otlp_end(out);
}

/* message Exemplar { repeated LabelPair label = 1; double value = 2; Timestamp timestamp = 3; }
 * message Timestamp { int64 seconds = 1; int32 nanos = 2; } */
static void exemplar_write(struct otlp_out *out, const struct exemplar *exemplar)
{
	otlp_begin(out, 3, "exemplar");
	prometheus_exemplar_labels(out, exemplar);
	otlp_double(out, 2, "value", exemplar->value);
	otlp_begin(out, 3, "timestamp");
	otlp_int64(out, 1, "seconds", (int64_t)(exemplar->unix_ns / 1000000000));
	otlp_number(out, 2, "nanos", (uint32_t)(exemplar->unix_ns % 1000000000));
	otlp_end(out);
	otlp_end(out);
}

/* message Bucket { uint64 cumulative_count = 1; double upper_bound = 2; Exemplar exemplar = 3; } */
static void bucket_write(struct otlp_out *out, uint64_t count, double bound,
			 const struct exemplar *exemplar)
{
	otlp_item_begin(out, 3);
	otlp_int64(out, 1, "cumulativeCount", (int64_t)count);
	otlp_double(out, 2, "upperBound", bound);
	if (exemplar)
		exemplar_write(out, exemplar);
	otlp_end(out);
}

/* The buckets of the text. Prometheus takes the exemplars of a native histogram from them. */
static void classic_buckets_write(struct otlp_out *out, const struct exp_histogram *fine)
{
	struct exp_histogram histogram = *fine;
	uint64_t count = histogram.zeros;
	double low = -1;

	exp_histogram_coarsen(&histogram, METRICS_TEXT_SCALE, METRICS_TEXT_BUCKETS);
	if (histogram.zeros) {
		bucket_write(out, count, 0, exp_histogram_exemplar(&histogram, low, 0));
		low = 0;
	}
	for (uint32_t i = 0; i < histogram.used; i++) {
		double high = exp_histogram_bound(histogram.offset + (int32_t)i, histogram.scale);

		count += histogram.buckets[i];
		bucket_write(out, count, high, exp_histogram_exemplar(&histogram, low, high));
		low = high;
	}
}

/* message Histogram { uint64 sample_count = 1; double sample_sum = 2; repeated Bucket bucket = 3;
 * sint32 schema = 5; double zero_threshold = 6; uint64 zero_count = 7;
 * repeated BucketSpan positive_span = 12; repeated sint64 positive_delta = 13; } */
static void histogram_write(struct otlp_out *out, const struct exp_histogram *fine)
{
	struct exp_histogram histogram = *fine;

	exp_histogram_coarsen(&histogram, PROMETHEUS_SCHEMA_MAX, EXP_HISTOGRAM_BUCKETS);
	otlp_begin(out, 7, "histogram");
	otlp_int64(out, 1, "sampleCount", (int64_t)histogram.count);
	otlp_double(out, 2, "sampleSum", histogram.sum);
	classic_buckets_write(out, fine);
	otlp_signed(out, 5, "schema", histogram.scale);
	otlp_double(out, 6, "zeroThreshold", PROMETHEUS_ZERO_THRESHOLD);
	otlp_int64(out, 7, "zeroCount", (int64_t)histogram.zeros);
	prometheus_buckets(out, 12, 13, &histogram);
	otlp_end(out);
}

/* ---- families ---- */

static void records_write(struct out_bytes *bytes, const struct series_table *table)
{
	struct otlp_out out;

	family_begin(&out, bytes, "waffle_records_total", METRICS_HELP_RECORDS, FAMILY_COUNTER);
	for (size_t i = 0; i < table->series.len; i++) {
		if (!table->series.data[i]->count)
			continue;
		metric_begin(&out, table, table->series.data[i]);
		value_write(&out, FAMILY_COUNTER, (double)table->series.data[i]->count);
		otlp_end(&out);
	}
	otlp_end(&out);
}

static void counters_write(struct out_bytes *bytes, const struct series_table *table)
{
	struct otlp_out out;

	family_begin(&out, bytes, "waffle_counter", METRICS_HELP_COUNTER, FAMILY_GAUGE);
	for (size_t i = 0; i < table->series.len; i++) {
		if (!table->series.data[i]->is_counter)
			continue;
		metric_begin(&out, table, table->series.data[i]);
		value_write(&out, FAMILY_GAUGE, table->series.data[i]->last);
		otlp_end(&out);
	}
	otlp_end(&out);
}

static void histograms_write(struct out_bytes *bytes, const struct series_table *table,
			     size_t which)
{
	struct otlp_out out;
	char name[128], help[160];

	metrics_histogram_name(name, &table->histograms[which]);
	metrics_histogram_help(help, &table->histograms[which]);
	family_begin(&out, bytes, name, help, FAMILY_HISTOGRAM);
	for (size_t i = 0; i < table->series.len; i++) {
		if (!table->series.data[i]->histograms[which])
			continue;
		metric_begin(&out, table, table->series.data[i]);
		histogram_write(&out, table->series.data[i]->histograms[which]);
		otlp_end(&out);
	}
	otlp_end(&out);
}

/* Writes a family with one value. */
static void single_write(struct out_bytes *bytes, const char *name, const char *help,
			 enum family_type type, double value)
{
	struct otlp_out out;

	family_begin(&out, bytes, name, help, type);
	otlp_item_begin(&out, 4);
	value_write(&out, type, value);
	otlp_end(&out);
	otlp_end(&out);
}

void metrics_protobuf(struct out_bytes *out, const struct metrics_snapshot *snapshot)
{
	const struct series_table *table = snapshot->table;

	records_write(out, table);
	counters_write(out, table);
	for (size_t i = 0; i < table->histogram_count; i++)
		histograms_write(out, table, i);
	single_write(out, "waffle_overflowed_total", METRICS_HELP_OVERFLOWED, FAMILY_COUNTER,
		     (double)table->overflowed);
	if (table->simulated)
		single_write(out, "waffle_simulated", METRICS_HELP_SIMULATED, FAMILY_GAUGE, 1);
}
