// SPDX-License-Identifier: Apache-2.0
/* The causes on the page: for each name over all its spans, and for each slow span. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "render/html/html_internal.h"
#include "render/place.h"
#include "render/text/report_causes.h"
#include "render/text/why_chain.h"
#include "util/memory.h"
#include "util/utf8.h"

#define ROW_CAUSES_MAX 5
#define ROW_DIFFERENCES_MAX 3
#define SLOW_CAUSES_MAX 12
#define CHAINS_MAX 6
#define CHAIN_BYTES_MAX 8192

struct html_causes {
	/* Causes of the report's slow spans; NULL: the scheduler was not recorded. */
	struct why *slow;
};

/* ---- building ---- */

static void find_slow(struct html_causes *causes, const struct html_page *page)
{
	const struct report *report = page->report;
	uint32_t *spans = memory_get((report->slowest.len + 1) * sizeof(*spans));
	const struct why_query query = {.spans = spans,
					.span_count = report->slowest.len,
					.names = page->names,
					.timeline = report->timeline};
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < report->slowest.len; i++)
		spans[i] = report->slowest.data[i].span;
	(void)why_new(&causes->slow, page->model, &query, &err);
	free(spans);
}

struct html_causes *html_causes_new(struct html_page *page)
{
	struct html_causes *causes = memory_zeroed(1, sizeof(*causes));

	if (page->model->sched)
		find_slow(causes, page);
	return causes;
}

void html_causes_free(struct html_causes *causes)
{
	if (!causes)
		return;
	why_free(causes->slow);
	free(causes);
}

const struct why_instance *html_causes_of(const struct html_causes *causes, uint32_t span,
					  const struct why **why)
{
	*why = causes->slow;
	for (size_t i = 0; *why && i < (*why)->instances.len; i++)
		if ((*why)->instances.data[i].span == span)
			return &(*why)->instances.data[i];
	return NULL;
}

/* ---- writing ---- */

static void cause_fields(struct html_page *page, enum why_cause cause, uint64_t ns)
{
	json_field_string(page->json, "cause", why_causes[cause].name);
	json_field_string(page->json, "text", why_causes[cause].text);
	json_field_u64(page->json, "ns", ns);
}

static void group_cause_json(struct html_page *page, const struct why_group_cause *cause,
			     uint64_t ns)
{
	const struct why_aggregate *causes = page->report->causes;
	char *object = report_object_text(causes, cause);

	json_object_begin(page->json);
	cause_fields(page, cause->cause, ns);
	json_field_string(page->json, "grade", why_grade_names[cause->grade]);
	if (cause->comm != MODEL_NONE)
		html_field_text(page, "culprit", strtab_get(page->model->strings, cause->comm));
	else if (cause->own)
		json_field_string(page->json, "culprit", "the span's own thread");
	else if (cause->merged)
		json_field_string(page->json, "culprit", "several");
	if (cause->span != MODEL_NONE)
		html_field_text(page, "span", causes->groups.data[cause->span].name);
	if (cause->object)
		html_field_text(page, "object", object);
	json_object_end(page->json);
	free(object);
}

/* Writes in which causes the slow spans differ. */
static void differences_json(struct html_page *page, const struct why_group *group)
{
	uint32_t causes[ROW_DIFFERENCES_MAX];
	size_t count = why_group_different(group, causes, ROW_DIFFERENCES_MAX);

	if (!count)
		return;
	json_field_u64(page->json, "slow_spans", group->slow_count);
	json_field_u64(page->json, "slow_ns",
		       why_group_mean(group->slow_total_ns, group->slow_count));
	json_field_u64(page->json, "median_ns",
		       why_group_mean(group->median_total_ns, group->median_count));
	json_key(page->json, "differences");
	json_array_begin(page->json);
	for (size_t i = 0; i < count; i++) {
		const struct why_group_cause *cause = &group->causes.data[causes[i]];

		group_cause_json(page, cause, (uint64_t)why_group_difference(group, cause));
	}
	json_array_end(page->json);
}

void html_causes_row(struct html_page *page, uint32_t row)
{
	const struct why_group *group = report_causes(page->report, &page->report->spans.data[row]);

	if (!group)
		return;
	json_field_u64(page->json, "causes_spans", group->explained);
	json_field_u64(page->json, "causes_ns", group->explained_ns);
	json_key(page->json, "causes");
	json_array_begin(page->json);
	for (size_t i = 0; i < group->causes.len && i < ROW_CAUSES_MAX; i++)
		group_cause_json(page, &group->causes.data[i], group->causes.data[i].total_ns);
	json_array_end(page->json);
	differences_json(page, group);
}

static void object_json(struct html_page *page, const struct why *why, const struct why_part *part)
{
	const struct why_view view = {.names = page->names};
	struct why_printer printer = {.why = why, .model = page->model, .view = &view};
	char *text = NULL;
	size_t len = 0;

	if (!part->object && !part->neighbour.bytes)
		return;
	printer.out = memory_stream(&text, &len);
	if (part->connections)
		fprintf(printer.out, "%" PRIu32 " ", part->connections);
	fputs(strtab_get(why->texts, part->object), printer.out);
	why_put_neighbour(&printer, part->object ? ", " : "", &part->neighbour);
	memory_require(!fclose(printer.out));
	html_field_text(page, "object", text);
	free(text);
}

static void part_json(struct html_page *page, const struct why *why, const struct why_part *part)
{
	const struct model *model = page->model;
	char thread[HTML_THREAD_TEXT], threads[PLACE_THREADS_TEXT];

	json_object_begin(page->json);
	cause_fields(page, part->cause, part->ns);
	json_field_string(page->json, "grade", why_grade_names[part->grade]);
	if (part->thread < model->threads.len)
		json_field_string(page->json, "culprit",
				  part->threads < 2
					  ? html_thread(model, part->thread, thread)
					  : place_threads(threads, model, part->thread,
							  why_part_name(why, part), part->threads,
							  part->processes));
	if (part->span < model->spans.len)
		html_field_text(page, "span",
				model_site(model, model->spans.data[part->span].site)->name);
	object_json(page, why, part);
	json_object_end(page->json);
}

/* Writes the chains of the longest parts, as `waffle-bpf why` prints them. */
static void chain_json(struct html_page *page, const struct why *why,
		       const struct why_instance *instance)
{
	const struct why_view view = {.names = page->names};
	struct why_printer printer = {.why = why, .model = page->model, .view = &view};
	char *text = NULL;
	size_t len = 0;

	printer.out = memory_stream(&text, &len);
	why_print_chains(&printer, instance,
			 instance->part_count < CHAINS_MAX ? instance->part_count : CHAINS_MAX);
	memory_require(!fclose(printer.out));
	json_key(page->json, "chain");
	json_string_len(page->json, text, utf8_cut(text, CHAIN_BYTES_MAX));
	free(text);
}

void html_causes_slow(struct html_page *page, uint32_t span)
{
	const struct why *why;
	const struct why_instance *instance = html_causes_of(page->causes, span, &why);

	if (!instance)
		return;
	json_key(page->json, "causes");
	json_array_begin(page->json);
	for (uint32_t i = 0; i < instance->part_count && i < SLOW_CAUSES_MAX; i++)
		part_json(page, why, &why->parts.data[instance->part + i]);
	json_array_end(page->json);
	chain_json(page, why, instance);
}
