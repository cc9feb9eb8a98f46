// SPDX-License-Identifier: Apache-2.0
#include "export/backend/send.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

bool backend_is_url(const char *text)
{
	return strstr(text, "://") &&
	       strcspn(text, "/.") == (size_t)(strstr(text, "://") + 1 - text);
}

enum backend_kind backend_kind_of(const char *url)
{
	static const char path[] = "/api/v2/spans";
	size_t len = strlen(url), suffix = sizeof(path) - 1;

	return len > suffix && !strcmp(url + len - suffix, path) ? BACKEND_ZIPKIN : BACKEND_OTLP;
}

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
	bytes_text(&out, "export(");
	value_write(&out, backend_kind_of(url) == BACKEND_ZIPKIN ? "zipkin" : "otlp", url);
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
};

static void batch_send(struct sending *sending, struct full_record *const *list, size_t count)
{
	bool zipkin = sending->server->kind == BACKEND_ZIPKIN;
	struct otlp_source source = {sending->server->service, NULL, &sending->pending};
	uint32_t records = zipkin ? zipkin_spans(&sending->request, &source, list, count)
				  : otlp_traces(&sending->request, false, &source, list, count);
	struct parcel *parcel;

	memory_require(!sending->request.failed);
	if (!records)
		return;
	parcel = parcel_new(zipkin ? HTTP_JSON | HTTP_ZIPKIN : 0, records, sending->request.data,
			    sending->request.len);
	memory_require(parcel);
	sender_push(sending->sender, parcel, records);
	bytes_clear(&sending->request);
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

	if (counts->sent == sent->records)
		return 0;
	return error_set(err, EIO, "%s: %s of %s records were not accepted: %s", server->url,
			 units_format_count(lost, sent->records - counts->sent),
			 units_format_count(all, sent->records), counts->why);
}

/* A server that did not take one request in all the time will not take the others. */
static bool has_given_up(struct sending *sending)
{
	return sender_counts(sending->sender).dropped;
}

int backend_send(const struct model *model, const struct backend_server *server,
		 struct backend_sent *sent, struct error *err)
{
	struct sending sending = {.server = server};
	struct full_record *const *list;
	struct sender_counts counts;
	uint64_t until_ns;
	size_t count;
	int result = sender_make(&sending, err);

	*sent = (struct backend_sent){0};
	if (result)
		return result;
	sending.records = model_records_open(model, true, err);
	if (!sending.records) {
		sender_close(sending.sender, 0);
		return -EIO;
	}
	sent->records = model_records_count(sending.records);
	while (!has_given_up(&sending) &&
	       (count = model_records_next(sending.records, &sending.pending, &list)))
		batch_send(&sending, list, count);
	until_ns = clock_monotonic_ns() + (has_given_up(&sending) ? 0 : server->wait_ns);
	counts = sender_close(sending.sender, until_ns);
	result = outcome(server, &counts, sent, err);
	pending_events_clear(&sending.pending);
	model_records_close(sending.records);
	bytes_free(&sending.request);
	return result;
}
