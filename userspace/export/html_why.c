// SPDX-License-Identifier: Apache-2.0
/* The page's causes: of each name, summed up over its slowest spans, and of each slow span. */
#include <stdlib.h>
#include <string.h>

#include "export/html_internal.h"
#include "export/why_chain.h"
#include "util/map.h"

/* The slowest spans of a capture, of which causes are summed up. */
#define SPANS_MAX 20000
#define ROW_CAUSES_MAX 5
#define SLOW_CAUSES_MAX 12
#define CHAINS_MAX 6
#define CHAIN_BYTES_MAX 8192

/* What parts of one sum have in common; compared as bytes, so filled with zeros first. */
struct cause_key {
	uint32_t row, cause;
	uint32_t comm, site; /* of the culprit: its name, its span's site; MODEL_NONE */
	uint32_t object;     /* in the texts of causes->all */
};

struct cause_sum {
	struct cause_key key;
	uint64_t ns;
};

struct cause_row {
	uint64_t ns, spans; /* those looked at, their time */
};

struct html_causes {
	const struct model *model;
	struct why *all;   /* the slowest of the capture */
	struct map all_of; /* span → its instance in it */
	struct why **slow; /* of slow spans of the report that are not in it, else NULL */
	size_t slow_count;
	struct strtab *keys;
	VEC(struct cause_sum) sums; /* by row, the largest first */
	struct cause_row *rows;
};

/* ---- making ---- */

static struct cause_key part_key(const struct model *model, const struct why_part *part,
				 uint32_t row)
{
	struct cause_key key;

	memset(&key, 0, sizeof(key));
	key.row = row;
	key.cause = part->cause;
	key.comm = part->thread < model->threads.len ? model->threads.data[part->thread].comm
						     : MODEL_NONE;
	key.site = part->span < model->spans.len ? model->spans.data[part->span].site : MODEL_NONE;
	key.object = part->object;
	return key;
}

static bool add_part(struct html_causes *causes, const struct why_part *part, uint32_t row)
{
	struct cause_key key = part_key(causes->model, part, row);
	uint32_t number = strtab_add(causes->keys, (const char *)&key, sizeof(key));

	if (number == STRTAB_NONE)
		return false;
	/* 0 is the empty text. */
	while (causes->sums.len < number)
		if (!vec_push(&causes->sums, (struct cause_sum){.key = key}))
			return false;
	causes->sums.data[number - 1].ns += part->ns;
	return true;
}

static bool add_instance(struct html_causes *causes, const struct html_page *page, uint32_t index)
{
	const struct why_instance *instance = &causes->all->instances.data[index];
	uint32_t row;

	if (instance->span >= page->model->spans.len)
		return true;
	if (!map_set(&causes->all_of, instance->span, index))
		return false;
	row = html_row_of(page, instance->span);
	if (row == MODEL_NONE)
		return true;
	causes->rows[row].spans++;
	causes->rows[row].ns += instance->to_ts - instance->from_ts;
	for (uint32_t i = 0; i < instance->part_count; i++)
		if (!add_part(causes, &causes->all->parts.data[instance->part + i], row))
			return false;
	return true;
}

static int compare_sums(const void *left, const void *right)
{
	const struct cause_sum *a = left, *b = right;

	if (a->key.row != b->key.row)
		return a->key.row < b->key.row ? -1 : 1;
	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return memcmp(&a->key, &b->key, sizeof(a->key));
}

static bool find_all(struct html_causes *causes, const struct html_page *page)
{
	const struct why_query query = {.slowest = SPANS_MAX};
	struct error err = ERROR_INIT;
	int result = why_new(&causes->all, page->model, &query, &err);

	if (result)
		return result != -ENOMEM;
	for (uint32_t i = 0; i < causes->all->instances.len; i++)
		if (!add_instance(causes, page, i))
			return false;
	if (causes->sums.len)
		qsort(causes->sums.data, causes->sums.len, sizeof(*causes->sums.data),
		      compare_sums);
	return true;
}

/* Names that are never among the slowest of all are asked for one by one. */
static bool find_slow(struct html_causes *causes, const struct html_page *page)
{
	for (size_t i = 0; i < page->report->slowest.len; i++) {
		uint32_t span = page->report->slowest.data[i].span;
		const struct why_query query = {.span_id = page->model->spans.data[span].id};
		struct error err = ERROR_INIT;

		causes->slow_count = i + 1;
		if (map_get(&causes->all_of, span) == MAP_NONE &&
		    why_new(&causes->slow[i], page->model, &query, &err) == -ENOMEM)
			return false;
	}
	return true;
}

struct html_causes *html_causes_new(struct html_page *page)
{
	struct html_causes *causes = calloc(1, sizeof(*causes));

	if (!causes)
		return NULL;
	causes->model = page->model;
	causes->keys = strtab_new();
	causes->rows = calloc(page->rows + 1, sizeof(*causes->rows));
	causes->slow = calloc(page->report->slowest.len + 1, sizeof(*causes->slow));
	if (causes->keys && causes->rows && causes->slow &&
	    (!page->model->sched || !page->model->spans.len ||
	     (find_all(causes, page) && find_slow(causes, page))))
		return causes;
	html_causes_free(causes);
	return NULL;
}

void html_causes_free(struct html_causes *causes)
{
	if (!causes)
		return;
	for (size_t i = 0; i < causes->slow_count; i++)
		why_free(causes->slow[i]);
	why_free(causes->all);
	map_free(&causes->all_of);
	strtab_free(causes->keys);
	vec_free(&causes->sums);
	free(causes->slow);
	free(causes->rows);
	free(causes);
}

const struct why_instance *html_causes_of(const struct html_causes *causes, uint32_t span,
					  const struct why **why)
{
	uint32_t index = map_get(&causes->all_of, span);

	if (index != MAP_NONE) {
		*why = causes->all;
		return &causes->all->instances.data[index];
	}
	for (size_t i = 0; i < causes->slow_count; i++) {
		*why = causes->slow[i];
		for (size_t j = 0; *why && j < (*why)->instances.len; j++)
			if ((*why)->instances.data[j].span == span)
				return &(*why)->instances.data[j];
	}
	return NULL;
}

/* ---- writing ---- */

static void cause_fields(struct html_page *page, enum why_cause cause, uint64_t ns)
{
	json_field_string(page->json, "cause", why_cause_names[cause]);
	json_field_string(page->json, "text", why_cause_texts[cause]);
	json_field_u64(page->json, "ns", ns);
}

static void sum_json(struct html_page *page, const struct cause_sum *sum)
{
	const struct model *model = page->model;

	json_object_begin(page->json);
	cause_fields(page, (enum why_cause)sum->key.cause, sum->ns);
	if (sum->key.comm != MODEL_NONE)
		html_field_text(page, "culprit", strtab_get(model->strings, sum->key.comm));
	if (sum->key.site != MODEL_NONE)
		html_field_text(page, "span", model_site(model, sum->key.site)->name);
	if (sum->key.object)
		html_field_text(page, "object",
				strtab_get(page->causes->all->texts, sum->key.object));
	json_object_end(page->json);
}

void html_causes_row(struct html_page *page, uint32_t row)
{
	const struct html_causes *causes = page->causes;
	size_t at = 0, end;

	if (!causes->rows[row].spans)
		return;
	while (at < causes->sums.len && causes->sums.data[at].key.row != row)
		at++;
	json_field_u64(page->json, "causes_spans", causes->rows[row].spans);
	json_field_u64(page->json, "causes_ns", causes->rows[row].ns);
	json_key(page->json, "causes");
	json_array_begin(page->json);
	for (end = at + ROW_CAUSES_MAX; at < causes->sums.len && at < end; at++)
		if (causes->sums.data[at].key.row == row)
			sum_json(page, &causes->sums.data[at]);
	json_array_end(page->json);
}

static void part_json(struct html_page *page, const struct why *why, const struct why_part *part)
{
	const struct model *model = page->model;
	char thread[HTML_THREAD_TEXT];

	json_object_begin(page->json);
	cause_fields(page, part->cause, part->ns);
	json_field_string(page->json, "grade", why_grade_names[part->grade]);
	if (part->thread < model->threads.len)
		json_field_string(page->json, "culprit", html_thread(model, part->thread, thread));
	if (part->span < model->spans.len)
		html_field_text(page, "span",
				model_site(model, model->spans.data[part->span].site)->name);
	if (part->object)
		html_field_text(page, "object", strtab_get(why->texts, part->object));
	json_object_end(page->json);
}

/* The text that waffle-bpf why prints, of the longest parts. */
static void chain_json(struct html_page *page, const struct why *why,
		       const struct why_instance *instance)
{
	const struct why_view view = {.names = page->names};
	struct why_printer printer = {.why = why, .model = page->model, .view = &view};
	char *text = NULL;
	size_t len = 0;

	printer.out = open_memstream(&text, &len);
	if (!printer.out)
		return;
	why_print_chains(&printer, instance,
			 instance->part_count < CHAINS_MAX ? instance->part_count : CHAINS_MAX);
	if (!fclose(printer.out)) {
		json_key(page->json, "chain");
		json_string_len(page->json, text, len < CHAIN_BYTES_MAX ? len : CHAIN_BYTES_MAX);
	}
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
