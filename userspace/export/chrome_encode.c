// SPDX-License-Identifier: Apache-2.0
#include "export/chrome_encode.h"

#include "render/json/value_json.h"
#include "store/record.h"

/* Microseconds, with three decimals. */
static void write_time(struct json *json, const char *key, uint64_t ns)
{
	char digits[32], *at = digits + sizeof(digits);

	for (unsigned i = 0; ns || i < 5; i++) {
		if (i == 3) {
			*--at = '.';
			continue;
		}
		*--at = (char)('0' + ns % 10);
		ns /= 10;
	}
	json_key(json, key);
	json_number(json, at, (size_t)(digits + sizeof(digits) - at));
}

void chrome_open(struct json *json, const char *phase, const char *name, struct chrome_point point)
{
	json_object_begin(json);
	json_field_string(json, "ph", phase);
	json_field_string(json, "name", *name ? name : "(unnamed)");
	write_time(json, "ts", point.ns);
	json_field_u64(json, "pid", point.pid);
	json_field_u64(json, "tid", point.tid);
}

void chrome_category(struct json *json, const struct site_info *site)
{
	json_field_string(json, "cat", *site->category ? site->category : "waffle");
}

void chrome_duration(struct json *json, uint64_t ns)
{
	write_time(json, "dur", ns);
}

void chrome_args(struct json *json)
{
	json_key(json, "args");
	json_object_begin(json);
}

void chrome_close(struct json *json)
{
	json_object_end(json);
	json_object_end(json);
}

void chrome_node_args(struct json *json, const struct export_node *node)
{
	chrome_args(json);
	value_json_all(json, node->values);
	if (node->site->kind == WAFFLE_SITE_COUNTER)
		return;
	json_field_hex64(json, "waffle.id", node->id);
	if (node->caused_by)
		json_field_hex64(json, "waffle.caused_by", node->caused_by);
}

void chrome_span_close(struct json *json, const struct export_node *span)
{
	if (span->parent_id)
		json_field_hex64(json, "waffle.parent", span->parent_id);
	if (span->has_sched) {
		json_field_u64(json, "waffle.running_ns", span->running_ns);
		json_field_u64(json, "waffle.runnable_ns", span->runnable_ns);
	}
	if (span->begun_before)
		json_field_bool(json, "waffle.begun_before", true);
	if (span->unfinished)
		json_field_bool(json, "waffle.unfinished", true);
	if (span->left)
		json_field_bool(json, "waffle.left", true);
	if (span->continued)
		json_field_bool(json, "waffle.continued", true);
	chrome_close(json);
}

void chrome_event_close(struct json *json, const struct export_node *event)
{
	if (event->severity)
		json_field_string(json, "waffle.severity", event->severity);
	chrome_close(json);
}

void chrome_async_begin(struct json *json, const struct export_node *span,
			struct chrome_point begin)
{
	chrome_open(json, "b", span->site->name, begin);
	chrome_category(json, span->site);
	json_field_hex64(json, "id", span->id);
	chrome_node_args(json, span);
}

void chrome_async_end(struct json *json, const struct site_info *site, uint64_t id,
		      struct chrome_point end)
{
	chrome_open(json, "e", site->name, end);
	chrome_category(json, site);
	json_field_hex64(json, "id", id);
	json_object_end(json);
}

void chrome_instant(struct json *json, const struct export_node *event, struct chrome_point point)
{
	bool counter = event->site->kind == WAFFLE_SITE_COUNTER;

	chrome_open(json, counter ? "C" : "i", event->site->name, point);
	if (!counter) {
		chrome_category(json, event->site);
		json_field_string(json, "s", "t");
	}
	chrome_node_args(json, event);
}

void chrome_name(struct json *json, const char *what, const char *name, struct chrome_point point)
{
	chrome_open(json, "M", what, point);
	chrome_args(json);
	json_field_string(json, "name", name);
	chrome_close(json);
}

void chrome_flow_begin(struct json *json, uint64_t id, struct chrome_point cause)
{
	chrome_open(json, "s", "cause", cause);
	json_field_string(json, "cat", "waffle");
	json_field_u64(json, "id", id);
	json_object_end(json);
}

void chrome_flow_end(struct json *json, uint64_t id, struct chrome_point effect)
{
	chrome_open(json, "f", "cause", effect);
	json_field_string(json, "cat", "waffle");
	json_field_u64(json, "id", id);
	json_field_string(json, "bp", "e");
	json_object_end(json);
}

void chrome_loss(struct json *json, uint64_t count, unsigned source, uint16_t cpu,
		 struct chrome_point point)
{
	chrome_open(json, "i", "records lost", point);
	json_field_string(json, "cat", "waffle");
	json_field_string(json, "s", "g");
	chrome_args(json);
	json_field_u64(json, "count", count);
	json_field_string(json, "source", record_source_name(source));
	json_field_u64(json, "cpu", cpu);
	chrome_close(json);
}
