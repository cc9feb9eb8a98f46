// SPDX-License-Identifier: Apache-2.0
/*
 * A capture as metrics in the text of OpenMetrics 1.0. First come those of the processor metrics(),
 * by the same code; then what only a finished capture knows. All are totals of the capture, without
 * times of their own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "export/backend/causes.h"
#include "export/backend/prometheus_internal.h"
#include "export/backend/records_internal.h"
#include "export/formats.h"
#include "export/process/metrics_text.h"
#include "export/process/remote_write.h"
#include "util/clock.h"
#include "util/memory.h"

/* As the processor's default. */
#define SERIES_MAX 1000
#define LABELS_MAX 4

/* ---- sums by labels ---- */

struct sum {
	const char *labels; /* names and values with a NUL behind each; the key in `index` */
	size_t bytes;
	double value;
};

struct sums {
	struct keymap index;
	VEC(struct sum) list;
	struct out_bytes labels; /* of the next sum_add() */
};

/* Where a family goes: one of both. */
struct family_out {
	struct out_bytes *text;
	struct remote_write *write;
};

static void sum_label(struct sums *sums, const char *name, const char *value)
{
	bytes_add(&sums->labels, name, strlen(name) + 1);
	bytes_add(&sums->labels, value, strlen(value) + 1);
}

static void sum_add(struct sums *sums, double value)
{
	uint32_t index;

	memory_require(!sums->labels.failed);
	index = keymap_get(&sums->index, sums->labels.data, sums->labels.len);
	if (index == MAP_NONE) {
		struct sum sum = {NULL, sums->labels.len, 0};

		index = (uint32_t)sums->list.len;
		keymap_put(&sums->index, sums->labels.data, sums->labels.len, index);
		vec_add(&sums->list, sum);
	}
	sums->list.data[index].value += value;
	bytes_clear(&sums->labels);
}

/* The labels of a sum. Returns how many there are. */
static size_t sum_labels(const struct sum *sum, struct remote_label labels[LABELS_MAX])
{
	const char *at = sum->labels, *end = at + sum->bytes;
	size_t count = 0;

	while (at < end && count < LABELS_MAX) {
		const char *value = at + strlen(at) + 1;

		labels[count++] = (struct remote_label){at, value};
		at = value + strlen(value) + 1;
	}
	return count;
}

static void sum_write(const struct family_out *out, const char *name, const struct sum *sum)
{
	struct remote_label labels[LABELS_MAX];
	size_t count = sum_labels(sum, labels);
	char metric[64];

	if (out->write) {
		snprintf(metric, sizeof(metric), "%s_total", name);
		remote_write_value(out->write, metric, labels, count, sum->value);
		return;
	}
	bytes_print(out->text, "%s_total{", name);
	for (size_t i = 0; i < count; i++)
		metrics_text_label(out->text, i ? "," : "", labels[i].name, labels[i].value);
	bytes_text(out->text, "} ");
	bytes_f64(out->text, sum->value);
	bytes_char(out->text, '\n');
}

/* Writes a family of counters, and frees the sums. */
static void sums_write(const struct family_out *out, const char *name, const char *unit,
		       const char *help, struct sums *sums)
{
	if (sums->list.len && out->text) {
		bytes_print(out->text, "# TYPE %s counter\n", name);
		if (unit)
			bytes_print(out->text, "# UNIT %s %s\n", name, unit);
		bytes_print(out->text, "# HELP %s %s\n", name, help);
	}
	for (size_t i = 0; i < sums->list.len; i++) {
		sums->list.data[i].labels = sums->index.entries.data[i].key;
		sum_write(out, name, &sums->list.data[i]);
	}
	vec_free(&sums->list);
	keymap_free(&sums->index);
	bytes_free(&sums->labels);
	*sums = (struct sums){0};
}

/* ---- families ---- */

static int instance_add(const struct why *why, const struct why_instance *instance, void *arg)
{
	const struct model_span *span = &why->model->spans.data[instance->span];
	struct sums *sums = arg;

	for (uint32_t i = 0; i < instance->part_count; i++) {
		const struct why_part *part = &why->parts.data[instance->part + i];

		sum_label(sums, "name", model_site(why->model, span->site)->name);
		sum_label(sums, "cause", why_causes[part->cause].name);
		sum_label(sums, "grade", why_grade_names[part->grade]);
		sum_add(sums, (double)part->ns / 1e9);
	}
	return 0;
}

static int causes_write(const struct family_out *out, const struct model *model, struct error *err)
{
	struct sums sums = {0};
	struct why *why = NULL;
	int result = 0;

	if (model->sched && model->spans.len)
		result = span_causes_each(&why, model, instance_add, &sums, err);
	if (result >= 0)
		why_free(why);
	sums_write(out, "waffle_cause_seconds", "seconds", "Time of spans by what it was spent on.",
		   &sums);
	return result < 0 ? result : 0;
}

static void threads_write(const struct family_out *out, const struct model *model)
{
	struct sums sums = {0};

	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		const struct {
			const char *state;
			uint64_t ns;
		} times[] = {{"running", thread->running_ns},
			     {"runnable", thread->runnable_ns},
			     {"blocked", thread->blocked_ns}};

		for (size_t j = 0; thread->traced && thread->has_sched && j < 3; j++) {
			sum_label(&sums, "comm", model_thread_name(model, i));
			sum_label(&sums, "state", times[j].state);
			sum_add(&sums, (double)times[j].ns / 1e9);
		}
	}
	sums_write(out, "waffle_thread_seconds", "seconds", "Time of threads by their state.",
		   &sums);
}

static void ranks_write(const struct family_out *out, const struct model *model, bool seconds)
{
	struct sums sums = {0};

	for (size_t i = 0; i < model->spans.len; i++) {
		const struct model_span *span = &model->spans.data[i];
		const struct model_process *process = model_process_of(model, span->thread);
		char rank[16];

		if (!process || process->rank == MODEL_NONE || span->flags & MODEL_SPAN_CUT)
			continue;
		snprintf(rank, sizeof(rank), "%u", process->rank);
		sum_label(&sums, "name", model_site(model, span->site)->name);
		sum_label(&sums, "rank", rank);
		sum_add(&sums, seconds ? (double)(span->end_ts - span->start_ts) / 1e9 : 1);
	}
	if (seconds)
		sums_write(out, "waffle_rank_span_seconds", "seconds",
			   "Durations of the whole spans of a rank.", &sums);
	else
		sums_write(out, "waffle_rank_spans", NULL, "Whole spans of a rank.", &sums);
}

static void losses_write(const struct family_out *out, const struct model *model)
{
	struct sums sums = {0};

	for (uint32_t i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		sum_label(&sums, "source", record_source_name(i));
		sum_add(&sums, (double)model->sources[i].lost);
	}
	sums_write(out, "waffle_lost_records", NULL, "Records that the capture lost.", &sums);
}

/* ---- the metrics that processors have, too ---- */

struct spans_taking {
	struct series_table *table;
	const struct model *model;
	struct pending_events pending;
	size_t span; /* the next one */
	uint64_t *last_unix_ns;
};

static int spans_take(struct full_record *const *list, size_t count, void *arg)
{
	struct spans_taking *taking = arg;

	for (size_t i = 0; i < count; i++) {
		struct waffle_record *record = &list[i]->record;
		uint64_t unix_ns = record->end_ns + (uint64_t)record->unix_offset_ns;

		if (record->kind != WAFFLE_RECORD_SPAN)
			continue;
		/* Its duration is as unknown as that of one without an end. */
		if (taking->model->spans.data[taking->span++].flags & MODEL_SPAN_CUT)
			record->flags |= WAFFLE_RECORD_UNFINISHED;
		series_take(taking->table, list[i]);
		if (unix_ns > *taking->last_unix_ns)
			*taking->last_unix_ns = unix_ns;
	}
	pending_events_clear(&taking->pending);
	return 0;
}

static int series_fill(struct series_table *table, const struct model *model,
		       uint64_t *last_unix_ns, struct error *err)
{
	struct model_records *records = model_records_open(model);
	struct spans_taking taking = {.table = table, .model = model, .last_unix_ns = last_unix_ns};
	int result;

	table->limit = SERIES_MAX;
	table->simulated = model_simulated(model);
	table->start_unix_ns = model->start_ts + (model->meta->real_ns - model->meta->start_ts);
	series_choices_parse(table->histograms, &table->histogram_count, SERIES_HISTOGRAMS_MAX,
			     true, "prometheus", "dur", err);
	result = model_records_each(records, false, &taking.pending, spans_take, &taking, err);
	for (uint32_t i = 0; i < model->events.len; i++)
		series_take(table, model_records_event(records, i));
	model_records_close(records);
	return result;
}

/* What only a finished capture knows. */
static int families_write(const struct family_out *out, const struct model *model,
			  struct error *err)
{
	int result = causes_write(out, model, err);

	threads_write(out, model);
	ranks_write(out, model, true);
	ranks_write(out, model, false);
	losses_write(out, model);
	return result;
}

int prometheus_write(const struct model *model, FILE *file, struct error *err)
{
	struct series_table table = {0};
	struct metrics_snapshot snapshot = {&table, 0};
	struct out_bytes text = {0};
	const struct family_out out = {.text = &text};
	int result = series_fill(&table, model, &snapshot.unix_ns, err);

	if (!result) {
		metrics_text_families(&text, &snapshot, METRICS_OPENMETRICS);
		result = families_write(&out, model, err);
		bytes_text(&text, "# EOF\n");
		memory_require(!text.failed);
	}
	if (!result)
		fwrite(text.data, 1, text.len, file);
	bytes_free(&text);
	series_free(&table);
	return result;
}

int prometheus_request(const struct model *model, const char *service, struct out_bytes *request,
		       uint32_t *series, struct error *err)
{
	struct series_table table = {0};
	struct metrics_snapshot snapshot = {&table, 0};
	struct remote_write write;
	const struct family_out out = {.write = &write};
	int result = series_fill(&table, model, &snapshot.unix_ns, err);

	if (!result) {
		/* Receivers take nothing that is older than an hour or so. */
		remote_write_begin(&write, service, model->hosts[0]->name,
				   clock_ns(CLOCK_REALTIME));
		remote_write_snapshot(&write, &snapshot);
		result = families_write(&out, model, err);
		*series = remote_write_end(&write, request);
		memory_require(!request->failed);
	}
	series_free(&table);
	return result;
}
