// SPDX-License-Identifier: Apache-2.0
/*
 * The unprocessed records of a file, one JSON object a line, each with its number as in `why
 * --evidence`. bpf/record.h explains the fields, which have the same names there. For a simulated
 * capture, {"kind": "capture", "simulated": true} comes first.
 */
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "export/formats.h"
#include "export/summary_json.h"
#include "store/record.h"
#include "util/json.h"

enum field_form {
	FIELD_NUMBER,
	FIELD_SIGNED,
	FIELD_HEX, /* "0x7f01": JavaScript's numbers can't represent all of them */
	FIELD_ID,  /* sixteen digits, like ids everywhere */
	FIELD_TEXT,
};

struct field {
	uint16_t kind; /* enum waffle_rec_kind */
	uint16_t offset;
	uint8_t bytes;
	uint8_t form;
	const char *name;
};

#define FIELD(kind, type, member, form)                                                            \
	{                                                                                          \
		kind, offsetof(struct type, member), sizeof(((struct type *)0)->member), form,     \
			#member                                                                    \
	}

static const struct field fields[] = {
	FIELD(WAFFLE_REC_HIT, waffle_rec_hit, tgid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_HIT, waffle_rec_hit, site, FIELD_NUMBER),
	FIELD(WAFFLE_REC_HIT, waffle_rec_hit, frame_bytes, FIELD_NUMBER),
	FIELD(WAFFLE_REC_SPAN_END, waffle_rec_span_end, span_id, FIELD_ID),
	FIELD(WAFFLE_REC_SPAN_END, waffle_rec_span_end, tgid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_SPAN_END, waffle_rec_span_end, site, FIELD_NUMBER),
	FIELD(WAFFLE_REC_RETURN, waffle_rec_return, span_id, FIELD_ID),
	FIELD(WAFFLE_REC_RETURN, waffle_rec_return, tgid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_RETURN, waffle_rec_return, site, FIELD_NUMBER),
	FIELD(WAFFLE_REC_RETURN, waffle_rec_return, frame_bytes, FIELD_NUMBER),
	FIELD(WAFFLE_REC_RETURN, waffle_rec_return, flags, FIELD_NUMBER),
	FIELD(WAFFLE_REC_STACK, waffle_rec_stack, id, FIELD_ID),
	FIELD(WAFFLE_REC_STACK, waffle_rec_stack, kernel_stack, FIELD_NUMBER),
	FIELD(WAFFLE_REC_STACK, waffle_rec_stack, user_stack, FIELD_NUMBER),
	FIELD(WAFFLE_REC_STACK, waffle_rec_stack, python_stack, FIELD_NUMBER),
	FIELD(WAFFLE_REC_SWITCH, waffle_rec_switch, next_tid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_SWITCH, waffle_rec_switch, waker_tid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_SWITCH, waffle_rec_switch, wake_ts, FIELD_NUMBER),
	FIELD(WAFFLE_REC_SWITCH, waffle_rec_switch, prev_state, FIELD_NUMBER),
	FIELD(WAFFLE_REC_SWITCH, waffle_rec_switch, flags, FIELD_NUMBER),
	FIELD(WAFFLE_REC_SWITCH, waffle_rec_switch, syscall, FIELD_SIGNED),
	FIELD(WAFFLE_REC_TASK, waffle_rec_task, tgid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_TASK, waffle_rec_task, flags, FIELD_NUMBER),
	FIELD(WAFFLE_REC_TASK, waffle_rec_task, comm, FIELD_TEXT),
	FIELD(WAFFLE_REC_STATE, waffle_rec_state, tgid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_STATE, waffle_rec_state, state, FIELD_NUMBER),
	FIELD(WAFFLE_REC_STATE, waffle_rec_state, task_state, FIELD_NUMBER),
	FIELD(WAFFLE_REC_STATE, waffle_rec_state, syscall, FIELD_SIGNED),
	FIELD(WAFFLE_REC_STATE, waffle_rec_state, at_end, FIELD_NUMBER),
	FIELD(WAFFLE_REC_FORK, waffle_rec_fork, tgid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_FORK, waffle_rec_fork, child_tgid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_EXEC, waffle_rec_exit, tgid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_EXIT, waffle_rec_exit, tgid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_EXIT, waffle_rec_exit, code, FIELD_SIGNED),
	FIELD(WAFFLE_REC_LOSS, waffle_rec_loss, source, FIELD_NUMBER),
	FIELD(WAFFLE_REC_LOSS, waffle_rec_loss, from_ts, FIELD_NUMBER),
	FIELD(WAFFLE_REC_LOSS, waffle_rec_loss, count, FIELD_NUMBER),
	FIELD(WAFFLE_REC_WAIT, waffle_rec_wait, from_ts, FIELD_NUMBER),
	FIELD(WAFFLE_REC_WAIT, waffle_rec_wait, kernel_stack, FIELD_NUMBER),
	FIELD(WAFFLE_REC_WAIT, waffle_rec_wait, user_stack, FIELD_NUMBER),
	FIELD(WAFFLE_REC_WAIT, waffle_rec_wait, object, FIELD_NUMBER),
	FIELD(WAFFLE_REC_WAIT, waffle_rec_wait, ino, FIELD_NUMBER),
	FIELD(WAFFLE_REC_WAIT, waffle_rec_wait, address, FIELD_HEX),
	FIELD(WAFFLE_REC_WAKE, waffle_rec_wake, woken_tid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_WAKE, waffle_rec_wake, flags, FIELD_NUMBER),
	FIELD(WAFFLE_REC_WAKE, waffle_rec_wake, kernel_stack, FIELD_NUMBER),
	FIELD(WAFFLE_REC_WAKE, waffle_rec_wake, user_stack, FIELD_NUMBER),
	FIELD(WAFFLE_REC_FAULT, waffle_rec_fault, from_ts, FIELD_NUMBER),
	FIELD(WAFFLE_REC_FAULT, waffle_rec_fault, total_ns, FIELD_NUMBER),
	FIELD(WAFFLE_REC_FAULT, waffle_rec_fault, address, FIELD_HEX),
	FIELD(WAFFLE_REC_FAULT, waffle_rec_fault, ip, FIELD_HEX),
	FIELD(WAFFLE_REC_FAULT, waffle_rec_fault, count, FIELD_NUMBER),
	FIELD(WAFFLE_REC_FAULT, waffle_rec_fault, flags, FIELD_NUMBER),
	FIELD(WAFFLE_REC_IO, waffle_rec_io, issue_ts, FIELD_NUMBER),
	FIELD(WAFFLE_REC_IO, waffle_rec_io, sector, FIELD_NUMBER),
	FIELD(WAFFLE_REC_IO, waffle_rec_io, bytes, FIELD_NUMBER),
	FIELD(WAFFLE_REC_IO, waffle_rec_io, dev, FIELD_NUMBER),
	FIELD(WAFFLE_REC_IO, waffle_rec_io, flags, FIELD_NUMBER),
	FIELD(WAFFLE_REC_IO, waffle_rec_io, error, FIELD_SIGNED),
	FIELD(WAFFLE_REC_SIGNAL, waffle_rec_signal, target_tid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_SIGNAL, waffle_rec_signal, target_tgid, FIELD_NUMBER),
	FIELD(WAFFLE_REC_SIGNAL, waffle_rec_signal, signo, FIELD_SIGNED),
	FIELD(WAFFLE_REC_SIGNAL, waffle_rec_signal, code, FIELD_SIGNED),
	FIELD(WAFFLE_REC_QUOTA, waffle_rec_quota, throttled_ns, FIELD_NUMBER),
	FIELD(WAFFLE_REC_QUOTA, waffle_rec_quota, cgroup, FIELD_NUMBER),
	FIELD(WAFFLE_REC_QUOTA, waffle_rec_quota, quota_ns, FIELD_NUMBER),
	FIELD(WAFFLE_REC_QUOTA, waffle_rec_quota, period_ns, FIELD_NUMBER),
	FIELD(WAFFLE_REC_STOLEN, waffle_rec_stolen, from_ts, FIELD_NUMBER),
	FIELD(WAFFLE_REC_STOLEN, waffle_rec_stolen, stolen_ns, FIELD_NUMBER),
	FIELD(WAFFLE_REC_FREQUENCY, waffle_rec_frequency, khz, FIELD_NUMBER),
	FIELD(WAFFLE_REC_FREQUENCY, waffle_rec_frequency, max_khz, FIELD_NUMBER),
	FIELD(WAFFLE_REC_FREQUENCY, waffle_rec_frequency, flags, FIELD_NUMBER),
};

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

static void write_field(struct json *json, const struct field *field, const void *at)
{
	char text[24];

	switch (field->form) {
	case FIELD_SIGNED:
		json_field_i64(json, field->name, *(const int32_t *)at);
		break;
	case FIELD_HEX:
		snprintf(text, sizeof(text), "0x%" PRIx64, unsigned_at(at, field->bytes));
		json_field_string(json, field->name, text);
		break;
	case FIELD_ID:
		json_field_hex64(json, field->name, unsigned_at(at, field->bytes));
		break;
	case FIELD_TEXT:
		json_key(json, field->name);
		json_string_len(json, at, strnlen(at, field->bytes));
		break;
	default:
		json_field_u64(json, field->name, unsigned_at(at, field->bytes));
	}
}

static void write_record(struct json *json, const struct waffle_rec *rec, uint64_t number)
{
	json_object_begin(json);
	json_field_u64(json, "record", number);
	json_field_string(json, "kind", record_kind_name(rec->kind));
	json_field_u64(json, "ts", rec->ts);
	json_field_u64(json, "cpu", rec->cpu);
	json_field_u64(json, "tid", rec->tid);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].kind == rec->kind)
			write_field(json, &fields[i], (const char *)rec + fields[i].offset);
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
			write_record(json, rec, number);
		result = 0;
	}
	closed = json_close(json);
	if (!result && closed < 0)
		result = error_set(err, -closed, "records: %s", strerror(-closed));
	return result;
}
