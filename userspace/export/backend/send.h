/* SPDX-License-Identifier: Apache-2.0 */
/* Sends a capture to a server: spans with their events as OTLP or in Zipkin's format, or metrics by
 * Prometheus' remote write. */
#ifndef WAFFLE_EXPORT_BACKEND_SEND_H
#define WAFFLE_EXPORT_BACKEND_SEND_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "util/error.h"

enum backend_kind { BACKEND_OTLP, BACKEND_ZIPKIN, BACKEND_PROMETHEUS };

struct backend_server {
	enum backend_kind kind;
	const char *url;          /* http://HOST:PORT, or with the whole path */
	const char *service;      /* name of the program */
	const char *headers_file; /* lines "Name: value"; NULL: none */
	const char *ca_file;      /* certificates to trust instead of the system's; NULL: those */
	uint64_t wait_ns;         /* how long a server is tried that is down or overloaded */
	/* Tells a person that a request failed and is tried again; by any thread. */
	void (*say)(const char *line, void *arg);
	void *arg;
};

struct backend_sent {
	uint64_t records;  /* spans and events; with BACKEND_PROMETHEUS, series */
	uint64_t counters; /* values of counters, also those in `skipped` */
	uint64_t skipped;  /* values of counters that a server without metrics does not take */
};

/* Whether a text is the URL of a server rather than the name of a file. */
bool backend_is_url(const char *text);
/* The kind of server, by the path of its URL: …/api/v2/spans is Zipkin, …/api/v1/write and
 * …/api/v1/push are Prometheus, and everything else is OTLP. */
enum backend_kind backend_kind_of(const char *url);
/* The chain that sends to this URL while a program runs, for free(): "export(otlp='…')". With
 * `spool`, what could not be sent is kept in that folder. `before`: a chain in front of it, or
 * NULL. NULL: out of memory. */
char *backend_chain(const char *url, const char *spool, const char *before);

/* -EIO with a message if not all records were accepted. */
int backend_send(const struct model *model, const struct backend_server *server,
		 struct backend_sent *sent, struct error *err);

#endif
