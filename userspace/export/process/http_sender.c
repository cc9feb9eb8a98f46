// SPDX-License-Identifier: Apache-2.0
#include "export/process/http_sender.h"

#include <ctype.h>
#include <stdatomic.h>
#include <stdio.h>

#include "export/process/curl_internal.h"
#include "export/process/http_headers_internal.h"
#include "util/secret.h"

/* Bytes of an answer that are read; more ends the request. */
#define BODY_MAX 65536u
#define CONNECT_NS 5000000000ull

struct http_target {
	const struct curl_library *curl;
	void *easy;
	void *headers[2]; /* lists of libcurl: for protobuf, for JSON */
	struct http_headers secret;
	char *urls[3]; /* of traces, of metrics, of Zipkin */
	char *ca_file;
	uint64_t timeout_ns;
	bool finished; /* the records are of a file, and somebody waits */
	atomic_bool cancelled;
	struct out_bytes body; /* of the answer */
	char error[CURL_ERROR_BYTES];
};

static void target_free(void *arg)
{
	struct http_target *target = arg;

	if (target->easy)
		target->curl->easy_cleanup(target->easy);
	for (unsigned i = 0; i < 2; i++)
		if (target->headers[i])
			target->curl->slist_free_all(target->headers[i]);
	for (unsigned i = 0; i < 3; i++)
		free(target->urls[i]);
	http_headers_free(&target->secret);
	bytes_free(&target->body);
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
	struct http_target *target = arg;

	if (target->body.len + size * count > BODY_MAX)
		return 0;
	bytes_add(&target->body, data, size * count);
	return target->body.failed ? 0 : size * count;
}

static int progress(void *arg, int64_t down_total, int64_t down, int64_t up_total, int64_t up)
{
	(void)down_total;
	(void)down;
	(void)up_total;
	(void)up;
	return atomic_load(&((struct http_target *)arg)->cancelled);
}

static int request(struct http_target *target, const struct parcel *parcel)
{
	const struct curl_library *curl = target->curl;
	void *easy = target->easy;
	bool json = parcel->kind & HTTP_JSON;
	unsigned url = parcel->kind & HTTP_ZIPKIN ? 2 : parcel->kind & HTTP_METRICS ? 1 : 0;

	bytes_clear(&target->body);
	target->error[0] = '\0';
	curl->easy_setopt(easy, CURL_URL, target->urls[url]);
	curl->easy_setopt(easy, CURL_HTTPHEADER, target->headers[json]);
	curl->easy_setopt(easy, CURL_POSTFIELDS, parcel->data);
	curl->easy_setopt(easy, CURL_POSTFIELDSIZE_LARGE, (int64_t)parcel->len);
	return curl->easy_perform(easy);
}

/* A server says this with the status, or somebody on the way to it does. */
static bool is_temporary(long status)
{
	return status == 429 || status == 502 || status == 503 || status == 504;
}

static void answer_say(struct http_target *target, long status, struct sender_reply *reply)
{
	size_t len = target->body.len < 120 ? target->body.len : 120;
	const char *body = target->body.data;

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

static enum sender_outcome answered(struct http_target *target, const struct parcel *parcel,
				    struct sender_reply *reply)
{
	struct http_partial partial;
	long status = 0;
	int64_t after = 0;

	target->curl->easy_getinfo(target->easy, CURL_INFO_RESPONSE_CODE, &status);
	if (status >= 200 && status < 300) {
		partial = http_partial_read(target->body.data, target->body.len,
					    parcel->kind & HTTP_JSON);
		reply->refused = partial.rejected;
		snprintf(reply->why, sizeof(reply->why), "%s", partial.why);
		return SENDER_DONE;
	}
	answer_say(target, status, reply);
	if (!is_temporary(status))
		return SENDER_REFUSED;
	target->curl->easy_getinfo(target->easy, CURL_INFO_RETRY_AFTER, &after);
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

static enum sender_outcome deliver(void *arg, const struct parcel *parcel,
				   struct sender_reply *reply)
{
	struct http_target *target = arg;
	int code = request(target, parcel);
	enum sender_outcome outcome;

	if (!code) {
		/* A server may repeat what it was sent. */
		if (target->body.len)
			http_headers_redact(&target->secret, target->body.data, target->body.len);
		outcome = answered(target, parcel, reply);
	} else {
		snprintf(reply->why, sizeof(reply->why), "%.199s",
			 *target->error ? target->error : target->curl->easy_strerror(code));
		outcome = is_final(target, code) ? SENDER_REFUSED : SENDER_AGAIN;
	}
	return outcome;
}

/* ---- opening ---- */

/* Only schemes that a collector has, and no password, which messages and ps would show. */
static int url_check(const char *url, const char *name, struct error *err)
{
	const char *host = !strncmp(url, "http://", 7)    ? url + 7
			   : !strncmp(url, "https://", 8) ? url + 8
							  : NULL;

	if (!host || !*host || *host == '/' || strpbrk(url, " \t\r\n?#")) {
		char *shown = secret_masked(url);

		error_set(err, EINVAL, "%s: '%s': expected a URL such as http://localhost:4318",
			  name, shown ?: "");
		free(shown);
		return -EINVAL;
	}
	if (memchr(host, '@', strcspn(host, "/")))
		return error_set(err, EINVAL,
				 "%s: a URL must not have a password; write a file with the "
				 "line 'Authorization: …' and headers=FILE",
				 name);
	return 0;
}

/* The length of a URL without a path that urls_make() appends: other tools want it whole. */
static size_t base_len(const char *url)
{
	static const char *const paths[] = {"/v1/traces", "/api/v2/spans"};
	size_t len = strlen(url);

	while (len && url[len - 1] == '/')
		len--;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		size_t bytes = strlen(paths[i]);

		if (len > bytes && !memcmp(url + len - bytes, paths[i], bytes))
			return len - bytes;
	}
	return len;
}

static int urls_make(struct http_target *target, const char *url)
{
	size_t len = base_len(url);

	return asprintf(&target->urls[0], "%.*s/v1/traces", (int)len, url) < 0 ||
			       asprintf(&target->urls[1], "%.*s/v1/metrics", (int)len, url) < 0 ||
			       asprintf(&target->urls[2], "%.*s/api/v2/spans", (int)len, url) < 0
		       ? -ENOMEM
		       : 0;
}

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
	int result = header_add(target, 0, "Content-Type: application/x-protobuf")
			     ?: header_add(target, 1, "Content-Type: application/json");

	for (unsigned list = 0; list < 2 && !result; list++) {
		/* No round trip of its own before the body. */
		result = header_add(target, list, "Expect:");
		for (size_t i = 0; i < target->secret.lines.len && !result; i++)
			result = header_add(target, list, target->secret.lines.data[i]);
	}
	return result;
}

static int easy_make(struct http_target *target)
{
	const struct curl_library *curl = target->curl;
	void *easy = target->easy = curl->easy_init();
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
	failed |= curl->easy_setopt(easy, CURL_WRITEDATA, target);
	failed |= curl->easy_setopt(easy, CURL_ERRORBUFFER, target->error);
	failed |= curl->easy_setopt(easy, CURL_USERAGENT, "waffle/" WAFFLE_VERSION);
	if (target->ca_file)
		failed |= curl->easy_setopt(easy, CURL_CAINFO, target->ca_file);
	return failed ? -ENOSYS : 0;
}

static int target_fill(struct http_target *target, const struct http_options *http,
		       const char *name, struct error *err)
{
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
	result = urls_make(target, http->url) ?: headers_make(target) ?: easy_make(target);
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
	int code = url_check(http->url, options->name, err);

	*result = NULL;
	if (!code && !(target = calloc(1, sizeof(*target))))
		code = error_set(err, ENOMEM, "%s: out of memory", options->name);
	code = code ?: target_fill(target, http, options->name, err);
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
