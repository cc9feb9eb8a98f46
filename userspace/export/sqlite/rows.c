// SPDX-License-Identifier: Apache-2.0
#include "export/sqlite/rows_internal.h"

#include <inttypes.h>
#include <stdio.h>

/* The name of the host of a process, which may be none that the capture describes. */
static const char *host_name(const struct model *model, uint32_t host)
{
	return host < model->host_count ? model->hosts[host]->name : "";
}

int process_rows(struct database *database, const struct model *model, struct error *err)
{
	struct database_rows rows;

	if (database_rows_begin(&rows, database, "process", 8, err))
		return -EIO;
	for (size_t i = 0; i < model->processes.len; i++) {
		const struct model_process *process = &model->processes.data[i];

		database_put_int(&rows, (int64_t)i);
		database_put_int(&rows, model_pid_real(model, process->pid));
		database_put_index(&rows, model_pid_real(model, process->ppid), 0);
		database_put_text(&rows, host_name(model, process->host));
		database_put_text(&rows, strtab_get(model->strings, process->cmdline));
		database_put_index(&rows, process->rank, MODEL_NONE);
		database_put_index(&rows, process->world_size, 0);
		database_put_text(&rows, strtab_get(model->strings, process->job));
		database_row_end(&rows);
	}
	return database_rows_end(&rows, err);
}

static void time_or_null(struct database_rows *rows, bool known, uint64_t ns)
{
	if (known)
		database_put_int(rows, (int64_t)ns);
	else
		database_put_null(rows);
}

int thread_rows(struct database *database, const struct model *model, struct error *err)
{
	struct database_rows rows;

	if (database_rows_begin(&rows, database, "thread", 10, err))
		return -EIO;
	for (uint32_t i = 0; i < model->threads.len; i++) {
		const struct model_thread *thread = &model->threads.data[i];
		const struct model_process *process = model_process_of(model, i);
		bool track = model_is_track(model, i);

		database_put_int(&rows, i);
		database_put_index(
			&rows, process ? (uint32_t)(process - model->processes.data) : MODEL_NONE,
			MODEL_NONE);
		database_put_index(&rows, model_pid_real(model, thread->tid), 0);
		database_put_text(&rows, model_thread_name(model, i));
		database_put_text(&rows,
				  track ? strtab_get(model->strings, thread->track_name) : NULL);
		database_put_text(&rows, track ? strtab_get(model->strings, thread->group) : NULL);
		database_put_int(&rows, thread->traced);
		time_or_null(&rows, thread->has_sched, thread->running_ns);
		time_or_null(&rows, thread->has_sched, thread->runnable_ns);
		time_or_null(&rows, thread->has_sched, thread->blocked_ns);
		database_row_end(&rows);
	}
	return database_rows_end(&rows, err);
}

static void site_row(struct database_rows *rows, int64_t number, const struct site_info *site)
{
	database_put_int(rows, number);
	database_put_text(rows, site_kind_name(site->kind));
	database_put_text(rows, site->name);
	database_put_text(rows, site->category);
	database_put_text(rows, site_severity(site->kind));
	database_put_text(rows, site->file);
	database_put_index(rows, site->line, 0);
	database_put_text(rows, site->func);
	database_put_text(rows, site->object);
	database_row_end(rows);
}

/* Row -1 is of spans whose site is unknown. */
int site_rows(struct database *database, const struct model *model, struct error *err)
{
	uint32_t count = model_site_count(model);
	struct database_rows rows;

	if (database_rows_begin(&rows, database, "site", 9, err))
		return -EIO;
	site_row(&rows, -1, model_site(model, MODEL_NONE));
	for (uint32_t i = 0; i < count; i++)
		site_row(&rows, i, model_site(model, i));
	return database_rows_end(&rows, err);
}

static void site_put(struct database_rows *rows, uint32_t site)
{
	database_put_int(rows, site == MODEL_NONE ? -1 : (int64_t)site);
}

static void span_row(struct database_rows *rows, const struct model *model, uint32_t index)
{
	const struct model_span *span = &model->spans.data[index];
	const struct model_context *context = model_context_of(model, span);
	bool sched = span->flags & MODEL_SPAN_HAS_SCHED;

	database_put_int(rows, index);
	database_put_int(rows, (int64_t)span->id);
	database_put_index(rows, span->parent, MODEL_NONE);
	database_put_int(rows, (int64_t)context->parent_id);
	database_put_int(rows, (int64_t)context->trace_hi);
	database_put_int(rows, (int64_t)context->trace_lo);
	site_put(rows, span->site);
	database_put_index(rows, span->thread, MODEL_NONE);
	database_put_index(rows, span->end_thread, MODEL_NONE);
	database_put_int(rows, (int64_t)span->start_ts);
	database_put_int(rows, (int64_t)span->end_ts);
	time_or_null(rows, sched, span->running_ns);
	time_or_null(rows, sched, span->runnable_ns);
	time_or_null(rows, sched,
		     span->end_ts - span->start_ts - span->running_ns - span->runnable_ns);
	database_put_int(rows, !!(span->flags & MODEL_SPAN_UNFINISHED));
	database_put_int(rows, !!(span->flags & MODEL_SPAN_BEGUN_BEFORE));
	database_put_int(rows, !!(span->flags & MODEL_SPAN_LEFT));
	database_put_int(rows, !!(span->flags & MODEL_SPAN_LOSS));
	database_row_end(rows);
}

int span_rows(struct database *database, const struct model *model, struct error *err)
{
	struct database_rows rows;

	if (database_rows_begin(&rows, database, "span", 18, err))
		return -EIO;
	for (uint32_t i = 0; i < model->spans.len; i++)
		span_row(&rows, model, i);
	return database_rows_end(&rows, err);
}

int event_rows(struct database *database, const struct model *model, struct error *err)
{
	struct database_rows rows;

	if (database_rows_begin(&rows, database, "event", 9, err))
		return -EIO;
	for (uint32_t i = 0; i < model->events.len; i++) {
		const struct model_event *event = &model->events.data[i];

		database_put_int(&rows, i);
		database_put_int(&rows, (int64_t)event->id);
		database_put_index(&rows, event->parent, MODEL_NONE);
		database_put_int(&rows, (int64_t)event->parent_id);
		database_put_int(&rows, (int64_t)event->trace_hi);
		database_put_int(&rows, (int64_t)event->trace_lo);
		site_put(&rows, event->site);
		database_put_index(&rows, event->thread, MODEL_NONE);
		database_put_int(&rows, (int64_t)event->ts);
		database_row_end(&rows);
	}
	return database_rows_end(&rows, err);
}

/* ---- values ---- */

/* What has no type in SQLite is a text. `text` has 64 bytes and stays until the row's end. */
static void value_put(struct database_rows *rows, const struct value *value, char *text)
{
	int len = 0;

	switch (value->type) {
	case WAFFLE_KEY_F64:
		database_put_double(rows, value->f64);
		return;
	case WAFFLE_KEY_STR:
		if (value->null || value->lost)
			database_put_null(rows);
		else
			database_put_text_len(rows, value->text, value->text_len);
		return;
	case WAFFLE_KEY_PTR:
	case WAFFLE_KEY_CODE:
		len = snprintf(text, 64, "0x%" PRIx64, value->u64);
		break;
	case WAFFLE_KEY_DIM3:
		len = snprintf(text, 64, "%u,%u,%u", value->dim[0], value->dim[1], value->dim[2]);
		break;
	case WAFFLE_KEY_U64:
		if (value->u64 > INT64_MAX) {
			len = snprintf(text, 64, "%" PRIu64, value->u64);
			break;
		}
		database_put_int(rows, (int64_t)value->u64);
		return;
	default:
		database_put_int(rows, value->i64);
		return;
	}
	database_put_text_len(rows, text, (size_t)len);
}

static void values_of(struct database_rows *rows, uint32_t index, struct value_walk walk)
{
	struct value value;
	char text[64];

	while (value_walk_next(&walk, &value)) {
		/* These are in the table of links. */
		if (value.type == WAFFLE_KEY_CAUSE_SPAN || value.type == WAFFLE_KEY_CAUSE_EVENT)
			continue;
		database_put_int(rows, index);
		database_put_text(rows, value.key->name);
		value_put(rows, &value, text);
		database_row_end(rows);
	}
}

int value_rows(struct database *database, const struct model *model, struct error *err)
{
	struct database_rows rows;
	int result;

	if (database_rows_begin(&rows, database, "span_value", 3, err))
		return -EIO;
	for (uint32_t i = 0; i < model->spans.len; i++)
		values_of(
			&rows, i,
			model_values(model, model->spans.data[i].site, model->spans.data[i].frame));
	result = database_rows_end(&rows, err);
	if (result || database_rows_begin(&rows, database, "event_value", 3, err))
		return -EIO;
	for (uint32_t i = 0; i < model->events.len; i++)
		values_of(&rows, i,
			  model_values(model, model->events.data[i].site,
				       model->events.data[i].frame));
	return database_rows_end(&rows, err);
}

int link_rows(struct database *database, const struct model *model, struct error *err)
{
	struct database_rows rows;

	if (database_rows_begin(&rows, database, "link", 5, err))
		return -EIO;
	for (size_t i = 0; i < model->links.len; i++) {
		const struct model_link *link = &model->links.data[i];
		bool from_span = link->from_kind == MODEL_NODE_SPAN;
		bool to_span = link->to_kind == MODEL_NODE_SPAN;

		database_put_index(&rows, from_span ? link->from : MODEL_NONE, MODEL_NONE);
		database_put_index(&rows, from_span ? MODEL_NONE : link->from, MODEL_NONE);
		database_put_index(&rows, to_span ? link->to : MODEL_NONE, MODEL_NONE);
		database_put_index(&rows, to_span ? MODEL_NONE : link->to, MODEL_NONE);
		database_put_int(&rows, (int64_t)link->to_id);
		database_row_end(&rows);
	}
	return database_rows_end(&rows, err);
}
