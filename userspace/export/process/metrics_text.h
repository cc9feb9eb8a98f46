/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as text: OpenMetrics 1.0 (with exemplars), or the older format of Prometheus. */
#ifndef WAFFLE_EXPORT_PROCESS_METRICS_TEXT_H
#define WAFFLE_EXPORT_PROCESS_METRICS_TEXT_H

#include "export/process/bytes_internal.h"
#include "export/process/series_internal.h"

/* Buckets of a histogram in the text: four an octave at most. */
#define METRICS_TEXT_SCALE 2
#define METRICS_TEXT_BUCKETS 64

/* What the metrics are, in all formats that say so. */
#define METRICS_HELP_RECORDS "Spans, events and log messages."
#define METRICS_HELP_COUNTER "The last value of each counter of the program."
#define METRICS_HELP_OVERFLOWED "Records that share a series because there are too many."
#define METRICS_HELP_SIMULATED "CUDA and NCCL are stand-ins, no GPU has worked."

enum metrics_format { METRICS_OPENMETRICS, METRICS_PROMETHEUS };

void metrics_text(struct out_bytes *out, const struct metrics_snapshot *snapshot,
		  enum metrics_format format);
/* The same without the line that ends OpenMetrics, so that other families may follow. */
void metrics_text_families(struct out_bytes *out, const struct metrics_snapshot *snapshot,
			   enum metrics_format format);
/* SEPARATOR NAME="VALUE", with the value escaped. */
void metrics_text_label(struct out_bytes *out, const char *separator, const char *name,
			const char *value);
/* The name of the metric of a histogram: "waffle_span_duration_seconds", "waffle_kv_bytes". */
void metrics_histogram_name(char name[128], const struct series_choice *choice);
void metrics_histogram_help(char help[160], const struct series_choice *choice);

#endif
