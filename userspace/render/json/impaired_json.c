// SPDX-License-Identifier: Apache-2.0
#include "render/json/impaired_json_internal.h"

#include "analyze/impaired.h"
#include "render/text/why_node.h"

static void pids_json(struct json *json, const struct model *model, const struct impaired *impaired)
{
	const char *cgroup = impaired->pids ? impaired_cgroup(model, impaired) : NULL;

	if (impaired->pids)
		json_field_u64(json, "pids", impaired->pids);
	if (cgroup)
		json_field_string(json, "pids_cgroup", cgroup);
}

void impaired_json(struct json *json, const struct model *model)
{
	impaired_list list = {0};

	impaired_find(&list, model);
	if (list.len) {
		json_key(json, "impaired");
		json_array_begin(json);
		for (size_t i = 0; i < list.len; i++) {
			json_object_begin(json);
			why_thread_json(json, model, "thread", list.data[i].thread);
			if (list.data[i].stopped)
				json_field_bool(json, "stopped", true);
			if (list.data[i].descriptors)
				json_field_u64(json, "descriptors", list.data[i].descriptors);
			pids_json(json, model, &list.data[i]);
			json_object_end(json);
		}
		json_array_end(json);
	}
	vec_free(&list);
}
