// SPDX-License-Identifier: Apache-2.0
/*
 * The unprocessed records of a file, one JSON object a line, each with its number as in `why
 * --evidence`. docs/records.md explains the fields. For a simulated capture,
 * {"kind": "capture", "simulated": true} comes first.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "export/formats.h"
#include "render/json/summary_json.h"
#include "store/host.h"
#include "store/record_schema.h"
#include "util/json.h"

static uint64_t unsigned_at(const void *at, size_t bytes)
{
	switch (bytes) {
	case sizeof(uint8_t):
		return *(const uint8_t *)at;
	case sizeof(uint16_t):
		return *(const uint16_t *)at;
	case sizeof(uint32_t):
		return *(const uint32_t *)at;
	}
	return *(const uint64_t *)at;
}

static void write_field(struct json *json, const struct model *model,
			const struct record_field *field, const void *at)
{
	char text[24];

	switch (field->form) {
	case RECORD_SIGNED:
		json_field_i64(json, field->name, *(const int32_t *)at);
		break;
	case RECORD_ADDRESS:
		snprintf(text, sizeof(text), "0x%" PRIx64, unsigned_at(at, field->bytes));
		json_field_string(json, field->name, text);
		break;
	case RECORD_ID:
		json_field_hex64(json, field->name, unsigned_at(at, field->bytes));
		break;
	case RECORD_TEXT:
		json_key(json, field->name);
		json_string_len(json, at, strnlen(at, field->bytes));
		break;
	case RECORD_PID:
		json_field_u64(json, field->name,
			       model_pid_real(model, (uint32_t)unsigned_at(at, field->bytes)));
		break;
	case RECORD_INODE:
		json_field_u64(json, field->name,
			       model_ino_real(model, unsigned_at(at, field->bytes)));
		break;
	default:
		json_field_u64(json, field->name, unsigned_at(at, field->bytes));
	}
}

static void write_record(struct json *json, const struct model *model, const struct waffle_rec *rec,
			 uint64_t number)
{
	const struct record_kind *kind = &record_kinds[rec->kind];

	json_object_begin(json);
	json_field_u64(json, "record", number);
	json_field_string(json, "kind", kind->name);
	json_field_u64(json, "ts", rec->ts);
	json_field_u64(json, "cpu", rec->cpu);
	json_field_u64(json, "tid", model_pid_real(model, rec->tid));
	if (model->host_count > 1)
		json_field_string(json, "host",
				  model->hosts[model_host_of_cpu(model, rec->cpu)]->name);
	for (unsigned i = 0; i < kind->field_count; i++)
		if (kind->fields[i].exported)
			write_field(json, model, &kind->fields[i],
				    (const char *)rec + kind->fields[i].offset);
	json_object_end(json);
	json_line(json);
}

/* A line about the capture as a whole, which corresponds to no record. */
static void write_simulated(struct json *json, const struct model *model)
{
	if (!model_simulated(model))
		return;
	json_object_begin(json);
	json_field_string(json, "kind", "capture");
	summary_json_simulated(json, model);
	json_object_end(json);
	json_line(json);
}

/* The time window that the model was made of. */
static struct store_window window_of(const struct model *model)
{
	struct store_window window = STORE_ALL;

	if (model->start_ts > model->meta->start_ts)
		window.from_ts = model->start_ts;
	if (model->end_ts < model->meta->end_ts)
		window.to_ts = model->end_ts;
	return window;
}

int records_write(const struct model *model, FILE *out, struct error *err)
{
	struct json *json = json_new(out, false);
	const struct waffle_rec *rec;
	int result, closed;

	if (!json)
		return error_set(err, ENOMEM, "records: out of memory");
	write_simulated(json, model);
	result = store_reader_seek(model->reader, window_of(model), err);
	while (!result && (result = store_reader_next(model->reader, &rec, err)) > 0) {
		uint64_t number = store_reader_number(model->reader);

		/* A window begins with copies of earlier records, which have no number. */
		if (number)
			write_record(json, model, rec, number);
		result = 0;
	}
	closed = json_close(json);
	if (!result && closed < 0)
		result = error_set(err, -closed, "records: %s", strerror(-closed));
	return result;
}
