// SPDX-License-Identifier: Apache-2.0
/* ExportTraceServiceRequest (opentelemetry/proto/trace/v1/trace.proto). */
#include <stdio.h>

#include "export/process/otlp_out_internal.h"
#include "export/process/otlp_traces.h"

#define SPAN_KIND_INTERNAL 1u
#define STATUS_ERROR 2u

struct traces {
	struct otlp_out otlp;
	const struct otlp_source *source;
	struct full_record_values room;
	uint32_t records;
};

static uint64_t unix_ns(const struct waffle_record *record, uint64_t ns)
{
	return ns + (uint64_t)record->unix_offset_ns;
}

static void text_write(struct otlp_out *otlp, unsigned field, const char *key, const char *text)
{
	if (*text)
		otlp_attribute_text(otlp, field, key, text, strlen(text));
}

/* The keys of the record, and what is known of its place, by OpenTelemetry's names. */
static void attributes_write(struct traces *traces, unsigned field, const struct full_record *full,
			     bool is_span)
{
	const struct waffle_record *record = &full->record;
	struct otlp_out *otlp = &traces->otlp;
	struct waffle_value times[3];

	otlp_list_begin(otlp, "attributes");
	for (size_t i = 0; i < record->value_count; i++) {
		struct waffle_value value = record->values[i];

		/* Jaeger would show the value of an event's key "event" as the event's name. */
		if (!is_span && !strcmp(value.key, "event"))
			value.key = "waffle.kv.event";
		otlp_attribute_value(otlp, field, &value);
	}
	text_write(otlp, field, "waffle.category", record->category);
	text_write(otlp, field, "waffle.severity", record->severity);
	text_write(otlp, field, "waffle.track", record->track);
	text_write(otlp, field, "waffle.track.group", record->track_group);
	if (is_span) {
		otlp_attribute_int(otlp, field, "thread.id", record->tid);
		text_write(otlp, field, "thread.name", record->comm);
		text_write(otlp, field, "code.function.name", record->func);
		text_write(otlp, field, "code.file.path", record->file);
		if (record->line)
			otlp_attribute_int(otlp, field, "code.line.number", record->line);
	}
	if (record->flags & WAFFLE_RECORD_UNFINISHED)
		otlp_attribute_bool(otlp, field, "waffle.unfinished", true);
	if (record->flags & WAFFLE_RECORD_LEFT)
		otlp_attribute_bool(otlp, field, "waffle.left", true);
	if (full->simulated)
		otlp_attribute_bool(otlp, field, "waffle.simulated", true);
	for (size_t i = 0, count = full_record_times(full, times); i < count; i++)
		otlp_attribute_value(otlp, field, &times[i]);
	for (size_t i = 0; full->facts && i < full->facts->attribute_count; i++)
		otlp_attribute_value(otlp, field, &full->facts->attributes[i]);
	otlp_list_end(otlp);
}

static void link_name(struct otlp_out *otlp, const char *key, const char *name)
{
	if (name)
		otlp_attribute_text(otlp, 4, key, name, strlen(name));
}

/* message Link { bytes trace_id = 1; bytes span_id = 2; … repeated KeyValue attributes = 4; } A
 * link to a span whose trace is not known would not be valid. */
static void link_write(struct traces *traces, bool *any, const struct record_fact_link *link)
{
	struct otlp_out *otlp = &traces->otlp;

	if (!(link->trace_hi | link->trace_lo))
		return;
	if (!*any)
		otlp_list_begin(otlp, "links");
	*any = true;
	otlp_item_begin(otlp, 13);
	otlp_id128(otlp, 1, "traceId", link->trace_hi, link->trace_lo);
	otlp_id(otlp, 2, "spanId", link->id);
	if (link->to_event || link->from_event) {
		otlp_list_begin(otlp, "attributes");
		link_name(otlp, "waffle.link.to_event", link->to_event);
		link_name(otlp, "waffle.link.from_event", link->from_event);
		otlp_list_end(otlp);
	}
	otlp_end(otlp);
}

static void links_write(struct traces *traces, const struct full_record *full)
{
	const struct waffle_record *record = &full->record;
	const struct record_facts *facts = full->facts;
	bool any = false;

	for (size_t i = 0; facts && i < facts->link_count; i++)
		link_write(traces, &any, &facts->links[i]);
	for (size_t i = 0; !facts && i < record->link_count; i++) {
		const struct waffle_record_link *link = &record->links[i];

		link_write(traces, &any,
			   &(struct record_fact_link){.trace_hi = link->trace_hi,
						      .trace_lo = link->trace_lo,
						      .id = link->id});
	}
	if (any)
		otlp_list_end(&traces->otlp);
}

/* message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; }
 */
static void event_write(struct traces *traces, struct full_record *full)
{
	const struct waffle_record *record = &full->record;

	full_record_decode(full, &traces->room);
	otlp_item_begin(&traces->otlp, 11);
	otlp_fixed64(&traces->otlp, 1, "timeUnixNano", unix_ns(record, record->start_ns));
	otlp_text(&traces->otlp, 2, "name", record->name);
	attributes_write(traces, 3, full, false);
	otlp_end(&traces->otlp);
	traces->records++;
}

static void events_write(struct traces *traces, uint64_t span_id)
{
	struct pending_event *event = pending_events_take(traces->source->pending, span_id), *next;

	if (!event)
		return;
	otlp_list_begin(&traces->otlp, "events");
	for (; event; event = next) {
		next = event->next_same;
		event_write(traces, event->record);
		pending_event_free(event);
	}
	otlp_list_end(&traces->otlp);
}

/* An event outside any span is a trace of its own. */
static void ids_write(struct traces *traces, const struct waffle_record *record)
{
	uint64_t lo = record->trace_hi | record->trace_lo ? record->trace_lo : record->id;

	otlp_id128(&traces->otlp, 1, "traceId", record->trace_hi, lo);
	otlp_id(&traces->otlp, 2, "spanId", record->id);
	if (record->parent)
		otlp_id(&traces->otlp, 4, "parentSpanId", record->parent);
}

static void span_write(struct traces *traces, struct full_record *full)
{
	const struct waffle_record *record = &full->record;
	struct otlp_out *otlp = &traces->otlp;

	if (traces->source->joiner)
		joiner_decode(traces->source->joiner, full, &traces->room);
	else
		full_record_decode(full, &traces->room);
	otlp_item_begin(otlp, 2);
	ids_write(traces, record);
	otlp_text(otlp, 5, "name", record->name);
	otlp_number(otlp, 6, "kind", SPAN_KIND_INTERNAL);
	otlp_fixed64(otlp, 7, "startTimeUnixNano", unix_ns(record, record->start_ns));
	otlp_fixed64(otlp, 8, "endTimeUnixNano", unix_ns(record, record->end_ns));
	attributes_write(traces, 9, full, true);
	links_write(traces, full);
	if (record->kind == WAFFLE_RECORD_SPAN)
		events_write(traces, record->id);
	if (!strcmp(record->severity, "error")) {
		otlp_begin(otlp, 15, "status");
		otlp_number(otlp, 3, "code", STATUS_ERROR);
		otlp_end(otlp);
	}
	otlp_end(otlp);
	traces->records++;
}

/* message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
 * message ScopeSpans { InstrumentationScope scope = 1; repeated Span spans = 2; } */
static void process_write(struct traces *traces, struct full_record *const *records, size_t count,
			  size_t first)
{
	uint32_t pid = records[first]->record.pid;
	struct otlp_out *otlp = &traces->otlp;

	otlp_item_begin(otlp, 1);
	otlp_resource(otlp, traces->source->service, pid, records[first]->facts,
		      traces->source->cache);
	otlp_list_begin(otlp, "scopeSpans");
	otlp_item_begin(otlp, 2);
	otlp_scope(otlp);
	otlp_list_begin(otlp, "spans");
	for (size_t i = first; i < count; i++)
		if (records[i]->record.pid == pid &&
		    records[i]->record.kind != WAFFLE_RECORD_COUNTER)
			span_write(traces, records[i]);
	otlp_list_end(otlp);
	otlp_end(otlp);
	otlp_list_end(otlp);
	otlp_end(otlp);
}

static bool is_first(struct full_record *const *records, size_t index)
{
	const struct waffle_record *record = &records[index]->record;

	if (record->kind == WAFFLE_RECORD_COUNTER)
		return false;
	for (size_t i = 0; i < index; i++)
		if (records[i]->record.pid == record->pid &&
		    records[i]->record.kind != WAFFLE_RECORD_COUNTER)
			return false;
	return true;
}

uint32_t otlp_traces(struct out_bytes *out, bool json, const struct otlp_source *source,
		     struct full_record *const *records, size_t count)
{
	struct traces traces = {.source = source};
	size_t begin = out->len;

	otlp_request_begin(&traces.otlp, out, json);
	otlp_list_begin(&traces.otlp, "resourceSpans");
	for (size_t i = 0; i < count; i++)
		if (is_first(records, i))
			process_write(&traces, records, count, i);
	otlp_list_end(&traces.otlp);
	otlp_request_end(&traces.otlp);
	if (!traces.records)
		out->len = begin;
	return traces.records;
}
