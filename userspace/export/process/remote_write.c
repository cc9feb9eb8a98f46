// SPDX-License-Identifier: Apache-2.0
#include "export/process/remote_write.h"

#include <stdio.h>
#include <stdlib.h>

#include "export/process/metrics_text.h"
#include "export/process/prometheus_parts_internal.h"

/* ---- labels ---- */

struct label_list {
	struct remote_label labels[REMOTE_WRITE_LABELS_MAX];
	size_t count;
};

static void label_add(struct label_list *list, const char *name, const char *value)
{
	if (!value || !*value || list->count == REMOTE_WRITE_LABELS_MAX)
		return;
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->labels[i].name, name))
			return;
	list->labels[list->count++] = (struct remote_label){name, value};
}

static int label_compare(const void *a, const void *b)
{
	return strcmp(((const struct remote_label *)a)->name,
		      ((const struct remote_label *)b)->name);
}

/* Labels that the series has itself win over those of all. */
static void labels_complete(const struct remote_write *write, struct label_list *list)
{
	label_add(list, write->job.name, write->job.value);
	label_add(list, write->instance.name, write->instance.value);
	qsort(list->labels, list->count, sizeof(list->labels[0]), label_compare);
}

/* message TimeSeries { repeated Label labels = 1; repeated Sample samples = 2;
 * repeated Exemplar exemplars = 3; repeated Histogram histograms = 4; }
 * The receiver wants labels in the order of their names. */
static void series_begin(struct remote_write *write, const struct label_list *list)
{
	otlp_item_begin(&write->out, 1);
	for (size_t i = 0; i < list->count; i++)
		prometheus_label(&write->out, list->labels[i].name, list->labels[i].value);
}

/* ---- values ---- */

/* message Sample { double value = 1; int64 timestamp = 2; } */
static void value_write(struct remote_write *write, struct label_list *list, double value)
{
	labels_complete(write, list);
	series_begin(write, list);
	otlp_item_begin(&write->out, 2);
	otlp_double(&write->out, 1, "value", value);
	otlp_int64(&write->out, 2, "timestamp", write->unix_ms);
	otlp_end(&write->out);
	otlp_end(&write->out);
	write->series++;
}

void remote_write_value(struct remote_write *write, const char *metric,
			const struct remote_label *labels, size_t count, double value)
{
	struct label_list list = {0};

	label_add(&list, "__name__", metric);
	for (size_t i = 0; i < count; i++)
		label_add(&list, labels[i].name, labels[i].value);
	value_write(write, &list, value);
}

/* ---- histograms ---- */

/* message Histogram { uint64 count_int = 1; double sum = 3; sint32 schema = 4;
 * double zero_threshold = 5; uint64 zero_count_int = 6; repeated BucketSpan positive_spans = 11;
 * repeated sint64 positive_deltas = 12; int64 timestamp = 15; } */
static void histogram_write(struct remote_write *write, const struct label_list *list,
			    const struct exp_histogram *fine)
{
	struct otlp_out *out = &write->out;
	struct exp_histogram histogram = *fine;

	exp_histogram_coarsen(&histogram, PROMETHEUS_SCHEMA_MAX, EXP_HISTOGRAM_BUCKETS);
	series_begin(write, list);
	otlp_item_begin(out, 4);
	otlp_int64(out, 1, "countInt", (int64_t)histogram.count);
	otlp_double(out, 3, "sum", histogram.sum);
	otlp_signed(out, 4, "schema", histogram.scale);
	otlp_double(out, 5, "zeroThreshold", PROMETHEUS_ZERO_THRESHOLD);
	otlp_int64(out, 6, "zeroCountInt", (int64_t)histogram.zeros);
	prometheus_buckets(out, 11, 12, &histogram);
	otlp_int64(out, 15, "timestamp", write->unix_ms);
	otlp_end(out);
	otlp_end(out);
	write->series++;
}

static int exemplar_compare(const void *a, const void *b)
{
	const struct exemplar *left = *(struct exemplar *const *)a;
	const struct exemplar *right = *(struct exemplar *const *)b;

	return left->unix_ns < right->unix_ns ? -1 : left->unix_ns > right->unix_ns;
}

/* message Exemplar { repeated Label labels = 1; double value = 2; int64 timestamp = 3; } */
static void exemplar_write(struct otlp_out *out, struct exemplar *exemplar)
{
	otlp_item_begin(out, 3);
	prometheus_exemplar_labels(out, exemplar);
	otlp_double(out, 2, "value", exemplar->value);
	otlp_int64(out, 3, "timestamp", (int64_t)(exemplar->unix_ns / 1000000));
	otlp_end(out);
	exemplar->fresh = false;
}

/* The receiver takes the exemplars of a series before its histogram, and drops those of a series
 * that is not there yet. So they come in an item of their own. It also wants them in the order of
 * their times. */
static void exemplars_write(struct remote_write *write, const struct label_list *list,
			    struct exp_histogram *histogram)
{
	struct exemplar *fresh[EXP_HISTOGRAM_EXEMPLARS];
	size_t count = 0;

	for (size_t i = 0; i < EXP_HISTOGRAM_EXEMPLARS; i++)
		if (histogram->exemplars[i].fresh)
			fresh[count++] = &histogram->exemplars[i];
	if (!count)
		return;
	qsort(fresh, count, sizeof(fresh[0]), exemplar_compare);
	series_begin(write, list);
	for (size_t i = 0; i < count; i++)
		exemplar_write(&write->out, fresh[i]);
	otlp_end(&write->out);
}

/* ---- the metrics of metrics() ---- */

static void series_labels(struct label_list *list, const char *metric,
			  const struct series_table *table, const struct series *series)
{
	*list = (struct label_list){0};
	label_add(list, "__name__", metric);
	label_add(list, "kind", series->values[0]);
	label_add(list, "name", series->values[1]);
	for (size_t i = 0; i < table->label_count; i++)
		label_add(list, table->labels[i].label, series->values[2 + i]);
	label_add(list, "overflow", series->overflow ? "true" : NULL);
}

static void series_write(struct remote_write *write, const struct series_table *table,
			 struct series *series)
{
	struct label_list list;
	char name[128];

	if (series->count) {
		series_labels(&list, "waffle_records_total", table, series);
		value_write(write, &list, (double)series->count);
	}
	if (series->is_counter) {
		series_labels(&list, "waffle_counter", table, series);
		value_write(write, &list, series->last);
	}
	for (size_t i = 0; i < table->histogram_count; i++) {
		if (!series->histograms[i])
			continue;
		metrics_histogram_name(name, &table->histograms[i]);
		series_labels(&list, name, table, series);
		labels_complete(write, &list);
		histogram_write(write, &list, series->histograms[i]);
		exemplars_write(write, &list, series->histograms[i]);
	}
}

void remote_write_snapshot(struct remote_write *write, const struct metrics_snapshot *snapshot)
{
	const struct series_table *table = snapshot->table;

	for (size_t i = 0; i < table->series.len; i++)
		series_write(write, table, table->series.data[i]);
	remote_write_value(write, "waffle_overflowed_total", NULL, 0, (double)table->overflowed);
	if (table->simulated)
		remote_write_value(write, "waffle_simulated", NULL, 0, 1);
}

/* ---- the request ---- */

void remote_write_begin(struct remote_write *write, const char *job, const char *instance,
			uint64_t unix_ns)
{
	*write = (struct remote_write){.unix_ms = (int64_t)(unix_ns / 1000000),
				       .job = {"job", job},
				       .instance = {"instance", instance}};
	otlp_request_begin(&write->out, &write->message, false);
}

/* A block of snappy (github.com/google/snappy/blob/main/format_description.txt): the length of all,
 * and one literal. */
static void snappy_block(struct out_bytes *out, const struct out_bytes *message)
{
	unsigned char head[15];
	size_t len = message->len, at = 0;

	for (; len >= 0x80; len >>= 7)
		head[at++] = (unsigned char)(len | 0x80);
	head[at++] = (unsigned char)len;
	head[at++] = 63 << 2; /* a literal whose length, less one, is in four bytes */
	for (unsigned i = 0; i < 4; i++)
		head[at++] = (unsigned char)((message->len - 1) >> 8 * i);
	bytes_add(out, head, at);
	bytes_add(out, message->data, message->len);
}

uint32_t remote_write_end(struct remote_write *write, struct out_bytes *out)
{
	otlp_request_end(&write->out);
	out->failed = out->failed || write->message.failed;
	if (write->series && !out->failed)
		snappy_block(out, &write->message);
	bytes_free(&write->message);
	return write->series;
}
