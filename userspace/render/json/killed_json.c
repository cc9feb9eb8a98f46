// SPDX-License-Identifier: Apache-2.0
#include "render/json/killed_json_internal.h"

#include "analyze/killed.h"
#include "render/text/why_node.h"
#include "util/signal_names.h"

static void group_json(struct json *json, const struct model *model, const struct killed *killed)
{
	const char *name = signal_name(killed->signo);

	json_object_begin(json);
	json_field_u64(json, "processes", killed->count);
	why_thread_json(json, model, "longest", killed->thread);
	why_thread_json(json, model, "parent", killed->parent);
	json_field_u64(json, "signo", killed->signo);
	if (name)
		json_field_string(json, "signal", name);
	if (killed->lived_ns)
		json_field_u64(json, "lived_ns", killed->lived_ns);
	json_object_end(json);
}

void killed_json(struct json *json, const struct model *model)
{
	killed_list list = {0};

	killed_find(&list, model);
	if (list.len) {
		json_key(json, "killed");
		json_array_begin(json);
		for (size_t i = 0; i < list.len; i++)
			group_json(json, model, &list.data[i]);
		json_array_end(json);
	}
	vec_free(&list);
}
