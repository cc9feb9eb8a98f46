/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of Prometheus' remote write 1.0 (prometheus.io/docs/specs/prw/remote_write_spec).
 * They have metrics with native histograms and exemplars: a message of protobuf in a block of
 * snappy. The block is stored without compression. A request has about 100 KiB at most, and
 * compressing it would need one more library.
 *
 *	remote_write_begin(&write, service, host, unix_ns);
 *	remote_write_snapshot(&write, &snapshot);
 *	series = remote_write_end(&write, &request);
 */
#ifndef WAFFLE_EXPORT_PROCESS_REMOTE_WRITE_H
#define WAFFLE_EXPORT_PROCESS_REMOTE_WRITE_H

#include "export/process/otlp_out_internal.h"
#include "export/process/series_internal.h"

#define REMOTE_WRITE_LABELS_MAX 16

struct remote_label {
	const char *name, *value; /* value NULL or "": the label is left out */
};

struct remote_write {
	struct out_bytes message;
	struct otlp_out out;
	int64_t unix_ms; /* the time of all values */
	uint32_t series; /* number of series so far */
	/* Labels of all series, which Prometheus itself adds to what it scrapes. */
	struct remote_label job, instance;
};

/* The caller keeps the texts until remote_write_end(). */
void remote_write_begin(struct remote_write *write, const char *job, const char *instance,
			uint64_t unix_ns);
/* Adds a series with one value. `count` is at most REMOTE_WRITE_LABELS_MAX - 3, since the name of
 * the metric, job and instance are labels, too. */
void remote_write_value(struct remote_write *write, const char *metric,
			const struct remote_label *labels, size_t count, double value);
/* Adds the metrics of the processor metrics(). It leaves out exemplars that an earlier request
 * had. */
void remote_write_snapshot(struct remote_write *write, const struct metrics_snapshot *snapshot);
/* Appends the request to `out`, and frees what `write` holds. Returns the number of series; 0: it
 * appended nothing. */
uint32_t remote_write_end(struct remote_write *write, struct out_bytes *out);

#endif
