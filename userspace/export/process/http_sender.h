/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Senders whose parcels are HTTP requests: POST to URL/v1/traces and URL/v1/metrics of OTLP, to
 * URL/api/v2/spans of Zipkin, or to URL/api/v1/write of Prometheus. With a URL that begins with
 * grpc://, or grpcs:// for TLS, the requests are gRPC calls of OTLP. Redirects are not followed,
 * certificates are checked, and every request has a time limit.
 */
#ifndef WAFFLE_EXPORT_PROCESS_HTTP_SENDER_H
#define WAFFLE_EXPORT_PROCESS_HTTP_SENDER_H

#include "export/process/bytes_internal.h"
#include "export/process/sender_internal.h"

/* Kinds of parcels: bits. */
#define HTTP_JSON 1u
#define HTTP_METRICS 2u
#define HTTP_ZIPKIN 4u /* spans as Zipkin takes them: then JSON, too */
#define HTTP_WRITE 8u  /* Prometheus' remote write: protobuf in a block of snappy */
/* The parcel has values of counters. If the server has no service for metrics, that is no failure:
 * Jaeger takes only spans. */
#define HTTP_OPTIONAL 16u

struct http_options {
	const char *url;          /* without a path, with what is before these paths, or complete */
	const char *headers_file; /* lines "Name: value"; NULL: none */
	const char *ca_file;      /* certificates to trust instead of the system's; NULL: those */
	uint64_t timeout_ns;      /* of one request */
};

/* Makes a sender and starts it. Headers are also read from OTEL_EXPORTER_OTLP_HEADERS. The values
 * of headers are secret: no message has them. The sender owns options->spool, also on an error. */
int http_sender_open(struct sender **sender, const struct http_options *http,
		     const struct sender_options *options, struct error *err);

/* What a server answered to a request that it took: how many records it did not accept, and why. */
struct http_partial {
	uint64_t rejected;
	char why[160];
};
/* Reads the body of an ExportTraceServiceResponse or ExportMetricsServiceResponse. */
struct http_partial http_partial_read(const char *body, size_t len, bool json);

#endif
