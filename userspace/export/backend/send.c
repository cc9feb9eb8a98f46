// SPDX-License-Identifier: Apache-2.0
#include "export/backend/send.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "export/backend/prometheus_internal.h"
#include "export/backend/records_internal.h"
#include "export/process/http_sender.h"
#include "export/process/http_urls.h"
#include "export/process/otlp_traces.h"
#include "export/process/zipkin.h"
#include "util/clock.h"
#include "util/memory.h"
#include "util/units.h"

#define QUEUE_BYTES (32u << 20)
#define REQUEST_NS 30000000000ull
/* Requests that are under way at the same time: a collector has several CPUs, and may be far away.
 * Prometheus gets one at a time, since it wants the values of a metric in order. */
#define REQUESTS 4
/* A request is sent once it is as long as this. A collector then takes a fifth less time for a span
 * than in requests of 512 spans. With the last batch it stays below 1 MiB, which is what servers
 * and proxies take at least: nginx 1 MiB, a collector 4 MiB by gRPC and 20 MiB by HTTP. */
#define REQUEST_BYTES (512u << 10)

bool backend_is_url(const char *text)
{
	return strstr(text, "://") &&
	       strcspn(text, "/.") == (size_t)(strstr(text, "://") + 1 - text);
}

enum backend_kind backend_kind_of(const char *url)
{
	static const struct {
		const char *path;
		enum backend_kind kind;
	} paths[] = {{"/api/v2/spans", BACKEND_ZIPKIN},
		     {"/api/v1/write", BACKEND_PROMETHEUS},
		     {"/api/v1/push", BACKEND_PROMETHEUS}};
	size_t len = strlen(url);

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		size_t suffix = strlen(paths[i].path);

		if (len > suffix && !strcmp(url + len - suffix, paths[i].path))
			return paths[i].kind;
	}
	return BACKEND_OTLP;
}

/* The option of export() that takes the URL. */
static const char *const backend_options[] = {
	[BACKEND_OTLP] = "otlp", [BACKEND_ZIPKIN] = "zipkin", [BACKEND_PROMETHEUS] = "prometheus"};

/* A value of a chain's text. One with both kinds of quotes can't be written, and is an error when
 * the chain is opened. */
static void value_write(struct out_bytes *out, const char *name, const char *value)
{
	char quote = strchr(value, '"') ? '\'' : '"';

	bytes_print(out, "%s=%c%s%c", name, quote, value, quote);
}

char *backend_chain(const char *url, const char *spool, const char *before)
{
	struct out_bytes out = {0};

	if (before)
		bytes_print(&out, "%s,", before);
	if (backend_kind_of(url) == BACKEND_PROMETHEUS)
		bytes_text(&out, "metrics(histogram=dur),");
	bytes_text(&out, "export(");
	value_write(&out, backend_options[backend_kind_of(url)], url);
	if (backend_kind_of(url) != BACKEND_PROMETHEUS)
		bytes_print(&out, ",requests=%d", REQUESTS);
	if (spool) {
		bytes_char(&out, ',');
		value_write(&out, "spool", spool);
	}
	bytes_add(&out, ")", 2);
	if (out.failed)
		bytes_free(&out);
	return out.data;
}

struct sending {
	const struct backend_server *server;
	struct model_records *records;
	struct sender *sender;
	struct pending_events pending;
	struct out_bytes request;
	uint32_t request_records;
};

/* A server that did not take one request in all the time will not take the others. */
static bool has_given_up(struct sending *sending)
{
	return sender_counts(sending->sender).dropped;
}

static void request_send(struct sending *sending, uint32_t kind)
{
	struct parcel *parcel;

	memory_require(!sending->request.failed);
	if (!sending->request_records)
		return;
	parcel = parcel_new(kind, sending->request_records, sending->request.data,
			    sending->request.len);
	memory_require(parcel);
	sender_push(sending->sender, parcel, sending->request_records);
	bytes_clear(&sending->request);
	sending->request_records = 0;
}

/* Two requests of OTLP, one behind the other, are one request with the spans of both: protobuf
 * joins repeated fields. */
static int otlp_send(struct full_record *const *list, size_t count, void *arg)
{
	struct sending *sending = arg;
	struct otlp_source source = {sending->server->service, NULL, &sending->pending, NULL};

	sending->request_records += otlp_traces(&sending->request, false, &source, list, count);
	if (sending->request.len >= REQUEST_BYTES)
		request_send(sending, 0);
	return has_given_up(sending);
}

static int zipkin_send(struct full_record *const *list, size_t count, void *arg)
{
	struct sending *sending = arg;
	struct otlp_source source = {sending->server->service, NULL, &sending->pending, NULL};

	sending->request_records = zipkin_spans(&sending->request, &source, list, count);
	request_send(sending, HTTP_JSON | HTTP_ZIPKIN);
	return has_given_up(sending);
}

static void counters_send(struct sending *sending, struct full_record *const *list, size_t count,
			  struct backend_sent *sent)
{
	struct otlp_source source = {.service = sending->server->service};

	sending->request_records = otlp_counters(&sending->request, false, &source, list, count);
	sent->counters += sending->request_records;
	request_send(sending, HTTP_METRICS | HTTP_OPTIONAL);
}

static int sender_make(struct sending *sending, struct error *err)
{
	const struct backend_server *server = sending->server;
	struct chain_host host = {
		.origin = "--to",
		.service = server->service,
		.finished = true,
		.say = server->say,
		.arg = server->arg,
	};
	struct http_options http = {server->url, server->headers_file, server->ca_file,
				    REQUEST_NS < server->wait_ns ? REQUEST_NS : server->wait_ns};
	struct sender_options options = {
		.name = "--to",
		.host = &host,
		.queue_bytes = QUEUE_BYTES,
		.give_up_ns = server->wait_ns,
		.parallel = REQUESTS,
		.only_retries = true,
	};

	if (server->kind != BACKEND_OTLP && http_url_is_grpc(server->url))
		return error_set(err, EINVAL, "--to: '%s': only otlp goes by gRPC", server->url);
	return http_sender_open(&sending->sender, &http, &options, err);
}

static int outcome(const struct backend_server *server, const struct sender_counts *counts,
		   struct backend_sent *sent, struct error *err)
{
	char lost[UNITS_TEXT], all[UNITS_TEXT];

	uint64_t total = sent->records + sent->counters;

	sent->skipped = counts->skipped;
	if (counts->sent + counts->skipped == total)
		return 0;
	return error_set(err, EIO, "%s: %s of %s records were not accepted: %s", server->url,
			 units_format_count(lost, total - counts->sent - counts->skipped),
			 units_format_count(all, total), counts->why);
}

static int metrics_send(struct sending *sending, const struct model *model,
			struct backend_sent *sent, struct error *err)
{
	int result = prometheus_request(model, sending->server->service, &sending->request,
					&sending->request_records, err);

	if (result)
		return result;
	sent->records = sending->request_records;
	request_send(sending, HTTP_WRITE);
	return 0;
}

static int records_send(struct sending *sending, const struct model *model,
			struct backend_sent *sent, struct error *err)
{
	bool zipkin = sending->server->kind == BACKEND_ZIPKIN;
	struct full_record *const *list;
	size_t count;
	int result;

	sending->records = model_records_open(model);
	sent->records = model_records_count(sending->records);
	result = model_records_each(sending->records, true, &sending->pending,
				    zipkin ? zipkin_send : otlp_send, sending, err);
	if (!result && !has_given_up(sending))
		request_send(sending, 0);
	while (!result && sending->server->kind == BACKEND_OTLP && !has_given_up(sending) &&
	       (count = model_records_next_counters(sending->records, &list)))
		counters_send(sending, list, count, sent);
	pending_events_clear(&sending->pending);
	model_records_close(sending->records);
	return result;
}

int backend_send(const struct model *model, const struct backend_server *server,
		 struct backend_sent *sent, struct error *err)
{
	struct sending sending = {.server = server};
	struct sender_counts counts;
	uint64_t until_ns = 0;
	int result = sender_make(&sending, err);

	*sent = (struct backend_sent){0};
	if (result)
		return result;
	result = (server->kind == BACKEND_PROMETHEUS ? metrics_send : records_send)(&sending, model,
										    sent, err);
	if (!result && !has_given_up(&sending))
		until_ns = clock_monotonic_ns() + server->wait_ns;
	counts = sender_close(sending.sender, until_ns);
	bytes_free(&sending.request);
	return result ?: outcome(server, &counts, sent, err);
}
