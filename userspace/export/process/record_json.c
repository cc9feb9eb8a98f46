// SPDX-License-Identifier: Apache-2.0
#include "export/process/record_json_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static void field_text(struct out_bytes *out, const char *key, const char *text)
{
	bytes_print(out, ",\"%s\":", key);
	bytes_json_string(out, text, strlen(text));
}

static void time_write(struct out_bytes *out, const struct waffle_record *record)
{
	uint64_t unix_ns = record->start_ns + (uint64_t)record->unix_offset_ns;
	time_t seconds = (time_t)(unix_ns / 1000000000ull);
	struct tm utc;
	char text[40];

	if (!gmtime_r(&seconds, &utc))
		return;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	bytes_print(out, ",\"time\":\"%s.%09uZ\"", text, (unsigned)(unix_ns % 1000000000ull));
}

static void ids_write(struct out_bytes *out, const struct waffle_record *record)
{
	if (record->id)
		bytes_print(out, ",\"id\":\"%016" PRIx64 "\"", record->id);
	if (record->parent)
		bytes_print(out, ",\"parent\":\"%016" PRIx64 "\"", record->parent);
	if (record->trace_hi | record->trace_lo)
		bytes_print(out, ",\"trace\":\"%016" PRIx64 "%016" PRIx64 "\"", record->trace_hi,
			    record->trace_lo);
}

static void value_write(struct out_bytes *out, const struct waffle_value *value)
{
	switch (value->type) {
	case WAFFLE_VALUE_I64:
		bytes_print(out, "%" PRId64, value->i64);
		break;
	case WAFFLE_VALUE_U64:
		bytes_print(out, "%" PRIu64, value->u64);
		break;
	case WAFFLE_VALUE_F64:
		bytes_json_f64(out, value->f64);
		break;
	case WAFFLE_VALUE_BOOL:
		bytes_text(out, value->u64 ? "true" : "false");
		break;
	case WAFFLE_VALUE_ADDRESS:
		bytes_print(out, "\"0x%" PRIx64 "\"", value->u64);
		break;
	case WAFFLE_VALUE_TEXT:
		bytes_json_string(out, value->text, value->text_len);
		break;
	default:
		bytes_text(out, "null");
	}
}

static void values_write(struct out_bytes *out, const struct waffle_record *record)
{
	bytes_text(out, ",\"args\":{");
	for (size_t i = 0; i < record->value_count; i++) {
		const struct waffle_value *value = &record->values[i];

		if (i)
			bytes_char(out, ',');
		bytes_json_string(out, value->key, strlen(value->key));
		bytes_char(out, ':');
		value_write(out, value);
	}
	bytes_char(out, '}');
}

static void links_write(struct out_bytes *out, const struct waffle_record *record)
{
	if (!record->link_count)
		return;
	bytes_text(out, ",\"links\":[");
	for (size_t i = 0; i < record->link_count; i++)
		bytes_print(out, "%s{\"kind\":\"%s\",\"id\":\"%016" PRIx64 "\"}", i ? "," : "",
			    record->links[i].is_event ? "event" : "span", record->links[i].id);
	bytes_char(out, ']');
}

/* A record on a track has that instead of a thread. */
static void thread_write(struct out_bytes *out, const struct waffle_record *record)
{
	bytes_print(out, ",\"pid\":%u", record->pid);
	if (!*record->track) {
		bytes_print(out, ",\"tid\":%u", record->tid);
		field_text(out, "comm", record->comm);
		return;
	}
	field_text(out, "track", record->track);
	if (*record->track_group)
		field_text(out, "group", record->track_group);
}

void record_json(struct out_bytes *out, const struct waffle_record *record)
{
	static const char *const kinds[] = {
		[WAFFLE_RECORD_SPAN] = "span",
		[WAFFLE_RECORD_EVENT] = "event",
		[WAFFLE_RECORD_COUNTER] = "counter",
		[WAFFLE_RECORD_LOG] = "event",
	};

	_Static_assert(sizeof(kinds) / sizeof(*kinds) == WAFFLE_RECORD_KIND_COUNT, "every kind");
	bytes_print(out, "{\"kind\":\"%s\"", kinds[record->kind]);
	time_write(out, record);
	field_text(out, "name", record->name);
	if (*record->category)
		field_text(out, "category", record->category);
	if (*record->severity)
		field_text(out, "severity", record->severity);
	ids_write(out, record);
	thread_write(out, record);
	bytes_print(out, ",\"start_ns\":%" PRIu64, record->start_ns);
	if (record->kind == WAFFLE_RECORD_SPAN)
		bytes_print(out, ",\"end_ns\":%" PRIu64 ",\"dur_ns\":%" PRIu64, record->end_ns,
			    record->end_ns - record->start_ns);
	if (record->flags & WAFFLE_RECORD_UNFINISHED)
		bytes_text(out, ",\"unfinished\":true");
	if (record->flags & WAFFLE_RECORD_LEFT)
		bytes_text(out, ",\"left\":true");
	if (record->flags & WAFFLE_RECORD_MOVED)
		bytes_print(out, ",\"moved\":true,\"end_tid\":%u", record->end_tid);
	values_write(out, record);
	links_write(out, record);
	bytes_text(out, "}\n");
}
