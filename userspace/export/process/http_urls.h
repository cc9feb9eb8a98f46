/* SPDX-License-Identifier: Apache-2.0 */
/* The URLs that a server's requests go to, from the one that a person gave. */
#ifndef WAFFLE_EXPORT_PROCESS_HTTP_URLS_H
#define WAFFLE_EXPORT_PROCESS_HTTP_URLS_H

#include <stdbool.h>

#include "util/error.h"

enum http_url { URL_TRACES, URL_METRICS, URL_ZIPKIN, URL_WRITE, URL_COUNT };

struct http_urls {
	char *of[URL_COUNT]; /* as libcurl takes them */
	bool grpc, tls;
};

/* Whether a URL means gRPC, which takes only OTLP in protobuf. */
bool http_url_is_grpc(const char *url);
/* -EINVAL with a message. */
int http_url_check(const char *url, const char *name, struct error *err);
/* For a URL that was checked; free them in any case. Returns 0 or -ENOMEM. */
int http_urls_make(struct http_urls *urls, const char *url);
void http_urls_free(struct http_urls *urls);

#endif
