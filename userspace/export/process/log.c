// SPDX-License-Identifier: Apache-2.0
/* log(): one line of JSON for each record. */
#include <stdio.h>

#include "export/process/file_name_internal.h"
#include "export/process/file_sender_internal.h"
#include "export/process/joiner_internal.h"
#include "export/process/processors_internal.h"
#include "export/process/record_json_internal.h"
#include "util/clock.h"

/* Lines are written in groups of this size, or once a second. */
#define LOG_BYTES (64u << 10)
/* How long a flush waits for the file. */
#define FLUSH_NS 50000000ull

struct log_config {
	unsigned format;
	const char *file;
};

struct log_state {
	struct sender *sender;
	struct out_bytes lines;
	uint32_t records; /* in them */
	bool stuck;       /* the file accepted nothing during the last flush */
	struct record_json_time time;
	struct full_record_values room;
};

static const char *const formats[] = {"json", NULL};

static const struct processor_option options[] = {
	{"format", "json", "JSON lines with the keys of docs/ndjson.md, and the time of day.",
	 .type = PROCESSOR_CHOICE, .first = true, .choices = formats,
	 .at = offsetof(struct log_config, format)},
	{"file", "PATH", "Append to this file; %p is the pid. Default: standard error.",
	 .type = PROCESSOR_TEXT, .at = offsetof(struct log_config, file)},
};

static int log_open(struct processor *processor, struct error *err)
{
	const struct log_config *config = processor->config;
	struct log_state *state = processor->state;
	char path[PATH_MAX], name[128];
	int result;

	snprintf(name, sizeof(name), "%s: log()", processor->host->origin);
	if (!config->file)
		return file_sender_append(&state->sender, name, NULL, processor->host, err);
	result = file_name_expand(path, config->file, processor->host, err);
	return result ?: file_sender_append(&state->sender, name, path, processor->host, err);
}

static void lines_send(struct log_state *state)
{
	struct parcel *parcel;

	if (!state->records)
		return;
	parcel = state->lines.failed
			 ? NULL
			 : parcel_new(0, state->records, state->lines.data, state->lines.len);
	sender_push(state->sender, parcel, state->records);
	bytes_clear(&state->lines);
	state->records = 0;
}

static void log_records(struct processor *processor, struct full_record *const *records,
			size_t count)
{
	struct log_state *state = processor->state;

	for (size_t i = 0; i < count; i++) {
		joiner_decode(processor->joiner, records[i], &state->room);
		record_json(&state->lines, records[i], &state->time);
		state->records++;
		if (state->lines.len >= LOG_BYTES || state->lines.failed)
			lines_send(state);
	}
	processor_pass(processor, records, count);
}

static void log_tick(struct processor *processor, uint64_t now_ns)
{
	(void)now_ns;
	lines_send(processor->state);
}

static void log_flush(struct processor *processor)
{
	struct log_state *state = processor->state;

	lines_send(state);
	state->stuck =
		!sender_drain(state->sender, state->stuck ? 0 : clock_monotonic_ns() + FLUSH_NS);
}

static void log_close(struct processor *processor, uint64_t until_ns)
{
	struct log_state *state = processor->state;
	struct sender_counts counts;

	if (state->sender) {
		lines_send(state);
		counts = sender_close(state->sender, until_ns);
		*processor->lossy = *processor->lossy || counts.dropped || counts.refused;
	}
	bytes_free(&state->lines);
}

const struct processor_type processor_log = {
	.name = "log",
	.help = "Writes a line for each record, and passes all on.",
	.example = "log(json,file=app-%p.log)",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.config_bytes = sizeof(struct log_config),
	.state_bytes = sizeof(struct log_state),
	.open = log_open,
	.records = log_records,
	.tick = log_tick,
	.flush = log_flush,
	.close = log_close,
};
