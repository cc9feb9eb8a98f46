// SPDX-License-Identifier: Apache-2.0
#include "export/process/record_json_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

static void key(struct out_bytes *out, const char *name)
{
	bytes_text(out, ",\"");
	bytes_text(out, name);
	bytes_text(out, "\":");
}

static void field_text(struct out_bytes *out, const char *name, const char *text)
{
	key(out, name);
	bytes_json_string(out, text, strlen(text));
}

static void field_u64(struct out_bytes *out, const char *name, uint64_t value)
{
	key(out, name);
	bytes_u64(out, value);
}

/* An id of one word, or of two. */
static void field_id(struct out_bytes *out, const char *name, const uint64_t *hi, uint64_t lo)
{
	key(out, name);
	bytes_char(out, '"');
	if (hi)
		bytes_hex64(out, *hi);
	bytes_hex64(out, lo);
	bytes_char(out, '"');
}

/* Most records are of the same second as the one before. */
static void time_write(struct out_bytes *out, const struct waffle_record *record,
		       struct record_json_time *cache)
{
	uint64_t unix_ns = record->start_ns + (uint64_t)record->unix_offset_ns;
	uint64_t second = unix_ns / 1000000000;
	uint32_t fraction = (uint32_t)(unix_ns % 1000000000);
	char digits[9];
	struct tm utc;

	if (second != cache->second || !*cache->text) {
		time_t seconds = (time_t)second;

		if (!gmtime_r(&seconds, &utc) ||
		    !strftime(cache->text, sizeof(cache->text), "%Y-%m-%dT%H:%M:%S", &utc))
			return;
		cache->second = second;
	}
	for (unsigned i = sizeof(digits); i-- > 0; fraction /= 10)
		digits[i] = (char)('0' + fraction % 10);
	key(out, "time");
	bytes_char(out, '"');
	bytes_text(out, cache->text);
	bytes_char(out, '.');
	bytes_add(out, digits, sizeof(digits));
	bytes_text(out, "Z\"");
}

static void ids_write(struct out_bytes *out, const struct waffle_record *record)
{
	if (record->id)
		field_id(out, "id", NULL, record->id);
	if (record->parent)
		field_id(out, "parent", NULL, record->parent);
	if (record->trace_hi | record->trace_lo)
		field_id(out, "trace", &record->trace_hi, record->trace_lo);
}

static void value_write(struct out_bytes *out, const struct waffle_value *value)
{
	switch (value->type) {
	case WAFFLE_VALUE_I64:
		if (value->i64 < 0)
			bytes_char(out, '-');
		bytes_u64(out, value->i64 < 0 ? -(uint64_t)value->i64 : (uint64_t)value->i64);
		break;
	case WAFFLE_VALUE_U64:
		bytes_u64(out, value->u64);
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
	field_u64(out, "pid", record->pid);
	if (!*record->track) {
		field_u64(out, "tid", record->tid);
		field_text(out, "comm", record->comm);
		return;
	}
	field_text(out, "track", record->track);
	if (*record->track_group)
		field_text(out, "group", record->track_group);
}

void record_json(struct out_bytes *out, const struct full_record *full,
		 struct record_json_time *cache)
{
	const struct waffle_record *record = &full->record;
	static const char *const begins[] = {
		[WAFFLE_RECORD_SPAN] = "{\"kind\":\"span\"",
		[WAFFLE_RECORD_EVENT] = "{\"kind\":\"event\"",
		[WAFFLE_RECORD_COUNTER] = "{\"kind\":\"counter\"",
		[WAFFLE_RECORD_LOG] = "{\"kind\":\"event\"",
	};

	_Static_assert(sizeof(begins) / sizeof(*begins) == WAFFLE_RECORD_KIND_COUNT, "every kind");
	bytes_text(out, begins[record->kind]);
	time_write(out, record, cache);
	field_text(out, "name", record->name);
	if (*record->category)
		field_text(out, "category", record->category);
	if (*record->severity)
		field_text(out, "severity", record->severity);
	ids_write(out, record);
	thread_write(out, record);
	field_u64(out, "start_ns", record->start_ns);
	if (record->kind == WAFFLE_RECORD_SPAN) {
		field_u64(out, "end_ns", record->end_ns);
		field_u64(out, "dur_ns", record->end_ns - record->start_ns);
	}
	if (record->flags & WAFFLE_RECORD_UNFINISHED)
		bytes_text(out, ",\"unfinished\":true");
	if (record->flags & WAFFLE_RECORD_LEFT)
		bytes_text(out, ",\"left\":true");
	if (full->simulated)
		bytes_text(out, ",\"simulated\":true");
	if (record->flags & WAFFLE_RECORD_MOVED) {
		bytes_text(out, ",\"moved\":true");
		field_u64(out, "end_tid", record->end_tid);
	}
	values_write(out, record);
	links_write(out, record);
	bytes_text(out, "}\n");
}
