/* SPDX-License-Identifier: Apache-2.0 */
/* What the messages of Prometheus' remote write and those that it scrapes have in common: labels
 * and native histograms (prometheus.io/docs/specs/native_histograms). */
#ifndef WAFFLE_EXPORT_PROCESS_PROMETHEUS_PARTS_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_PROMETHEUS_PARTS_INTERNAL_H

#include "export/process/exp_histogram_internal.h"
#include "export/process/otlp_out_internal.h"

/* The finest resolution of a native histogram. A range of doubles needs none below -4, the coarsest
 * one. */
#define PROMETHEUS_SCHEMA_MAX 8
/* Below this Prometheus counts as zero by default. */
#define PROMETHEUS_ZERO_THRESHOLD 0x1p-128

/* A label in field 1. */
void prometheus_label(struct otlp_out *out, const char *name, const char *value);
/* The labels that name the span of an exemplar, in the order of their names. */
void prometheus_exemplar_labels(struct otlp_out *out, const struct exemplar *exemplar);
/* All buckets as one span, in the field `spans`, and their counts in the field `deltas`. */
void prometheus_buckets(struct otlp_out *out, unsigned spans, unsigned deltas,
			const struct exp_histogram *histogram);

#endif
