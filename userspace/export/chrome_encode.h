/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encodes the objects of the Chrome trace event format (JSON). The exporter of captures and
 * programs that record themselves use it. Times are since the beginning of the capture, in
 * nanoseconds; the format has microseconds.
 */
#ifndef WAFFLE_EXPORT_CHROME_ENCODE_H
#define WAFFLE_EXPORT_CHROME_ENCODE_H

#include "export/node.h"
#include "util/json.h"

/* When and where something happened. */
struct chrome_point {
	uint64_t ns;
	uint32_t pid, tid; /* 0: unknown */
};

/* Begins an event, which json_object_end() or chrome_close() ends. */
void chrome_open(struct json *json, const char *phase, const char *name, struct chrome_point point);
void chrome_category(struct json *json, const struct site_info *site);
void chrome_duration(struct json *json, uint64_t ns);
/* Begins the arguments of an event. */
void chrome_args(struct json *json);
/* Ends the arguments and the event. */
void chrome_close(struct json *json);
/* The same for a span, event or counter, with its values and all that is known of it. The caller
 * may add arguments between the two. */
void chrome_node_args(struct json *json, const struct export_node *node);
void chrome_span_close(struct json *json, const struct export_node *span);
void chrome_event_close(struct json *json, const struct export_node *event);

/* Begin and end of an asynchronous span, which need not nest in its thread. The begin is left open
 * like chrome_node_args(). */
void chrome_async_begin(struct json *json, const struct export_node *span,
			struct chrome_point begin);
void chrome_async_end(struct json *json, const struct site_info *site, uint64_t id,
		      struct chrome_point end);
/* An event or the value of a counter, left open in the same way. */
void chrome_instant(struct json *json, const struct export_node *event, struct chrome_point point);

/* The name of a thread, or of a process ("process_name"). */
void chrome_name(struct json *json, const char *what, const char *name, struct chrome_point point);
/* An arrow, as two events. */
void chrome_flow_begin(struct json *json, uint64_t id, struct chrome_point cause);
void chrome_flow_end(struct json *json, uint64_t id, struct chrome_point effect);
void chrome_loss(struct json *json, uint64_t count, unsigned source, uint16_t cpu,
		 struct chrome_point point);

#endif
