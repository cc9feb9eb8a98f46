// SPDX-License-Identifier: Apache-2.0
/*
 * Any records (records.h) through the parts of a chain of processors: they are joined, written as
 * JSON, counted, and made into requests. No record is delivered twice, spans end after they begin,
 * and all text is valid.
 */
#include "export/process/metrics_text.h"
#include "export/process/otlp_traces.h"
#include "export/process/record_json_internal.h"
#include "records.h"
#include "util/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sinks {
	struct joiner *joiner;
	struct pending_events pending;
	struct series_table table;
	uint64_t delivered;
};

static void check_text(const struct out_bytes *out)
{
	require(!out->failed && utf8_valid(out->data, out->len) == out->len);
}

static void check_requests(struct sinks *sinks, struct full_record *full)
{
	struct otlp_source source = {
		.service = "fuzz", .joiner = sinks->joiner, .pending = &sinks->pending};
	struct out_bytes out = {0};

	otlp_traces(&out, false, &source, &full, 1);
	bytes_clear(&out);
	if (otlp_traces(&out, true, &source, &full, 1))
		check_text(&out);
	bytes_free(&out);
}

static void deliver(struct full_record *full, void *arg)
{
	struct sinks *sinks = arg;
	struct full_record_values room;
	struct out_bytes line = {0};
	struct filter_subject subject = full_record_subject(full);
	struct full_record *copy = full_record_copy(full);

	require(full->record.end_ns >= full->record.start_ns && subject.site);
	joiner_decode(sinks->joiner, full, &room);
	record_json(&line, full, &(struct record_json_time){0});
	check_text(&line);
	require(line.data[line.len - 1] == '\n' && !memchr(line.data, '\n', line.len - 1));
	bytes_free(&line);
	series_take(&sinks->table, full);
	if (full->record.parent && full->record.kind == WAFFLE_RECORD_EVENT)
		pending_events_add(&sinks->pending, full, sinks->delivered);
	else
		check_requests(sinks, copy);
	free(copy);
	sinks->delivered++;
}

static void check_metrics(struct sinks *sinks)
{
	struct metrics_snapshot snapshot = {&sinks->table, 1};
	struct out_bytes out = {0};

	metrics_text(&out, &snapshot, METRICS_OPENMETRICS);
	check_text(&out);
	bytes_clear(&out);
	otlp_metrics(&out, true, "fuzz", 1, &snapshot);
	check_text(&out);
	bytes_clear(&out);
	otlp_metrics(&out, false, "fuzz", 1, &snapshot);
	bytes_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store_reader *reader = size ? records_reader(data + 1, size - 1, true) : NULL;
	struct sinks sinks = {.table.limit = 5};
	struct error err = ERROR_INIT;
	const struct waffle_rec *rec;

	if (!reader)
		return 0;
	sinks.joiner = joiner_new(data[0] * 16u, deliver, &sinks);
	require(sinks.joiner &&
		!series_choices_parse(sinks.table.labels, &sinks.table.label_count,
				      SERIES_LABELS_MAX, false, "", "kv.text+comm+tid", &err) &&
		!series_choices_parse(sinks.table.histograms, &sinks.table.histogram_count,
				      SERIES_HISTOGRAMS_MAX, true, "", "dur+kv.count", &err));
	if (!store_reader_seek(reader, STORE_ALL, &err))
		while (store_reader_next(reader, &rec, &err) > 0)
			joiner_record(sinks.joiner, rec,
				      rec->kind == WAFFLE_REC_HIT
					      ? store_reader_site(
							reader,
							((const struct waffle_rec_hit *)rec)->site)
					      : NULL);
	joiner_finish(sinks.joiner, 1);
	require(joiner_counts(sinks.joiner).delivered == sinks.delivered);
	check_metrics(&sinks);
	pending_events_clear(&sinks.pending);
	series_free(&sinks.table);
	joiner_free(sinks.joiner);
	store_reader_close(reader);
	return 0;
}
