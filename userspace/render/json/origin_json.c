// SPDX-License-Identifier: Apache-2.0
#include "render/json/origin_json.h"

#include "render/json/summary_json.h"
#include "render/json/values.h"
#include "render/place.h"
#include "util/json.h"

static void field_null(struct json *json, const char *key)
{
	json_key(json, key);
	json_null(json);
}

static void field_text(struct json *json, const char *key, const char *text)
{
	json_key(json, key);
	if (text && *text)
		json_string(json, text);
	else
		json_null(json);
}

/* A number that may be unknown. */
static void field_number(struct json *json, const char *key, uint32_t number, uint32_t unknown)
{
	json_key(json, key);
	if (number == unknown)
		json_null(json);
	else
		json_u64(json, number);
}

static void thread_fields(struct json *json, const struct model *model, uint32_t thread)
{
	const struct model_thread *at = &model->threads.data[thread];
	const struct model_process *process = model_process_of(model, thread);

	json_field_u64(json, "pid", model_pid_real(model, at->pid));
	json_field_u64(json, "tid", model_pid_real(model, at->tid));
	json_field_string(json, "comm", model_thread_name(model, thread));
	place_track_json(json, model, thread);
	field_number(json, "rank", process ? process->rank : MODEL_NONE, MODEL_NONE);
	field_number(json, "world_size", process ? process->world_size : 0, 0);
	field_text(json, "host", model->hosts[model_host_of(model, thread)]->name);
}

/* Writes what identifies a node; it is enough for the ends of steps. */
static void node_fields(struct json *json, const struct model *model,
			const struct origin_node *node)
{
	static const char *const unknown[] = {"name",       "pid",  "tid",      "comm", "rank",
					      "world_size", "host", "start_ns", "file", "line"};
	struct model_node found;
	const struct site_info *site;

	json_field_hex64(json, "id", node->id);
	json_field_string(json, "kind", node->kind == MODEL_NODE_SPAN ? "span" : "event");
	if (!model_node_find(model, node->kind, node->index, &found)) {
		for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
			field_null(json, unknown[i]);
		return;
	}
	site = model_site(model, found.site);
	json_field_string(json, "name", site->name);
	thread_fields(json, model, found.thread);
	json_field_u64(json, "start_ns", found.ts);
	field_text(json, "file", site->file);
	field_number(json, "line", site->line, 0);
	if (node->record)
		json_field_u64(json, "record", node->record);
}

static void args_field(struct json *json, const struct model *model, const struct origin_node *node)
{
	bool span = node->kind == MODEL_NODE_SPAN;

	json_key(json, "args");
	json_object_begin(json);
	if (node->index != MODEL_NONE)
		values_write(json, model,
			     span ? model->spans.data[node->index].site
				  : model->events.data[node->index].site,
			     span ? model->spans.data[node->index].frame
				  : model->events.data[node->index].frame);
	json_object_end(json);
}

static void node_json(struct json *json, const struct model *model, const char *key,
		      const struct origin_node *node)
{
	json_key(json, key);
	json_object_begin(json);
	node_fields(json, model, node);
	json_object_end(json);
}

static uint32_t call_rank(const struct model_collective *collective, uint32_t span)
{
	for (uint32_t i = 0; i < collective->count; i++)
		if (collective->calls[i].span == span)
			return collective->calls[i].rank;
	return MODEL_NONE;
}

/* Writes the operation of a collective or message, and the two calls of it, or the two spans that
 * stand for it. */
static void collective_fields(struct json *json, const struct origin *origin,
			      const struct origin_step *step)
{
	const struct model *model = origin->model;
	const struct model_collective *collective;

	if (step->via != ORIGIN_VIA_COLLECTIVE && step->via != ORIGIN_VIA_MESSAGE)
		return;
	json_field_hex64(json, "from_call", model->spans.data[step->from_call].id);
	json_field_hex64(json, "to_call", model->spans.data[step->to_call].id);
	if (step->collective == MODEL_NONE)
		return;
	collective = model_collective_at(origin->comm, step->collective);
	json_field_string(json, "operation", model_site(model, collective->site)->name);
	json_field_hex64(json, "comm", collective->comm);
	json_field_u64(json, "number", collective->seq);
	field_number(json, "ranks", collective->nranks, 0);
	field_number(json, "from_rank", call_rank(collective, step->from_call), MODEL_NONE);
	field_number(json, "to_rank", call_rank(collective, step->to_call), MODEL_NONE);
}

static void incomplete_json(struct json *json, const struct origin *origin)
{
	const struct model_collective *collective;

	json_key(json, "incomplete");
	if (origin->incomplete == MODEL_NONE && !origin->unmatched) {
		json_null(json);
		return;
	}
	if (origin->incomplete == MODEL_NONE) {
		json_object_begin(json);
		json_field_u64(json, "unmatched_calls", origin->unmatched);
		json_object_end(json);
		return;
	}
	collective = model_collective_at(origin->comm, origin->incomplete);
	json_object_begin(json);
	json_field_string(json, "operation", model_site(origin->model, collective->site)->name);
	json_field_hex64(json, "comm", collective->comm);
	json_field_u64(json, "number", collective->seq);
	json_field_u64(json, "ranks", collective->nranks);
	json_field_u64(json, "recorded", collective->count);
	json_field_u64(json, "unmatched_calls", origin->unmatched);
	if (origin->disorder != MODEL_NONE)
		json_field_u64(json, "order_differs_at",
			       model_disorder_at(origin->comm, origin->disorder)->seq);
	json_object_end(json);
}

static void step_json(struct json *json, const struct origin *origin,
		      const struct origin_step *step)
{
	json_object_begin(json);
	json_field_string(json, "via", origin_via_names[step->via]);
	json_field_string(json, "grade", why_grade_names[step->grade]);
	node_json(json, origin->model, "from", &step->from);
	node_json(json, origin->model, "to", &step->to);
	collective_fields(json, origin, step);
	json_object_end(json);
}

static void way_json(struct json *json, const struct origin *origin, const struct origin_end *end)
{
	struct origin_way way;

	origin_way_find(&way, origin, end);
	json_key(json, "way");
	json_array_begin(json);
	for (size_t i = 0; i < way.steps.len; i++)
		step_json(json, origin, &way.steps.data[i]);
	json_array_end(json);
	if (way.left_out) {
		json_field_u64(json, "steps_left_out", way.left_out);
		json_field_u64(json, "left_out_after", way.head);
	}
	origin_way_free(&way);
}

static void end_json(struct json *json, const struct origin *origin, const struct origin_end *end)
{
	json_object_begin(json);
	node_fields(json, origin->model, &end->node);
	args_field(json, origin->model, &end->node);
	json_field_string(json, "basis", origin_basis_names[end->basis]);
	json_field_string(json, "grade", why_grade_names[end->grade]);
	way_json(json, origin, end);
	json_object_end(json);
}

int origin_print_json(const struct origin *origin, FILE *out)
{
	struct json *json = json_new(out, true);

	json_object_begin(json);
	json_key(json, "event");
	json_object_begin(json);
	node_fields(json, origin->model, &origin->symptom);
	args_field(json, origin->model, &origin->symptom);
	json_object_end(json);
	json_key(json, "origins");
	json_array_begin(json);
	for (size_t i = 0; i < origin->ends.len; i++)
		end_json(json, origin, &origin->ends.data[i]);
	json_array_end(json);
	incomplete_json(json, origin);
	summary_json_filter(json, origin->model);
	summary_json_records(json, origin->model);
	json_object_end(json);
	return json_close(json);
}
