// SPDX-License-Identifier: Apache-2.0
#include "render/json/stragglers_json_internal.h"
#include "render/place.h"

static void rank_fields(struct json *json, const struct stragglers *stragglers, uint32_t index)
{
	const struct model *model = stragglers->model;
	const struct straggler_rank *rank = &stragglers->ranks.data[index];

	json_key(json, "rank");
	if (rank->rank == MODEL_NONE)
		json_null(json);
	else
		json_u64(json, rank->rank);
	if (rank->thread >= model->threads.len)
		return;
	json_field_u64(json, "pid", place_pid(model, rank->thread));
	json_field_u64(json, "tid", place_tid(model, rank->thread));
	json_field_string(json, "comm", model_thread_name(model, rank->thread));
	if (model->host_count > 1)
		json_field_string(json, "host",
				  model->hosts[model_host_of(model, rank->thread)]->name);
}

static void ranks_json(struct json *json, const struct stragglers *stragglers)
{
	json_key(json, "stragglers");
	json_array_begin(json);
	for (uint32_t i = 0; i < stragglers->ranks.len; i++) {
		const struct straggler_rank *rank = &stragglers->ranks.data[i];

		json_object_begin(json);
		rank_fields(json, stragglers, i);
		json_field_u64(json, "made_wait_ns", rank->made_wait_ns);
		json_field_u64(json, "unsure_ns", rank->unsure_ns);
		json_field_u64(json, "waited_ns", rank->waited_ns);
		json_field_u64(json, "last", rank->last);
		json_field_u64(json, "calls", rank->calls);
		json_object_end(json);
	}
	json_array_end(json);
}

static void groups_json(struct json *json, const struct stragglers *stragglers)
{
	json_key(json, "collectives");
	json_array_begin(json);
	for (size_t i = 0; i < stragglers->groups.len; i++) {
		const struct straggler_group *group = &stragglers->groups.data[i];

		json_object_begin(json);
		json_field_string(json, "name", group->name);
		json_field_hex64(json, "communicator", group->comm);
		json_field_u64(json, "ranks", group->nranks);
		json_field_u64(json, "ranks_traced", group->traced);
		json_field_u64(json, "count", group->count);
		json_field_u64(json, "known", group->known);
		json_field_u64(json, "total_ns", group->total_ns);
		json_field_u64(json, "transfer_ns", group->transfer_ns);
		json_field_u64(json, "waiting_ns", group->waiting_ns);
		if (group->worst != MODEL_NONE) {
			json_key(json, "worst");
			json_object_begin(json);
			rank_fields(json, stragglers, group->worst);
			json_field_u64(json, "made_wait_ns", group->worst_ns);
			json_object_end(json);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

static void waits_json(struct json *json, const struct stragglers *stragglers)
{
	json_key(json, "collective_waits");
	json_array_begin(json);
	for (size_t i = 0; i < stragglers->waits.len; i++) {
		const struct straggler_wait *wait = &stragglers->waits.data[i];
		const struct model_collective *collective =
			model_collective_at(stragglers->comm, wait->collective);

		json_object_begin(json);
		json_field_string(json, "name",
				  model_site(stragglers->model, collective->site)->name);
		json_field_hex64(json, "communicator", collective->comm);
		json_field_u64(json, "seq", collective->seq);
		json_field_u64(json, "arrival_ns", wait->ts);
		json_field_u64(json, "made_wait_ns", wait->made_wait_ns);
		json_field_u64(json, "longest_ns", wait->longest_ns);
		json_field_u64(json, "transfer_ns", wait->transfer_ns);
		json_field_bool(json, "sure", wait->sure);
		json_key(json, "last");
		json_object_begin(json);
		rank_fields(json, stragglers, wait->rank);
		json_object_end(json);
		json_object_end(json);
	}
	json_array_end(json);
}

void stragglers_json(struct json *json, const struct stragglers *stragglers)
{
	if (!stragglers->groups.len)
		return;
	ranks_json(json, stragglers);
	groups_json(json, stragglers);
	waits_json(json, stragglers);
}
