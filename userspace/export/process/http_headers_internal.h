/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of requests. Their values may be secret, such as keys of an API. */
#ifndef WAFFLE_EXPORT_PROCESS_HTTP_HEADERS_INTERNAL_H
#define WAFFLE_EXPORT_PROCESS_HTTP_HEADERS_INTERNAL_H

#include <stddef.h>

#include "util/error.h"
#include "util/vec.h"

struct http_headers {
	VEC(char *) lines; /* "Name: value" */
};

/* Adds the lines "Name: value" of a file. No message has a value. */
int http_headers_file(struct http_headers *headers, const char *path, struct error *err);
/* Adds those of the form "name=value,name=value", percent-encoded, as in
 * OTEL_EXPORTER_OTLP_HEADERS. */
int http_headers_variable(struct http_headers *headers, const char *text, struct error *err);
/* Overwrites each value in what a server answered by "***". */
void http_headers_redact(const struct http_headers *headers, char *data, size_t len);
void http_headers_free(struct http_headers *headers);
/* Replaces each %XX in the text with its byte. */
void http_percent_decode(char *text);

#endif
