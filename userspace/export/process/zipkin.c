// SPDX-License-Identifier: Apache-2.0
#include "export/process/zipkin.h"

#include <inttypes.h>
#include <stdio.h>

/* Zipkin counts microseconds. */
static uint64_t unix_us(const struct waffle_record *record, uint64_t ns)
{
	return (ns + (uint64_t)record->unix_offset_ns) / 1000;
}

static void field(struct out_bytes *out, const char *key, const char *text)
{
	bytes_print(out, ",\"%s\":", key);
	bytes_json_string(out, text, strlen(text));
}

/* The text of a value; tags have no other type. */
static void value_text(struct out_bytes *out, const struct waffle_value *value)
{
	switch (value->type) {
	case WAFFLE_VALUE_I64:
		bytes_print(out, "%" PRId64, value->i64);
		break;
	case WAFFLE_VALUE_F64:
		bytes_f64(out, value->f64);
		break;
	case WAFFLE_VALUE_BOOL:
		bytes_text(out, value->u64 ? "true" : "false");
		break;
	case WAFFLE_VALUE_ADDRESS:
		bytes_print(out, "0x%" PRIx64, value->u64);
		break;
	case WAFFLE_VALUE_TEXT:
		bytes_add(out, value->text, value->text_len);
		break;
	case WAFFLE_VALUE_NONE:
		break;
	default:
		bytes_print(out, "%" PRIu64, value->u64);
	}
}

static void tag(struct out_bytes *out, bool *follows, const char *key, const char *text, size_t len)
{
	if (*follows)
		bytes_char(out, ',');
	*follows = true;
	bytes_json_string(out, key, strlen(key));
	bytes_char(out, ':');
	bytes_json_string(out, text, len);
}

static void values_write(struct out_bytes *out, struct out_bytes *text, bool *follows,
			 const struct waffle_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bytes_clear(text);
		value_text(text, &values[i]);
		tag(out, follows, values[i].key, text->data ? text->data : "", text->len);
	}
}

/* What Zipkin has no member for: the process, and links, as "TRACE-SPAN TRACE-SPAN". */
static void facts_write(struct out_bytes *out, struct out_bytes *text, bool *follows,
			const struct record_facts *facts)
{
	values_write(out, text, follows, facts->attributes, facts->attribute_count);
	values_write(out, text, follows, facts->resource, facts->resource_count);
	bytes_clear(text);
	for (size_t i = 0; i < facts->link_count; i++) {
		const struct record_fact_link *link = &facts->links[i];

		bytes_text(text, i ? " " : "");
		bytes_hex64(text, link->trace_hi);
		bytes_hex64(text, link->trace_lo);
		bytes_char(text, '-');
		bytes_hex64(text, link->id);
	}
	if (text->len)
		tag(out, follows, "waffle.caused_by", text->data, text->len);
}

static void tags_write(struct out_bytes *out, const struct full_record *full)
{
	const struct waffle_record *record = &full->record;
	struct waffle_value times[3];
	struct out_bytes text = {0};
	bool follows = false;

	bytes_text(out, ",\"tags\":{");
	values_write(out, &text, &follows, record->values, record->value_count);
	bytes_clear(&text);
	bytes_print(&text, "%u", record->tid);
	if (!text.failed)
		tag(out, &follows, "thread.id", text.data, text.len);
	tag(out, &follows, "thread.name", record->comm, strlen(record->comm));
	if (*record->category)
		tag(out, &follows, "waffle.category", record->category, strlen(record->category));
	if (*record->track)
		tag(out, &follows, "waffle.track", record->track, strlen(record->track));
	if (!strcmp(record->severity, "error"))
		tag(out, &follows, "error", record->name, strlen(record->name));
	if (record->flags & WAFFLE_RECORD_UNFINISHED)
		tag(out, &follows, "waffle.unfinished", "true", 4);
	if (full->simulated)
		tag(out, &follows, "waffle.simulated", "true", 4);
	values_write(out, &text, &follows, times, full_record_times(full, times));
	if (full->facts)
		facts_write(out, &text, &follows, full->facts);
	bytes_char(out, '}');
	bytes_free(&text);
}

/* "retry i=3 host=a" */
static void annotation_write(struct out_bytes *out, struct full_record *full)
{
	struct full_record_values room;
	const struct waffle_record *record = &full->record;
	struct out_bytes text = {0};

	full_record_decode(full, &room);
	bytes_text(&text, record->name);
	for (size_t i = 0; i < record->value_count; i++) {
		bytes_print(&text, " %.64s=", record->values[i].key);
		value_text(&text, &record->values[i]);
	}
	bytes_print(out,
		    "{\"timestamp\":%" PRIu64 ",\"value\":", unix_us(record, record->start_ns));
	bytes_json_string(out, text.data ? text.data : "", text.len);
	bytes_char(out, '}');
	bytes_free(&text);
}

static uint32_t annotations_write(struct out_bytes *out, struct pending_events *pending,
				  uint64_t span_id)
{
	struct pending_event *event = pending_events_take(pending, span_id), *next;
	uint32_t count = 0;

	if (!event)
		return 0;
	bytes_text(out, ",\"annotations\":[");
	for (; event; event = next) {
		next = event->next_same;
		if (count++)
			bytes_char(out, ',');
		annotation_write(out, event->record);
		pending_event_free(event);
	}
	bytes_char(out, ']');
	return count;
}

static uint32_t span_write(struct out_bytes *out, const struct otlp_source *source,
			   struct full_record *full)
{
	struct full_record_values room;
	const struct waffle_record *record = &full->record;
	uint64_t lo = record->trace_hi | record->trace_lo ? record->trace_lo : record->id;
	uint64_t us = (record->end_ns - record->start_ns + 999) / 1000;
	uint32_t count = 1;

	if (source->joiner)
		joiner_decode(source->joiner, full, &room);
	else
		full_record_decode(full, &room);
	bytes_print(out, "{\"traceId\":\"%016" PRIx64 "%016" PRIx64 "\",\"id\":\"%016" PRIx64 "\"",
		    record->trace_hi, lo, record->id);
	if (record->parent)
		bytes_print(out, ",\"parentId\":\"%016" PRIx64 "\"", record->parent);
	field(out, "name", record->name);
	bytes_print(out, ",\"timestamp\":%" PRIu64, unix_us(record, record->start_ns));
	/* Zipkin has no duration of 0. */
	if (record->kind == WAFFLE_RECORD_SPAN)
		bytes_print(out, ",\"duration\":%" PRIu64, us ? us : 1);
	bytes_text(out, ",\"localEndpoint\":{\"serviceName\":");
	bytes_json_string(out, source->service, strlen(source->service));
	bytes_char(out, '}');
	tags_write(out, full);
	if (record->kind == WAFFLE_RECORD_SPAN)
		count += annotations_write(out, source->pending, record->id);
	bytes_char(out, '}');
	return count;
}

uint32_t zipkin_spans(struct out_bytes *out, const struct otlp_source *source,
		      struct full_record *const *records, size_t count)
{
	size_t begin = out->len;
	uint32_t written = 0;

	bytes_char(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (records[i]->record.kind == WAFFLE_RECORD_COUNTER)
			continue;
		if (written)
			bytes_char(out, ',');
		written += span_write(out, source, records[i]);
	}
	bytes_char(out, ']');
	if (!written)
		out->len = begin;
	return written;
}
