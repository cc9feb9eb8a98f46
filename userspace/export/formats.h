/* SPDX-License-Identifier: Apache-2.0 */
/* The list of exporters: a new one is a row here, and a file that defines its NAME_write(). */
#ifndef WAFFLE_EXPORT_FORMATS_H
#define WAFFLE_EXPORT_FORMATS_H

#include <stdio.h>

#include "model/model.h"
#include "util/error.h"

/* row(name, extension, help): members of struct exporter. */
// clang-format off
#define EXPORTER_ROWS(row)                                                                         \
	row(perfetto, ".pftrace",                                                                  \
	    "Perfetto's native trace; open it in https://ui.perfetto.dev with \"Open trace file\".")  \
	row(chrome, ".json",                                                                       \
	    "Chrome JSON trace events; open it in https://ui.perfetto.dev or in chrome://tracing.") \
	row(ndjson, ".ndjson", "One JSON object a line; read it with jq or a script.")             \
	row(records, ".records.ndjson",                                                            \
	    "The capture's records as they are, one JSON object a line, by their numbers.")         \
	row(otlp, ".otlp.jsonl",                                                                   \
	    "Spans for OpenTelemetry, one request in JSON a line; --to URL sends them.")            \
	row(zipkin, ".zipkin.json", "Spans for Zipkin, as one list in JSON; --to URL sends them.") \
	row(sqlite, ".db", "A database of SQLite; open it with sqlite3 or a script.")              \
	row(prometheus, ".prom", "Metrics as OpenMetrics text, for Prometheus to scrape.")
// clang-format on

#define EXPORTER_WRITE(name, extension, help)                                                      \
	int name##_write(const struct model *model, FILE *out, struct error *err);
EXPORTER_ROWS(EXPORTER_WRITE)
#undef EXPORTER_WRITE

#endif
