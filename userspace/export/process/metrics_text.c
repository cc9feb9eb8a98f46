// SPDX-License-Identifier: Apache-2.0
#include "export/process/metrics_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/terminal.h"

struct metrics_out {
	struct out_bytes *out;
	const struct series_table *table;
	enum metrics_format format;
};

/* ---- parts of a line ---- */

static void number(struct out_bytes *out, double value)
{
	size_t begin = out->len;

	if (isnan(value) || isinf(value)) {
		bytes_text(out, isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
		return;
	}
	bytes_f64(out, value);
	/* OpenMetrics writes bounds as floats. */
	if (!out->failed && !memchr(out->data + begin, '.', out->len - begin) &&
	    !memchr(out->data + begin, 'e', out->len - begin))
		bytes_text(out, ".0");
}

void metrics_text_label(struct out_bytes *out, const char *separator, const char *name,
			const char *value)
{
	bytes_print(out, "%s%s=\"", separator, name);
	for (size_t len = strlen(value); len;) {
		struct terminal_char shown = terminal_char(value, len);

		if (*value == '"' || *value == '\\')
			bytes_char(out, '\\');
		bytes_add(out, shown.shown, shown.shown_bytes);
		value += shown.bytes;
		len -= shown.bytes;
	}
	bytes_char(out, '"');
}

/* The labels of a series, and the bound of a bucket; `le` NULL: none. */
static void labels(const struct metrics_out *m, const struct series *series, const char *le)
{
	const char *separator = "{";

	for (size_t i = 0; i < 2 + m->table->label_count; i++) {
		if (!series->values[i])
			continue;
		metrics_text_label(m->out, separator,
				   i == 0   ? "kind"
				   : i == 1 ? "name"
					    : m->table->labels[i - 2].label,
				   series->values[i]);
		separator = ",";
	}
	if (series->overflow) {
		bytes_print(m->out, "%soverflow=\"true\"", separator);
		separator = ",";
	}
	if (le) {
		bytes_print(m->out, "%sle=\"%s\"", separator, le);
		separator = ",";
	}
	bytes_text(m->out, *separator == '{' ? " " : "} ");
}

static void family(const struct metrics_out *m, const char *name, const char *type,
		   const char *unit, const char *help)
{
	/* In the older format, the name of a counter ends in _total here, too. */
	const char *suffix =
		m->format == METRICS_PROMETHEUS && !strcmp(type, "counter") ? "_total" : "";

	bytes_print(m->out, "# TYPE %s%s %s\n", name, suffix, type);
	if (unit && m->format == METRICS_OPENMETRICS)
		bytes_print(m->out, "# UNIT %s %s\n", name, unit);
	bytes_print(m->out, "# HELP %s%s %s\n", name, suffix, help);
}

/* ---- families ---- */

static void records_write(const struct metrics_out *m)
{
	family(m, "waffle_records", "counter", NULL, METRICS_HELP_RECORDS);
	for (size_t i = 0; i < m->table->series.len; i++) {
		const struct series *series = m->table->series.data[i];

		if (!series->count)
			continue;
		bytes_text(m->out, "waffle_records_total");
		labels(m, series, NULL);
		bytes_print(m->out, "%" PRIu64 "\n", series->count);
	}
}

static void counters_write(const struct metrics_out *m)
{
	family(m, "waffle_counter", "gauge", NULL, METRICS_HELP_COUNTER);
	for (size_t i = 0; i < m->table->series.len; i++) {
		const struct series *series = m->table->series.data[i];

		if (!series->is_counter)
			continue;
		bytes_text(m->out, "waffle_counter");
		labels(m, series, NULL);
		number(m->out, series->last);
		bytes_char(m->out, '\n');
	}
}

void metrics_histogram_name(char name[128], const struct series_choice *choice)
{
	if (choice->field == SERIES_DUR)
		snprintf(name, 128, "waffle_span_duration_seconds");
	else
		snprintf(name, 128, "waffle_%s%s", strncmp(choice->label, "kv_", 3) ? "kv_" : "",
			 choice->label);
}

void metrics_histogram_help(char help[160], const struct series_choice *choice)
{
	if (choice->field == SERIES_DUR)
		snprintf(help, 160, "Durations of spans.");
	else
		snprintf(help, 160, "Values of the key %s.", choice->label);
}

static void exemplar_write(const struct metrics_out *m, const struct exp_histogram *histogram,
			   double low, double high)
{
	const struct exemplar *found = exp_histogram_exemplar(histogram, low, high);

	if (!found || m->format == METRICS_PROMETHEUS)
		return;
	bytes_print(m->out, " # {trace_id=\"%016" PRIx64 "%016" PRIx64 "\"", found->trace_hi,
		    found->trace_lo);
	if (found->span_id)
		bytes_print(m->out, ",span_id=\"%016" PRIx64 "\"", found->span_id);
	bytes_text(m->out, "} ");
	number(m->out, found->value);
	bytes_print(m->out, " %" PRIu64 ".%03u", found->unix_ns / 1000000000,
		    (unsigned)(found->unix_ns / 1000000 % 1000));
}

static void bucket_write(const struct metrics_out *m, const char *name, const struct series *series,
			 const struct exp_histogram *histogram, double low, double high,
			 uint64_t count)
{
	struct out_bytes le = {0};

	number(&le, high);
	bytes_char(&le, '\0');
	bytes_print(m->out, "%s_bucket", name);
	labels(m, series, le.failed ? "" : le.data);
	bytes_print(m->out, "%" PRIu64, count);
	exemplar_write(m, histogram, low, high);
	bytes_char(m->out, '\n');
	m->out->failed = m->out->failed || le.failed;
	bytes_free(&le);
}

static void histogram_write(const struct metrics_out *m, const char *name,
			    const struct series *series, const struct exp_histogram *fine)
{
	struct exp_histogram histogram = *fine;
	uint64_t count = histogram.zeros;
	double low = -1;

	exp_histogram_coarsen(&histogram, METRICS_TEXT_SCALE, METRICS_TEXT_BUCKETS);
	if (histogram.zeros) {
		bucket_write(m, name, series, &histogram, low, 0, count);
		low = 0;
	}
	for (uint32_t i = 0; i < histogram.used; i++) {
		double high = exp_histogram_bound(histogram.offset + (int32_t)i, histogram.scale);

		count += histogram.buckets[i];
		bucket_write(m, name, series, &histogram, low, high, count);
		low = high;
	}
	bucket_write(m, name, series, &histogram, low, INFINITY, count);
	bytes_print(m->out, "%s_sum", name);
	labels(m, series, NULL);
	number(m->out, histogram.sum);
	bytes_print(m->out, "\n%s_count", name);
	labels(m, series, NULL);
	bytes_print(m->out, "%" PRIu64 "\n", histogram.count);
}

static void histograms_write(const struct metrics_out *m)
{
	for (size_t i = 0; i < m->table->histogram_count; i++) {
		const struct series_choice *choice = &m->table->histograms[i];
		char name[128], help[160];

		metrics_histogram_name(name, choice);
		metrics_histogram_help(help, choice);
		family(m, name, "histogram", choice->field == SERIES_DUR ? "seconds" : NULL, help);
		for (size_t j = 0; j < m->table->series.len; j++)
			if (m->table->series.data[j]->histograms[i])
				histogram_write(m, name, m->table->series.data[j],
						m->table->series.data[j]->histograms[i]);
	}
}

void metrics_text_families(struct out_bytes *out, const struct metrics_snapshot *snapshot,
			   enum metrics_format format)
{
	struct metrics_out m = {out, snapshot->table, format};

	records_write(&m);
	counters_write(&m);
	histograms_write(&m);
	family(&m, "waffle_overflowed", "counter", NULL, METRICS_HELP_OVERFLOWED);
	bytes_print(out, "waffle_overflowed_total %" PRIu64 "\n", snapshot->table->overflowed);
	if (!snapshot->table->simulated)
		return;
	family(&m, "waffle_simulated", "gauge", NULL, METRICS_HELP_SIMULATED);
	bytes_text(out, "waffle_simulated 1\n");
}

void metrics_text(struct out_bytes *out, const struct metrics_snapshot *snapshot,
		  enum metrics_format format)
{
	metrics_text_families(out, snapshot, format);
	if (format == METRICS_OPENMETRICS)
		bytes_text(out, "# EOF\n");
}
