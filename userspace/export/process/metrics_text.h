/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics as text: OpenMetrics 1.0 (with exemplars), or the older format of Prometheus. */
#ifndef WAFFLE_EXPORT_PROCESS_METRICS_TEXT_H
#define WAFFLE_EXPORT_PROCESS_METRICS_TEXT_H

#include "export/process/bytes_internal.h"
#include "export/process/series_internal.h"

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

#endif
