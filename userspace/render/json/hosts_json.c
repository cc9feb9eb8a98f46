// SPDX-License-Identifier: Apache-2.0
#include "render/json/hosts_json.h"

static const char *clock_kind_name(enum store_clock_kind kind)
{
	static const char *const names[] = {
		[STORE_CLOCK_REFERENCE] = "reference",
		[STORE_CLOCK_WALL] = "wall",
		[STORE_CLOCK_ALIGNED] = "aligned",
		[STORE_CLOCK_NONE] = "none",
	};

	return (unsigned)kind < sizeof(names) / sizeof(*names) ? names[kind] : "none";
}

static void clock_json(struct json *json, const struct store_clock *clock)
{
	json_object_begin(json);
	json_field_string(json, "kind", clock_kind_name(clock->kind));
	json_field_i64(json, "offset_ns", clock->offset_ns);
	json_field_f64(json, "drift", clock->drift);
	json_field_u64(json, "at_ns", clock->at_ts);
	json_key(json, "error_ns");
	if (clock->error_ns == UINT64_MAX)
		json_null(json);
	else
		json_u64(json, clock->error_ns);
	json_field_u64(json, "collectives", clock->collectives);
	json_key(json, "errors");
	json_array_begin(json);
	for (uint32_t i = 0; i < clock->error_count; i++) {
		json_object_begin(json);
		json_field_u64(json, "at_ns", clock->errors[i].ts);
		json_field_u64(json, "error_ns", clock->errors[i].ns);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

void hosts_json(struct json *json, const struct model *model)
{
	if (model->host_count < 2)
		return;
	json_key(json, "hosts");
	json_array_begin(json);
	for (uint32_t i = 0; i < model->host_count; i++) {
		const struct store_host *host = model->hosts[i];

		json_object_begin(json);
		json_field_string(json, "name", host->name);
		json_field_string(json, "boot_id", host->boot_id);
		json_field_string(json, "kernel", host->kernel);
		json_field_string(json, "machine", host->machine);
		json_field_u64(json, "cpu_base", host->cpu_base);
		json_field_u64(json, "cpus", host->cpu_count);
		json_key(json, "clock");
		clock_json(json, &host->clock);
		json_object_end(json);
	}
	json_array_end(json);
}
