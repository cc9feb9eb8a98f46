// SPDX-License-Identifier: Apache-2.0
#include "export/process/http_sender.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>

#include "export/process/curl_internal.h"
#include "export/process/grpc_internal.h"
#include "export/process/http_headers_internal.h"
#include "export/process/http_urls.h"

/* Bytes of an answer that are read; more ends the request, of which the status counts then. */
#define BODY_MAX 65536u
#define CONNECT_NS 5000000000ull

enum http_form { FORM_PROTOBUF, FORM_JSON, FORM_GRPC, FORM_WRITE, FORM_COUNT };

struct http_target;

/* What each thread of the sender has for itself: one request at a time. */
struct http_client {
	struct http_target *target;
	void *easy;
	struct out_bytes framed; /* the request of gRPC */
	struct grpc_result result;
	struct out_bytes body; /* of the answer */
	char error[CURL_ERROR_BYTES];
};

struct http_target {
	const struct curl_library *curl;
	void *headers[FORM_COUNT]; /* lists of libcurl */
	struct http_headers secret;
	struct http_urls urls;
	char *ca_file;
	uint64_t timeout_ns;
	bool finished; /* the records are of a file, and somebody waits */
	atomic_bool cancelled;
	struct http_client clients[SENDER_PARALLEL_MAX];
	unsigned client_count;
};

static void target_free(void *arg)
{
	struct http_target *target = arg;

	for (unsigned i = 0; i < target->client_count; i++) {
		if (target->clients[i].easy)
			target->curl->easy_cleanup(target->clients[i].easy);
		bytes_free(&target->clients[i].framed);
		bytes_free(&target->clients[i].body);
	}
	for (unsigned i = 0; i < FORM_COUNT; i++)
		if (target->headers[i])
			target->curl->slist_free_all(target->headers[i]);
	http_urls_free(&target->urls);
	http_headers_free(&target->secret);
	free(target->ca_file);
	free(target);
}

static void target_cancel(void *arg)
{
	atomic_store(&((struct http_target *)arg)->cancelled, true);
}

/* ---- a request ---- */

static size_t body_take(const char *data, size_t size, size_t count, void *arg)
{
	struct http_client *client = arg;

	if (client->body.len + size * count > BODY_MAX)
		return 0;
	bytes_add(&client->body, data, size * count);
	return client->body.failed ? 0 : size * count;
}

static int progress(void *arg, int64_t down_total, int64_t down, int64_t up_total, int64_t up)
{
	(void)down_total;
	(void)down;
	(void)up_total;
	(void)up;
	return atomic_load(&((struct http_target *)arg)->cancelled);
}

/* Those behind the body come here, too. */
static size_t header_take(const char *line, size_t size, size_t count, void *arg)
{
	struct http_client *client = arg;

	if (client->target->urls.grpc)
		grpc_header_take(&client->result, line, size * count);
	return size * count;
}

static enum http_url url_of(uint32_t kind)
{
	return kind & HTTP_WRITE     ? URL_WRITE
	       : kind & HTTP_ZIPKIN  ? URL_ZIPKIN
	       : kind & HTTP_METRICS ? URL_METRICS
				     : URL_TRACES;
}

static enum http_form form_of(const struct http_target *target, uint32_t kind)
{
	return target->urls.grpc   ? FORM_GRPC
	       : kind & HTTP_WRITE ? FORM_WRITE
	       : kind & HTTP_JSON  ? FORM_JSON
				   : FORM_PROTOBUF;
}

static int request(struct http_client *client, const struct parcel *parcel)
{
	const struct http_target *target = client->target;
	const struct curl_library *curl = target->curl;
	void *easy = client->easy;
	const char *data = parcel->data;
	size_t len = parcel->len;

	if (target->urls.grpc) {
		bytes_clear(&client->framed);
		grpc_request(&client->framed, parcel->data, parcel->len);
		if (client->framed.failed)
			return CURL_OUT_OF_MEMORY;
		data = client->framed.data;
		len = client->framed.len;
	}
	bytes_clear(&client->body);
	client->result = (struct grpc_result){0};
	client->error[0] = '\0';
	curl->easy_setopt(easy, CURL_URL, target->urls.of[url_of(parcel->kind)]);
	curl->easy_setopt(easy, CURL_HTTPHEADER, target->headers[form_of(target, parcel->kind)]);
	curl->easy_setopt(easy, CURL_POSTFIELDS, data);
	curl->easy_setopt(easy, CURL_POSTFIELDSIZE_LARGE, (int64_t)len);
	return curl->easy_perform(easy);
}

/* A server says this with the status, or somebody on the way to it does. */
static bool is_temporary(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static void answer_say(const struct http_client *client, long status, struct sender_reply *reply)
{
	size_t len = client->body.len < 120 ? client->body.len : 120;
	const char *body = client->body.data;

	/* An answer in protobuf is a Status, whose text is in the middle of it. */
	while (len && !isprint((unsigned char)*body)) {
		body++;
		len--;
	}
	snprintf(reply->why, sizeof(reply->why), "HTTP status %ld%s%.*s", status, len ? ": " : "",
		 (int)len, len ? body : "");
	for (char *at = reply->why; *at; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
}

static enum sender_outcome accepted(const char *body, size_t len, bool json,
				    struct sender_reply *reply)
{
	struct http_partial partial = http_partial_read(body, len, json);

	reply->refused = partial.rejected;
	snprintf(reply->why, sizeof(reply->why), "%s", partial.why);
	return SENDER_DONE;
}

static enum sender_outcome called(struct http_client *client, struct sender_reply *reply)
{
	struct grpc_result *result = &client->result;
	const char *message;
	size_t len = 0;

	if (!result->known || result->status) {
		http_headers_redact(&client->target->secret, result->message,
				    strlen(result->message));
		return grpc_failed(result, reply);
	}
	message = grpc_answer(client->body.data, client->body.len, &len);
	return message ? accepted(message, len, false, reply) : SENDER_DONE;
}

/* The server has no such service. */
static bool is_missing(const struct http_client *client, long status)
{
	return client->target->urls.grpc
		       ? client->result.known && client->result.status == GRPC_UNIMPLEMENTED
		       : status == 404;
}

static enum sender_outcome answered(struct http_client *client, const struct parcel *parcel,
				    struct sender_reply *reply)
{
	const struct curl_library *curl = client->target->curl;
	long status = 0;
	int64_t after = 0;

	curl->easy_getinfo(client->easy, CURL_INFO_RESPONSE_CODE, &status);
	reply->skipped = parcel->kind & HTTP_OPTIONAL && is_missing(client, status);
	if (reply->skipped)
		return SENDER_DONE;
	if (client->target->urls.grpc && status == 200)
		return called(client, reply);
	if (status >= 200 && status < 300)
		return accepted(client->body.data, client->body.len, parcel->kind & HTTP_JSON,
				reply);
	answer_say(client, status, reply);
	if (!is_temporary(status))
		return SENDER_REFUSED;
	curl->easy_getinfo(client->easy, CURL_INFO_RETRY_AFTER, &after);
	if (after > 0)
		reply->after_ns =
			after < 3600 ? (uint64_t)after * 1000000000ull : BACKOFF_ASKED_MAX_NS;
	return SENDER_AGAIN;
}

/* Whether it is no use to send a request again. A certificate may be renewed, but nobody waits for
 * that. */
static bool is_final(const struct http_target *target, int code)
{
	return code == CURL_UNSUPPORTED_PROTOCOL || code == CURL_URL_MALFORMAT ||
	       (target->finished &&
		(code == CURL_PEER_FAILED_VERIFICATION || code == CURL_SSL_CACERT_BADFILE));
}

static enum sender_outcome deliver(void *arg, unsigned thread, const struct parcel *parcel,
				   struct sender_reply *reply)
{
	struct http_target *target = arg;
	struct http_client *client = &target->clients[thread];
	enum sender_outcome outcome;
	int code;

	/* Of a spool that a program with another URL has filled. */
	if (target->urls.grpc && parcel->kind & (HTTP_JSON | HTTP_WRITE)) {
		snprintf(reply->why, sizeof(reply->why),
			 "the request was made for another protocol, and can't go by gRPC");
		return SENDER_REFUSED;
	}
	code = request(client, parcel);
	/* The answer was too long. To send the records again would get the same one. */
	if (code == CURL_WRITE_ERROR && !client->body.failed)
		code = 0;
	if (!code) {
		/* A server may repeat what it was sent. */
		if (client->body.len)
			http_headers_redact(&target->secret, client->body.data, client->body.len);
		outcome = answered(client, parcel, reply);
	} else {
		snprintf(reply->why, sizeof(reply->why), "%.199s",
			 *client->error ? client->error : target->curl->easy_strerror(code));
		outcome = is_final(target, code) ? SENDER_REFUSED : SENDER_AGAIN;
	}
	return outcome;
}

/* ---- opening ---- */

static int header_add(struct http_target *target, unsigned list, const char *line)
{
	void *longer = target->curl->slist_append(target->headers[list], line);

	if (!longer)
		return -ENOMEM;
	target->headers[list] = longer;
	return 0;
}

static int headers_make(struct http_target *target)
{
	static const char *const forms[FORM_COUNT][3] = {
		[FORM_PROTOBUF] = {"Content-Type: application/x-protobuf"},
		[FORM_JSON] = {"Content-Type: application/json"},
		[FORM_GRPC] = {"Content-Type: application/grpc", "TE: trailers"},
		[FORM_WRITE] = {"Content-Type: application/x-protobuf", "Content-Encoding: snappy",
				"X-Prometheus-Remote-Write-Version: 0.1.0"},
	};
	int result = 0;

	for (unsigned form = 0; form < FORM_COUNT && !result; form++) {
		for (unsigned i = 0; i < 3 && forms[form][i] && !result; i++)
			result = header_add(target, form, forms[form][i]);
		/* No round trip of its own before the body. */
		result = result ?: header_add(target, form, "Expect:");
		for (size_t i = 0; i < target->secret.lines.len && !result; i++)
			result = header_add(target, form, target->secret.lines.data[i]);
	}
	return result;
}

/* gRPC is only spoken over HTTP/2, which a server without TLS is not asked for. Such a connection
 * can't be used again before libcurl 8.0: github.com/curl/curl/pull/10643. */
static int version_set(const struct http_target *target, void *easy)
{
	const struct curl_library *curl = target->curl;
	bool tls = target->urls.tls;
	int failed;

	if (!target->urls.grpc)
		return 0;
	failed = curl->easy_setopt(easy, CURL_HTTP_VERSION,
				   tls ? CURL_HTTP_2_TLS : CURL_HTTP_2_PRIOR_KNOWLEDGE);
	if (!tls)
		failed |= curl->easy_setopt(easy, CURL_FORBID_REUSE, 1l);
	return failed ? -EPROTONOSUPPORT : 0;
}

static int client_make(struct http_client *client)
{
	struct http_target *target = client->target;
	const struct curl_library *curl = target->curl;
	void *easy = client->easy = curl->easy_init();
	int failed;

	if (!easy)
		return -ENOMEM;
	failed = curl->easy_setopt(easy, CURL_PROTOCOLS, CURL_HTTP | CURL_HTTPS);
	failed |= curl->easy_setopt(easy, CURL_FOLLOWLOCATION, 0l);
	failed |= curl->easy_setopt(easy, CURL_SSL_VERIFYPEER, 1l);
	failed |= curl->easy_setopt(easy, CURL_SSL_VERIFYHOST, 2l);
	failed |= curl->easy_setopt(easy, CURL_NOSIGNAL, 1l);
	failed |= curl->easy_setopt(easy, CURL_POST, 1l);
	failed |= curl->easy_setopt(easy, CURL_TIMEOUT_MS, (long)(target->timeout_ns / 1000000));
	failed |= curl->easy_setopt(easy, CURL_CONNECTTIMEOUT_MS, (long)(CONNECT_NS / 1000000));
	failed |= curl->easy_setopt(easy, CURL_NOPROGRESS, 0l);
	failed |= curl->easy_setopt(easy, CURL_XFERINFOFUNCTION, progress);
	failed |= curl->easy_setopt(easy, CURL_XFERINFODATA, target);
	failed |= curl->easy_setopt(easy, CURL_WRITEFUNCTION, body_take);
	failed |= curl->easy_setopt(easy, CURL_WRITEDATA, client);
	failed |= curl->easy_setopt(easy, CURL_HEADERFUNCTION, header_take);
	failed |= curl->easy_setopt(easy, CURL_HEADERDATA, client);
	failed |= curl->easy_setopt(easy, CURL_ERRORBUFFER, client->error);
	failed |= curl->easy_setopt(easy, CURL_USERAGENT, "waffle/" WAFFLE_VERSION);
	if (target->ca_file)
		failed |= curl->easy_setopt(easy, CURL_CAINFO, target->ca_file);
	return failed ? -ENOSYS : version_set(target, easy);
}

static int clients_make(struct http_target *target, unsigned count)
{
	int result = 0;

	for (; target->client_count < count && !result; target->client_count++) {
		struct http_client *client = &target->clients[target->client_count];

		client->target = target;
		result = client_make(client);
	}
	return result;
}

static int target_fill(struct http_target *target, const struct http_options *http,
		       const struct sender_options *options, struct error *err)
{
	const char *name = options->name;
	const char *variable = secure_getenv("OTEL_EXPORTER_OTLP_HEADERS");
	int result = 0;

	target->timeout_ns = http->timeout_ns;
	if (variable)
		result = http_headers_variable(&target->secret, variable, err);
	if (!result && http->headers_file)
		result = http_headers_file(&target->secret, http->headers_file, err);
	if (!result && http->ca_file && !(target->ca_file = strdup(http->ca_file)))
		result = -ENOMEM;
	if (result)
		error_prefix(err, "%s", name);
	target->curl = result ? NULL : curl_library_open(err);
	if (!target->curl)
		return result ?: -ENOENT;
	result = http_urls_make(&target->urls, http->url) ?: headers_make(target);
	result = result ?: clients_make(target, options->parallel ?: 1);
	if (result == -EPROTONOSUPPORT)
		return error_set(err, EPROTONOSUPPORT,
				 "%s: this libcurl has no HTTP/2, which gRPC needs; use OTLP over "
				 "HTTP, such as http://localhost:4318",
				 name);
	if (result == -ENOSYS)
		return error_set(err, ENOSYS, "%s: this libcurl is too old", name);
	return result ? error_set(err, -result, "%s: %s", name, strerror(-result)) : 0;
}

int http_sender_open(struct sender **result, const struct http_options *http,
		     const struct sender_options *options, struct error *err)
{
	static const struct sender_type type = {
		.deliver = deliver, .cancel = target_cancel, .free = target_free};
	struct http_target *target = NULL;
	int code = http_url_check(http->url, options->name, err);

	*result = NULL;
	if (!code && !(target = calloc(1, sizeof(*target))))
		code = error_set(err, ENOMEM, "%s: out of memory", options->name);
	code = code ?: target_fill(target, http, options, err);
	if (!code)
		target->finished = options->host->finished;
	if (code) {
		if (target)
			target_free(target);
		spool_close(options->spool);
		return code;
	}
	*result = sender_new(options, &type, target);
	if (!*result)
		return error_set(err, ENOMEM, "%s: out of memory", options->name);
	code = sender_start(*result, err);
	if (code) {
		sender_close(*result, 0);
		*result = NULL;
	}
	return code;
}
