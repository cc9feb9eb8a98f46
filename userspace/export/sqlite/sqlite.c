// SPDX-License-Identifier: Apache-2.0
/* A capture as a database of SQLite. The rows of spans, events, threads and processes have the
 * indexes that the model gives them. docs/sqlite.md is the guide. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/backend/causes.h"
#include "export/formats.h"
#include "export/sqlite/database_internal.h"
#include "export/sqlite/rows_internal.h"
#include "export/sqlite/schema_internal.h"

static void setting(struct database_rows *rows, const char *key, const char *text)
{
	database_put_text(rows, key);
	database_put_text(rows, text);
	database_row_end(rows);
}

static void number(struct database_rows *rows, const char *key, uint64_t value)
{
	database_put_text(rows, key);
	database_put_int(rows, (int64_t)value);
	database_row_end(rows);
}

static int capture_rows(struct database *database, const struct model *model, struct error *err)
{
	const struct store_meta *meta = model->meta;
	struct database_rows rows;

	if (database_rows_begin(&rows, database, "capture", 2, err))
		return -EIO;
	setting(&rows, "command", meta->command);
	setting(&rows, "host", meta->hostname);
	setting(&rows, "kernel", meta->kernel);
	setting(&rows, "machine", meta->machine);
	setting(&rows, "waffle_version", meta->version);
	setting(&rows, "filter", model->filtered.expression ? model->filtered.expression : "");
	number(&rows, "start_ns", model->start_ts);
	number(&rows, "end_ns", model->end_ts);
	number(&rows, "unix_offset_ns", meta->real_ns - meta->start_ts);
	number(&rows, "records_lost", model->counts.lost);
	if (model_simulated(model))
		number(&rows, "simulated", 1);
	return database_rows_end(&rows, err);
}

static int loss_rows(struct database *database, const struct model *model, struct error *err)
{
	struct database_rows rows;

	if (database_rows_begin(&rows, database, "loss", 5, err))
		return -EIO;
	for (size_t i = 0; i < model->losses.len; i++) {
		const struct model_loss *loss = &model->losses.data[i];

		database_put_int(&rows, (int64_t)loss->from_ts);
		database_put_int(&rows, (int64_t)loss->to_ts);
		database_put_text(&rows, record_source_name(loss->source));
		database_put_int(&rows, loss->cpu);
		database_put_int(&rows, (int64_t)loss->count);
		database_row_end(&rows);
	}
	return database_rows_end(&rows, err);
}

/* ---- causes ---- */

struct cause_rows {
	struct database_rows rows;
	const struct why_part **sorted;
	size_t room;
};

/* The longest first. */
static int compare(const void *a, const void *b)
{
	const struct why_part *left = *(const struct why_part *const *)a;
	const struct why_part *right = *(const struct why_part *const *)b;

	if (left->ns != right->ns)
		return left->ns < right->ns ? 1 : -1;
	return (int)left->cause - (int)right->cause;
}

static void part_row(struct database_rows *rows, const struct why *why, uint32_t span,
		     uint32_t place, const struct why_part *part)
{
	database_put_int(rows, span);
	database_put_int(rows, place);
	database_put_text(rows, why_causes[part->cause].name);
	database_put_text(rows, why_grade_names[part->grade]);
	database_put_int(rows, (int64_t)part->ns);
	database_put_int(rows, (int64_t)part->stretches);
	database_put_index(rows, part->thread, MODEL_NONE);
	database_put_index(rows, part->span, MODEL_NONE);
	database_put_text(rows, strtab_get(why->texts, part->object));
	database_row_end(rows);
}

static int instance_rows(const struct why *why, const struct why_instance *instance, void *arg)
{
	struct cause_rows *causes = arg;

	if (instance->part_count > causes->room) {
		causes->room = instance->part_count * 2;
		causes->sorted =
			memory_resize(causes->sorted, causes->room, sizeof(*causes->sorted));
	}
	for (uint32_t i = 0; i < instance->part_count; i++)
		causes->sorted[i] = &why->parts.data[instance->part + i];
	if (instance->part_count)
		qsort(causes->sorted, instance->part_count, sizeof(*causes->sorted), compare);
	for (uint32_t i = 0; i < instance->part_count; i++)
		part_row(&causes->rows, why, instance->span, i + 1, causes->sorted[i]);
	return causes->rows.failed;
}

static int cause_rows(struct database *database, const struct model *model, struct error *err)
{
	struct cause_rows causes = {0};
	struct why *why = NULL;
	int result;

	if (!model->sched || !model->spans.len)
		return 0;
	if (database_rows_begin(&causes.rows, database, "cause", 9, err))
		return -EIO;
	result = span_causes_each(&why, model, instance_rows, &causes, err);
	free(causes.sorted);
	if (result >= 0)
		why_free(why);
	return database_rows_end(&causes.rows, err) ?: result < 0 ? result : 0;
}

static int database_fill(struct database *database, const struct model *model, struct error *err)
{
	return database_run(database, sqlite_tables, err)
		       ?: database_run(database, "BEGIN", err)
		       ?: capture_rows(database, model, err)
		       ?: process_rows(database, model, err)
		       ?: thread_rows(database, model, err)
		       ?: site_rows(database, model, err)
		       ?: span_rows(database, model, err)
		       ?: event_rows(database, model, err)
		       ?: value_rows(database, model, err)
		       ?: link_rows(database, model, err)
		       ?: cause_rows(database, model, err)
		       ?: wait_rows(database, model, err)
		       ?: loss_rows(database, model, err)
		       ?: database_run(database, sqlite_indexes, err)
		       ?: database_run(database, sqlite_views, err)
		       ?: database_run(database, "COMMIT", err);
}

int sqlite_write(const struct model *model, FILE *out, struct error *err)
{
	struct database database;
	int result = database_open(&database, err);

	result = result ?: database_fill(&database, model, err);
	result = result ?: database_write(&database, out, err);
	database_close(&database);
	return result;
}
