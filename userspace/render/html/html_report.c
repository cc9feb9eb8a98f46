// SPDX-License-Identifier: Apache-2.0
#include "render/html/html_report.h"

#include <stdlib.h>
#include <string.h>

#include "render/html/html_internal.h"
#include "render/html/html_put_internal.h"
#include "render/json/summary_json.h"
#include "render/text/notices.h"
#include "store/record.h"
#include "util/memory.h"
#include "util/units.h"

static void texts_json(struct html_page *page)
{
	json_key(page->json, "texts");
	json_array_begin(page->json);
	for (uint32_t i = 0; i < strtab_count(page->texts); i++)
		json_string_len(page->json, strtab_get(page->texts, i),
				strtab_length(page->texts, i));
	json_array_end(page->json);
}

static uint32_t find_row(const struct html_page *page, const struct site_info *site)
{
	for (uint32_t i = 0; i < page->rows; i++)
		if (!strcmp(page->report->spans.data[i].name, site->name) &&
		    !strcmp(page->report->spans.data[i].category, site->category))
			return i;
	return MODEL_NONE;
}

static void find_rows(struct html_page *page)
{
	size_t all = page->report->spans.len;

	page->rows = all < HTML_SPANS_MAX ? all : HTML_SPANS_MAX;
	page->sites = model_site_count(page->model);
	page->row_of = memory_get(((size_t)page->sites + 1) * sizeof(*page->row_of));
	for (uint32_t i = 0; i <= page->sites; i++)
		page->row_of[i] =
			find_row(page, model_site(page->model, i < page->sites ? i : MODEL_NONE));
}

/* ---- the head ---- */

static void capture_json(struct html_page *page)
{
	const struct model *model = page->model;
	const struct store_meta *meta = model->meta;
	struct json *json = page->json;

	json_key(json, "capture");
	json_object_begin(json);
	html_field_text(page, "command", meta->command);
	html_field_text(page, "hostname", meta->hostname);
	html_field_text(page, "kernel", meta->kernel);
	html_field_text(page, "machine", meta->machine);
	html_field_text(page, "sources", meta->sources);
	json_field_u64(json, "cpus", meta->cpu_count);
	json_field_u64(json, "real_ms", meta->real_ns / 1000000 % 8640000000000000ull);
	json_field_u64(json, "duration_ns", model->end_ts - model->start_ts);
	json_field_bool(json, "sched", model->sched);
	json_field_u64(json, "spans", model->spans.len);
	json_field_u64(json, "events", model->events.len);
	json_field_u64(json, "threads", page->report->threads.len);
	json_object_end(json);
}

static void warning(struct html_page *page, const char *format, const char *value, const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), format, value, what);
	json_string(page->json, text);
}

static void warnings_json(struct html_page *page)
{
	const struct report *report = page->report;
	char text[UNITS_TEXT];

	json_key(page->json, "warnings");
	json_array_begin(page->json);
	if (notice_simulated(page->model))
		json_string(page->json, notice_simulated(page->model));
	if (report->truncated)
		warning(page,
			"The file is still being recorded, or was cut off: its last records are "
			"missing, %s at its end are unusable.%s",
			units_format_bytes(text, report->bytes_cut), "");
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++)
		if (report->losses[i].count)
			warning(page,
				"Lost records (%s of %s): results are incomplete where they are "
				"missing.",
				units_format_count(text, report->losses[i].count),
				record_source_name(i));
	if (page->model->bad_records)
		warning(page, "%s %s left out.", units_format_count(text, page->model->bad_records),
			units_plural(page->model->bad_records, BAD_RECORD));
	if (!page->model->sched)
		json_string(page->json,
			    "The scheduler was not recorded: running, runnable and blocked are "
			    "unknown.");
	json_array_end(page->json);
}

/* ---- the page ---- */

static void data_json(struct html_page *page)
{
	json_object_begin(page->json);
	capture_json(page);
	warnings_json(page);
	summary_json_filter(page->json, page->model);
	html_hangs(page);
	html_spans(page);
	html_slowest(page);
	html_flame(page);
	html_oncpu(page);
	html_origins(page);
	html_hosts(page);
	html_stragglers(page);
	texts_json(page);
	json_object_end(page->json);
}

static void page_json(struct html_page *page)
{
	page->texts = strtab_make();
	find_rows(page);
	page->names = stack_names_open(page->model->reader, true);
	page->causes = html_causes_new(page);
	data_json(page);
}

static void page_free(struct html_page *page)
{
	html_causes_free(page->causes);
	stack_names_close(page->names);
	free(page->row_of);
	strtab_free(page->texts);
}

void html_report_write(const struct report *report, FILE *out)
{
	struct html_page page = {.report = report, .model = report->model};
	char *data = NULL;
	size_t len = 0;
	FILE *memory = memory_stream(&data, &len);

	page.json = json_new(memory, false);
	page_json(&page);
	memory_require(!json_close(page.json) && !fclose(memory));
	html_put(HTML_PAGE_REPORT, data, len, out);
	page_free(&page);
	free(data);
}

static void write_report(const void *report, FILE *out)
{
	html_report_write(report, out);
}

int html_report_to_path(const struct report *report, const char *path, struct error *err)
{
	return html_put_path(path, write_report, report, err);
}
