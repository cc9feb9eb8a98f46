// SPDX-License-Identifier: Apache-2.0
/* Tables of the page: hosts, ranks that others waited for, and their collectives. */
#include <inttypes.h>
#include <stdio.h>

#include "render/clock_text.h"
#include "render/html/html_internal.h"

/* Limit of rows in each table. */
#define ROWS_MAX 200

static void rank_field(struct html_page *page, const char *key, uint32_t index)
{
	const struct straggler_rank *rank = &page->report->stragglers->ranks.data[index];
	char thread[HTML_THREAD_TEXT], text[HTML_THREAD_TEXT + 32];

	html_thread(page->model, rank->thread, thread);
	/* The thread's text has the rank of its process. */
	if (rank->rank != MODEL_NONE && rank->places != UINT32_MAX)
		snprintf(text, sizeof(text), "rank %" PRIu32 ", %s", rank->rank, thread);
	else
		snprintf(text, sizeof(text), "%s", thread);
	html_field_text(page, key, text);
}

static void ranks_json(struct html_page *page)
{
	const struct stragglers *stragglers = page->report->stragglers;

	json_key(page->json, "stragglers");
	json_array_begin(page->json);
	for (uint32_t i = 0; i < stragglers->ranks.len && i < ROWS_MAX; i++) {
		const struct straggler_rank *rank = &stragglers->ranks.data[i];

		json_object_begin(page->json);
		rank_field(page, "rank", i);
		json_field_u64(page->json, "made_wait_ns", rank->made_wait_ns);
		json_field_u64(page->json, "unsure_ns", rank->unsure_ns);
		json_field_u64(page->json, "waited_ns", rank->waited_ns);
		json_field_u64(page->json, "last", rank->last);
		json_field_u64(page->json, "calls", rank->calls);
		json_object_end(page->json);
	}
	json_array_end(page->json);
}

static void group_json(struct html_page *page, const struct straggler_group *group)
{
	json_object_begin(page->json);
	html_field_text(page, "name", group->name);
	json_field_u64(page->json, "count", group->count);
	json_field_u64(page->json, "ranks", group->nranks);
	json_field_u64(page->json, "ranks_traced", group->traced);
	json_field_u64(page->json, "total_ns", group->total_ns);
	json_field_u64(page->json, "transfer_ns", group->transfer_ns);
	json_field_u64(page->json, "waiting_ns", group->waiting_ns);
	if (group->worst != MODEL_NONE)
		rank_field(page, "worst", group->worst);
	json_object_end(page->json);
}

void html_hosts(struct html_page *page)
{
	const struct model *model = page->model;
	char text[CLOCK_TEXT];

	if (model->host_count < 2)
		return;
	json_key(page->json, "hosts");
	json_array_begin(page->json);
	for (uint32_t i = 0; i < model->host_count && i < ROWS_MAX; i++) {
		json_object_begin(page->json);
		html_field_text(page, "name", model->hosts[i]->name);
		json_field_string(page->json, "clock", clock_text(text, &model->hosts[i]->clock));
		json_object_end(page->json);
	}
	json_array_end(page->json);
	json_field_u64(page->json, "hosts_left_out",
		       model->host_count > ROWS_MAX ? model->host_count - ROWS_MAX : 0);
}

void html_stragglers(struct html_page *page)
{
	const struct stragglers *stragglers = page->report->stragglers;

	if (!stragglers->groups.len)
		return;
	ranks_json(page);
	json_key(page->json, "collectives");
	json_array_begin(page->json);
	for (size_t i = 0; i < stragglers->groups.len && i < ROWS_MAX; i++)
		group_json(page, &stragglers->groups.data[i]);
	json_array_end(page->json);
	json_field_u64(page->json, "stragglers_left_out",
		       stragglers->ranks.len > ROWS_MAX ? stragglers->ranks.len - ROWS_MAX : 0);
}
