// SPDX-License-Identifier: Apache-2.0
/* metrics(): counts records, and makes histograms of their durations and values. */
#include <stdio.h>

#include "export/process/file_name_internal.h"
#include "export/process/file_sender_internal.h"
#include "export/process/metrics_protobuf_internal.h"
#include "export/process/metrics_text.h"
#include "export/process/processors_internal.h"
#include "util/clock.h"

struct metrics_config {
	const char *histogram, *by, *file, *protobuf;
	unsigned format;
	uint64_t every_ns, limit;
};

struct metrics_state {
	struct series_table table;
	struct sender *text, *protobuf; /* NULL: no such file */
	bool exported;                  /* an exporter follows */
	uint64_t written_ns;            /* CLOCK_MONOTONIC */
	uint64_t last_unix_ns;          /* of the records */
};

static const char *const formats[] = {
	[METRICS_OPENMETRICS] = "openmetrics", [METRICS_PROMETHEUS] = "prometheus", NULL};

static const struct processor_option options[] = {
	{"histogram", "dur+kv.KEY",
	 "Also count the durations of spans, or the values of a key, in exponential histograms "
	 "with "
	 "exemplars. Default: only records are counted.",
	 .type = PROCESSOR_TEXT, .at = offsetof(struct metrics_config, histogram)},
	{"by", "kv.KEY+FIELD",
	 "Besides kind and name, tell records apart by keys and by category, severity, comm, pid, "
	 "tid, func or file.",
	 .type = PROCESSOR_TEXT, .at = offsetof(struct metrics_config, by)},
	{"limit", "10 to 100000",
	 "Combinations of names and values; all others share one series. Default: 1000.",
	 .type = PROCESSOR_NUMBER, .min = 10, .max = 100000, .value = 1000,
	 .at = offsetof(struct metrics_config, limit)},
	{"file", "PATH",
	 "Replace this file as a whole, such as for node_exporter; %p is the pid. Default: none, "
	 "the "
	 "metrics go to the exporters that follow.",
	 .type = PROCESSOR_TEXT, .replaces = true, .at = offsetof(struct metrics_config, file)},
	{"format", "openmetrics or prometheus",
	 "The text in the file. The older format of Prometheus has no exemplars. Default: "
	 "openmetrics.",
	 .type = PROCESSOR_CHOICE, .choices = formats,
	 .at = offsetof(struct metrics_config, format)},
	{"protobuf", "PATH",
	 "Also replace this file by the metrics in Prometheus' protobuf, with native histograms, "
	 "for "
	 "what answers its scrapes. Default: none.",
	 .type = PROCESSOR_TEXT, .replaces = true, .at = offsetof(struct metrics_config, protobuf)},
	{"every", "1s to 1h", "How often to write and export. Default: 10s.",
	 .type = PROCESSOR_TIME, .min = 1000000000ull, .max = 3600000000000ull,
	 .value = 10000000000ull, .at = offsetof(struct metrics_config, every_ns)},
};

/* `file` NULL: there is none. */
static int file_open(struct processor *processor, struct sender **sender, const char *file,
		     struct error *err)
{
	char path[PATH_MAX], name[128];
	int result = file ? file_name_expand(path, file, processor->host, err) : 0;

	snprintf(name, sizeof(name), "%s: metrics()", processor->host->origin);
	if (!file || result)
		return result;
	return file_sender_replace(sender, name, path, processor->host, err);
}

static int metrics_open(struct processor *processor, struct error *err)
{
	const struct metrics_config *config = processor->config;
	struct metrics_state *state = processor->state;
	struct series_table *table = &state->table;
	const char *origin = processor->host->origin;
	int result;

	table->limit = config->limit;
	table->start_unix_ns = clock_monotonic_ns() + (uint64_t)processor->host->unix_offset_ns;
	state->written_ns = clock_monotonic_ns();
	for (struct processor *next = processor->next; next; next = next->next) {
		state->exported = state->exported || next->type->metrics;
		next->counted = true;
	}
	result = series_choices_parse(table->labels, &table->label_count, SERIES_LABELS_MAX, false,
				      origin, config->by, err)
			 ?: series_choices_parse(table->histograms, &table->histogram_count,
						 SERIES_HISTOGRAMS_MAX, true, origin,
						 config->histogram, err);
	if (!result && !config->file && !config->protobuf && !state->exported)
		result = error_set(
			err, EINVAL,
			"%s: metrics() leads nowhere: write metrics(file=PATH), or behind "
			"it export(otlp=URL) or export(prometheus=URL)",
			origin);
	return result ?: file_open(processor, &state->text, config->file, err)
			 ?: file_open(processor, &state->protobuf, config->protobuf, err);
}

static void metrics_records(struct processor *processor, struct full_record *const *records,
			    size_t count)
{
	struct metrics_state *state = processor->state;

	for (size_t i = 0; i < count; i++) {
		const struct waffle_record *record = &records[i]->record;
		uint64_t unix_ns = record->end_ns + (uint64_t)record->unix_offset_ns;

		series_take(&state->table, records[i]);
		if (unix_ns > state->last_unix_ns)
			state->last_unix_ns = unix_ns;
		/* Those of a file began before it was read. */
		unix_ns = record->start_ns + (uint64_t)record->unix_offset_ns;
		if (processor->host->finished && unix_ns < state->table.start_unix_ns)
			state->table.start_unix_ns = unix_ns;
	}
	processor_pass(processor, records, count);
}

/* Replaces a file, and frees `contents`. */
static void file_give(struct sender *sender, struct out_bytes *contents)
{
	sender_push(sender,
		    contents->failed ? NULL : parcel_new(0, 0, contents->data, contents->len), 0);
	bytes_free(contents);
}

static void snapshot_give(struct processor *processor)
{
	const struct metrics_config *config = processor->config;
	struct metrics_state *state = processor->state;
	uint64_t now = clock_monotonic_ns() + (uint64_t)processor->host->unix_offset_ns;
	struct metrics_snapshot snapshot = {&state->table,
					    processor->host->finished ? state->last_unix_ns : now};
	struct out_bytes text = {0}, protobuf = {0};

	state->written_ns = clock_monotonic_ns();
	if (state->exported)
		processor_pass_metrics(processor, &snapshot);
	if (state->text) {
		metrics_text(&text, &snapshot, config->format);
		file_give(state->text, &text);
	}
	if (state->protobuf) {
		metrics_protobuf(&protobuf, &snapshot);
		file_give(state->protobuf, &protobuf);
	}
}

static void metrics_tick(struct processor *processor, uint64_t now_ns)
{
	const struct metrics_config *config = processor->config;
	const struct metrics_state *state = processor->state;

	if (now_ns - state->written_ns >= config->every_ns)
		snapshot_give(processor);
}

static void metrics_end(struct processor *processor)
{
	snapshot_give(processor);
}

static void metrics_drain(struct processor *processor, uint64_t until_ns)
{
	struct metrics_state *state = processor->state;

	if (state->text)
		sender_drain(state->text, until_ns);
	if (state->protobuf)
		sender_drain(state->protobuf, until_ns);
}

static void file_close(struct processor *processor, struct sender *sender, uint64_t until_ns)
{
	struct sender_counts counts;

	if (!sender)
		return;
	counts = sender_close(sender, until_ns);
	*processor->lossy = *processor->lossy || counts.dropped || counts.refused;
}

static void metrics_close(struct processor *processor, uint64_t until_ns)
{
	struct metrics_state *state = processor->state;

	file_close(processor, state->text, until_ns);
	file_close(processor, state->protobuf, until_ns);
	series_free(&state->table);
}

const struct processor_type processor_metrics = {
	.name = "metrics",
	.help = "Counts records by kind and name, keeps the last value of counters, and passes all "
		"on.",
	.example = "metrics(histogram=dur,by=kv.status,file=app-%p.prom)",
	.options = options,
	.option_count = sizeof(options) / sizeof(options[0]),
	.config_bytes = sizeof(struct metrics_config),
	.state_bytes = sizeof(struct metrics_state),
	.open = metrics_open,
	.records = metrics_records,
	.tick = metrics_tick,
	.save = metrics_end,
	.drain = metrics_drain,
	.end = metrics_end,
	.close = metrics_close,
};
