// SPDX-License-Identifier: Apache-2.0
/* export(): sends spans and metrics to an OpenTelemetry collector, or spans to Zipkin. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "export/process/curl_internal.h"
#include "export/process/file_name_internal.h"
#include "export/process/http_sender.h"
#include "export/process/http_urls.h"
#include "export/process/otlp_traces.h"
#include "export/process/processors_internal.h"
#include "export/process/remote_write.h"
#include "export/process/zipkin.h"
#include "util/clock.h"

enum encoding { ENCODING_PROTOBUF, ENCODING_JSON };

struct export_config {
	const char *otlp, *zipkin, *prometheus, *headers, *ca, *spool;
	unsigned encoding;
	uint64_t timeout_ns, queue_bytes, give_up_ns, spool_bytes, requests;
};

struct export_state {
	struct sender *sender;
	struct pending_events pending;
	struct otlp_source source;
	struct resource_cache resources;
	struct out_bytes request;
};

static const char *const encodings[] = {
	[ENCODING_PROTOBUF] = "protobuf", [ENCODING_JSON] = "json", NULL};

static const struct processor_option options[] = {
	{"otlp", "URL",
	 "A collector of OpenTelemetry, by OTLP/HTTP: requests go to URL/v1/traces and "
	 "URL/v1/metrics. The port is 4318 mostly. A URL such as grpc://localhost:4317 (grpcs:// "
	 "with TLS) means OTLP/gRPC.",
	 .type = PROCESSOR_TEXT, .at = offsetof(struct export_config, otlp)},
	{"zipkin", "URL",
	 "Zipkin instead, which takes spans only: requests go to URL/api/v2/spans. The port is "
	 "9411 "
	 "mostly.",
	 .type = PROCESSOR_TEXT, .at = offsetof(struct export_config, zipkin)},
	{"prometheus", "URL",
	 "Prometheus instead, or what takes its remote write: only the metrics of metrics() before "
	 "it, "
	 "with native histograms and exemplars. Requests go to URL/api/v1/write, or to a URL with "
	 "another path. The port is 9090 mostly.",
	 .type = PROCESSOR_TEXT, .at = offsetof(struct export_config, prometheus)},
	{"encoding", "protobuf or json", "Of the requests. Default: protobuf.",
	 .type = PROCESSOR_CHOICE, .choices = encodings,
	 .at = offsetof(struct export_config, encoding)},
	{"headers", "FILE",
	 "Send the headers of this file, which has lines 'Name: value'. Also those of "
	 "OTEL_EXPORTER_OTLP_HEADERS are sent.",
	 .type = PROCESSOR_TEXT, .at = offsetof(struct export_config, headers)},
	{"ca", "FILE", "Trust the certificates of this file instead of the system's.",
	 .type = PROCESSOR_TEXT, .at = offsetof(struct export_config, ca)},
	{"timeout", "100ms to 10m", "Of one request. Default: 10s.", .type = PROCESSOR_TIME,
	 .min = 100000000ull, .max = 600000000000ull, .value = 10000000000ull,
	 .at = offsetof(struct export_config, timeout_ns)},
	{"requests", "1 to 16",
	 "Requests that are under way at the same time, each by a thread of its own: for a server "
	 "that is far away. Default: 1.",
	 .type = PROCESSOR_NUMBER, .min = 1, .max = SENDER_PARALLEL_MAX, .value = 1,
	 .at = offsetof(struct export_config, requests)},
	{"queue", "64KiB to 1GiB",
	 "Memory for what waits to be sent; what finds no room is dropped. Default: 8MiB.",
	 .type = PROCESSOR_SIZE, .min = 65536, .max = 1u << 30, .value = 8u << 20,
	 .at = offsetof(struct export_config, queue_bytes)},
	{"give-up", "1s to 24h",
	 "Without a spool, drop what could not be sent for so long. Default: 5m.",
	 .type = PROCESSOR_TIME, .min = 1000000000ull, .max = 86400000000000ull,
	 .value = 300000000000ull, .at = offsetof(struct export_config, give_up_ns)},
	{"spool", "FOLDER",
	 "Keep what could not be sent in this folder, and send it later; %p is the pid. Default: "
	 "none.",
	 .type = PROCESSOR_TEXT, .at = offsetof(struct export_config, spool)},
	{"spool-limit", "64KiB to 1TiB",
	 "Bytes in the spool, beyond which the oldest requests are dropped. Default: 64MiB.",
	 .type = PROCESSOR_SIZE, .min = 65536, .max = 1ull << 40, .value = 64ull << 20,
	 .at = offsetof(struct export_config, spool_bytes)},
};

static int spool_make(struct spool **spool, const struct processor *processor, struct error *err)
{
	const struct export_config *config = processor->config;
	char path[PATH_MAX];

	*spool = NULL;
	if (!config->spool)
		return 0;
	return file_name_expand(path, config->spool, processor->host, err)
		       ?: spool_open(spool, path, config->spool_bytes, err);
}

static int export_open(struct processor *processor, struct error *err)
{
	const struct export_config *config = processor->config;
	struct export_state *state = processor->state;
	struct http_options http = {config->otlp ?: config->zipkin ?: config->prometheus,
				    config->headers, config->ca, config->timeout_ns};
	struct sender_options sender = {
		.host = processor->host,
		.queue_bytes = config->queue_bytes,
		.give_up_ns = config->give_up_ns,
		.parallel = (unsigned)config->requests,
	};
	char name[128];
	int result;

	if (!!config->otlp + !!config->zipkin + !!config->prometheus != 1)
		return error_set(
			err, EINVAL,
			"%s: export() needs otlp=URL, zipkin=URL or prometheus=URL, as in %s",
			processor->host->origin, processor->type->example);
	if (config->prometheus && !processor->counted)
		return error_set(
			err, EINVAL,
			"%s: export(prometheus=URL) sends the metrics of a metrics() before it, "
			"as in metrics(histogram=dur),export(prometheus=URL)",
			processor->host->origin);
	if (http_url_is_grpc(http.url) && (!config->otlp || config->encoding == ENCODING_JSON))
		return error_set(err, EINVAL, "%s: export(): only otlp in protobuf goes by gRPC",
				 processor->host->origin);
	if (config->prometheus && config->requests > 1)
		return error_set(err, EINVAL,
				 "%s: export(prometheus=URL) takes no requests=, since Prometheus "
				 "wants the values of a metric in order",
				 processor->host->origin);
	result = spool_make(&sender.spool, processor, err);
	snprintf(name, sizeof(name), "%s: export()", processor->host->origin);
	sender.name = name;
	state->source = (struct otlp_source){processor->host->service, processor->joiner,
					     &state->pending, &state->resources};
	return result ?: http_sender_open(&state->sender, &http, &sender, err);
}

static uint32_t kind_of(const struct processor *processor)
{
	const struct export_config *config = processor->config;

	return config->zipkin                      ? HTTP_JSON | HTTP_ZIPKIN
	       : config->prometheus                ? HTTP_WRITE
	       : config->encoding == ENCODING_JSON ? HTTP_JSON
						   : 0;
}

static void request_send(struct processor *processor, uint32_t kind, uint32_t records)
{
	struct export_state *state = processor->state;
	struct parcel *parcel = NULL;

	if (!state->request.failed && state->request.len)
		parcel = parcel_new(kind, records, state->request.data, state->request.len);
	sender_push(state->sender, parcel, records);
	bytes_clear(&state->request);
}

static void records_send(struct processor *processor, struct full_record *const *records,
			 size_t count)
{
	struct export_state *state = processor->state;
	uint32_t kind = kind_of(processor);
	uint32_t sent = kind & HTTP_ZIPKIN
				? zipkin_spans(&state->request, &state->source, records, count)
				: otlp_traces(&state->request, kind & HTTP_JSON, &state->source,
					      records, count);

	if (sent)
		request_send(processor, kind, sent);
	if (kind & HTTP_ZIPKIN || processor->counted)
		return;
	sent = otlp_counters(&state->request, kind & HTTP_JSON, &state->source, records, count);
	if (sent)
		request_send(processor, kind | HTTP_METRICS | HTTP_OPTIONAL, sent);
}

/* Sends the events whose spans did not come, each as a span without duration. */
static void expired_send(struct processor *processor, uint64_t now_ns, bool all)
{
	struct export_state *state = processor->state;
	struct pending_event *events[256];
	struct full_record *records[256];
	size_t count;

	do {
		count = 0;
		while (count < 256 &&
		       (events[count] = pending_events_expired(&state->pending, now_ns, all))) {
			records[count] = events[count]->record;
			count++;
		}
		if (count)
			records_send(processor, records, count);
		for (size_t i = 0; i < count; i++)
			pending_event_free(events[i]);
	} while (count == 256);
}

static bool is_inside(const struct full_record *record)
{
	return record->record.parent && (record->record.kind == WAFFLE_RECORD_EVENT ||
					 record->record.kind == WAFFLE_RECORD_LOG);
}

static void export_records(struct processor *processor, struct full_record *const *records,
			   size_t count)
{
	struct export_state *state = processor->state;
	bool taken = !(kind_of(processor) & HTTP_WRITE);
	struct full_record **alone = taken ? malloc(count * sizeof(*alone)) : NULL;
	uint64_t now = clock_monotonic_ns();
	size_t left = 0;

	if (!taken) {
		/* metrics() has counted them. */
	} else if (!alone) {
		sender_drop(state->sender, count);
	} else {
		for (size_t i = 0; i < count; i++)
			if (!is_inside(records[i]))
				alone[left++] = records[i];
			else if (!pending_events_add(&state->pending, records[i], now))
				sender_drop(state->sender, 1);
		if (left)
			records_send(processor, alone, left);
		expired_send(processor, now, false);
		free(alone);
	}
	processor_pass(processor, records, count);
}

static void write_send(struct processor *processor, const struct metrics_snapshot *snapshot)
{
	struct export_state *state = processor->state;
	char host[256] = "", instance[280];
	struct remote_write write;
	uint32_t series;

	if (gethostname(host, sizeof(host) - 1))
		*host = '\0';
	snprintf(instance, sizeof(instance), "%s:%u", host, processor->host->pid);
	/* A receiver takes nothing that is older than an hour or so. */
	remote_write_begin(&write, processor->host->service, instance,
			   processor->host->finished ? clock_ns(CLOCK_REALTIME)
						     : snapshot->unix_ns);
	remote_write_snapshot(&write, snapshot);
	series = remote_write_end(&write, &state->request);
	request_send(processor, HTTP_WRITE, series);
}

static void export_metrics(struct processor *processor, const struct metrics_snapshot *snapshot)
{
	struct export_state *state = processor->state;
	uint32_t kind = kind_of(processor) | HTTP_METRICS;

	if (kind & HTTP_ZIPKIN)
		return;
	if (kind & HTTP_WRITE) {
		write_send(processor, snapshot);
		return;
	}
	otlp_metrics(&state->request, kind & HTTP_JSON, processor->host->service,
		     processor->host->pid, snapshot);
	request_send(processor, kind, 1);
}

static void export_tick(struct processor *processor, uint64_t now_ns)
{
	expired_send(processor, now_ns, false);
}

static void export_end(struct processor *processor)
{
	expired_send(processor, 0, true);
}

static void export_drain(struct processor *processor, uint64_t until_ns)
{
	struct export_state *state = processor->state;

	sender_drain(state->sender, until_ns);
}

static int export_prepare(struct error *err)
{
	return curl_library_open(err) ? 0 : -ENOENT;
}

static void export_close(struct processor *processor, uint64_t until_ns)
{
	struct export_state *state = processor->state;
	struct sender_counts counts;

	if (state->sender) {
		counts = sender_close(state->sender, until_ns);
		*processor->lossy = *processor->lossy || counts.dropped || counts.refused;
	}
	pending_events_clear(&state->pending);
	resource_cache_free(&state->resources);
	bytes_free(&state->request);
}

const struct processor_type processor_export = {
	.name = "export",
	.help = "Sends spans with their events, and the metrics of metrics() before it, to an "
		"OpenTelemetry collector, spans to Zipkin, or metrics to Prometheus. Passes all "
		"on.",
	.example = "export(otlp=http://localhost:4318)",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.config_bytes = sizeof(struct export_config),
	.state_bytes = sizeof(struct export_state),
	.batched = true,
	.prepare = export_prepare,
	.open = export_open,
	.records = export_records,
	.metrics = export_metrics,
	.tick = export_tick,
	.drain = export_drain,
	.end = export_end,
	.close = export_close,
};
