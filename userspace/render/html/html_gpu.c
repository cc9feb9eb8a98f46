// SPDX-License-Identifier: Apache-2.0
#include "render/html/html_gpu.h"

#include <stdlib.h>

#include "render/gpu_texts.h"
#include "render/html/html_put_internal.h"
#include "render/json/gpu_json.h"
#include "render/text/notices.h"
#include "util/memory.h"
#include "util/units.h"

/* Rows of each table, so that the size of a page is bounded. */
#define ROWS_MAX 200
#define WARNING_BYTES 256

struct gpu_page {
	const struct gpu_report *report;
	const struct why *why;
};

static void warnings_json(struct json *json, const struct gpu_timeline *timeline)
{
	uint64_t error_ns = gpu_clock_error_max(timeline);
	char problems[GPU_PROBLEMS][GPU_PROBLEM_TEXT];
	size_t problem_count = gpu_problems(timeline, problems);
	char text[WARNING_BYTES], time[UNITS_TEXT];

	json_key(json, "warnings");
	json_array_begin(json);
	if (notice_simulated(timeline->model))
		json_string(json, notice_simulated(timeline->model));
	if (!timeline->model->sched)
		json_string(json, GPU_TEXT_NO_SCHED);
	if (error_ns) {
		snprintf(text, sizeof(text), GPU_TEXT_CLOCK, units_format_duration(time, error_ns));
		json_string(json, text);
	}
	for (size_t i = 0; i < problem_count; i++)
		json_string(json, problems[i]);
	json_array_end(json);
}

static void texts_json(struct json *json)
{
	json_key(json, "idle_texts");
	json_object_begin(json);
	for (unsigned i = 0; i < GPU_IDLE_COUNT; i++)
		json_field_string(json, gpu_json_idle_keys[i], gpu_idle_texts[i]);
	json_object_end(json);
	json_key(json, "piece_texts");
	json_object_begin(json);
	for (unsigned i = 0; i < GPU_PIECE_KIND_COUNT; i++)
		json_field_string(json, gpu_piece_names[i], gpu_piece_texts[i]);
	json_object_end(json);
	json_key(json, "cause_texts");
	json_object_begin(json);
	for (unsigned i = 0; i < WHY_CAUSE_COUNT; i++)
		json_field_string(json, why_causes[i].name, why_causes[i].text);
	json_object_end(json);
}

static void data_json(struct json *json, const struct gpu_page *page)
{
	const struct gpu_timeline *timeline = page->report->timeline;
	uint64_t starved = 0;

	for (uint32_t i = 0; i < timeline->devices.len; i++)
		starved += page->report->devices[i].starved_count;
	json_object_begin(json);
	json_field_string(json, "command", timeline->model->meta->command);
	json_field_string(json, "hostname", timeline->model->meta->hostname);
	warnings_json(json, timeline);
	texts_json(json);
	json_field_u64(json, "starved", starved);
	json_field_u64(json, "explained", page->why ? page->why->instances.len : 0);
	gpu_json_members(json, page->report, page->why, ROWS_MAX);
	json_object_end(json);
}

static void page_write(const void *arg, FILE *out)
{
	char *data = NULL;
	size_t len = 0;
	FILE *memory = memory_stream(&data, &len);
	struct json *json = json_new(memory, false);

	data_json(json, arg);
	memory_require(!json_close(json) && !fclose(memory));
	html_put(HTML_PAGE_GPU, data, len, out);
	free(data);
}

int html_gpu_to_path(const struct gpu_report *report, const struct why *why, const char *path,
		     struct error *err)
{
	const struct gpu_page page = {report, why};

	return html_put_path(path, page_write, &page, err);
}
