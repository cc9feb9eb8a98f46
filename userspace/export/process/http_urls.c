// SPDX-License-Identifier: Apache-2.0
#include "export/process/http_urls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/secret.h"

/* The URL schemes, and what libcurl is told. */
static const struct {
	const char *scheme, *base;
	bool grpc;
} schemes[] = {
	{"http://", "http://", false},
	{"https://", "https://", false},
	{"grpc://", "http://", true},
	{"grpcs://", "https://", true},
};

#define SCHEMES (sizeof(schemes) / sizeof(schemes[0]))

/* The index of a URL's scheme; SCHEMES: no server has it. */
static size_t scheme_of(const char *url)
{
	size_t i = 0;

	while (i < SCHEMES && strncmp(url, schemes[i].scheme, strlen(schemes[i].scheme)) != 0)
		i++;
	return i;
}

bool http_url_is_grpc(const char *url)
{
	size_t scheme = scheme_of(url);

	return scheme < SCHEMES && schemes[scheme].grpc;
}

/* Only schemes that a collector has, and no password, which messages and ps would show. */
int http_url_check(const char *url, const char *name, struct error *err)
{
	size_t scheme = scheme_of(url);
	const char *host = scheme < SCHEMES ? url + strlen(schemes[scheme].scheme) : NULL, *path;

	if (!host || !*host || *host == '/' || strpbrk(url, " \t\r\n?#")) {
		char *shown = secret_masked(url);

		error_set(err, EINVAL, "%s: '%s': expected a URL such as http://localhost:4318",
			  name, shown ?: "");
		free(shown);
		return -EINVAL;
	}
	path = host + strcspn(host, "/");
	if (memchr(host, '@', (size_t)(path - host)))
		return error_set(err, EINVAL,
				 "%s: a URL must not have a password; write a file with the "
				 "line 'Authorization: …' and headers=FILE",
				 name);
	if (schemes[scheme].grpc && path[strspn(path, "/")])
		return error_set(err, EINVAL,
				 "%s: '%s': gRPC has no paths; expected a URL such as "
				 "grpc://localhost:4317",
				 name, url);
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

#define GRPC_SERVICE "/opentelemetry.proto.collector."

int http_urls_make(struct http_urls *urls, const char *url)
{
	size_t scheme = scheme_of(url), skip = strlen(schemes[scheme].scheme);
	const char *base = schemes[scheme].base, *rest = url + skip;
	int len = (int)(base_len(url) - skip);
	bool grpc = urls->grpc = schemes[scheme].grpc;
	/* Servers have different paths for remote write, so one that is given is the whole. */
	const char *write = (int)strcspn(rest, "/") < len ? "" : "/api/v1/write";
	const char *paths[] = {
		[URL_TRACES] = grpc ? GRPC_SERVICE "trace.v1.TraceService/Export" : "/v1/traces",
		[URL_METRICS] =
			grpc ? GRPC_SERVICE "metrics.v1.MetricsService/Export" : "/v1/metrics",
		[URL_ZIPKIN] = "/api/v2/spans",
		[URL_WRITE] = write,
	};
	_Static_assert(sizeof(paths) / sizeof(paths[0]) == URL_COUNT, "a path of each");

	urls->tls = !strncmp(base, "https", 5);
	for (unsigned i = 0; i < URL_COUNT; i++)
		if (asprintf(&urls->of[i], "%s%.*s%s", base, len, rest, paths[i]) < 0) {
			urls->of[i] = NULL;
			return -ENOMEM;
		}
	return 0;
}

void http_urls_free(struct http_urls *urls)
{
	for (unsigned i = 0; i < URL_COUNT; i++)
		free(urls->of[i]);
}
