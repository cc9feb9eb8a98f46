/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the URLs of a server's requests from the one URL that the user gave. */
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
/* Returns 0, or -EINVAL with a message. `name`: of the option, for the message. */
int http_url_check(const char *url, const char *name, struct error *err);
/* `url` has passed http_url_check(). The caller frees the URLs, also after an error. Returns 0 or
 * -ENOMEM. */
int http_urls_make(struct http_urls *urls, const char *url);
void http_urls_free(struct http_urls *urls);

#endif
