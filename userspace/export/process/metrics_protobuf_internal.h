/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in the protobuf that Prometheus scrapes (io.prometheus.client.MetricFamily of
 * github.com/prometheus/client_model, delimited), which alone has native histograms. */
#ifndef WAFFLE_EXPORT_PROCESS_METRICS_PROTOBUF_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_METRICS_PROTOBUF_INTERNAL_H

#include "export/process/bytes_internal.h"
#include "export/process/series_internal.h"

void metrics_protobuf(struct out_bytes *out, const struct metrics_snapshot *snapshot);

#endif
