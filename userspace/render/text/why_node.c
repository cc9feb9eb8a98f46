// SPDX-License-Identifier: Apache-2.0
#include "render/text/why_node.h"

#include <inttypes.h>

#include "render/place.h"
#include "util/terminal.h"

static const char *kind_name(uint8_t kind)
{
	return kind == MODEL_NODE_SPAN ? "span" : "event";
}

void why_put_node(const struct why_printer *printer, uint8_t kind, uint32_t index, uint64_t id)
{
	struct model_node node;

	fprintf(printer->out, "%s ", kind_name(kind));
	if (!model_node_find(printer->model, kind, index, &node)) {
		fprintf(printer->out, "%016" PRIx64 ", which is not in the capture", id);
		return;
	}
	why_put(printer, model_site(printer->model, node.site)->name);
	fprintf(printer->out, " %016" PRIx64 " of ", id);
	why_put_thread(printer, node.thread);
	fputs(", at ", printer->out);
	why_put_time(printer, node.ts);
}

static void field_null(struct json *json, const char *key)
{
	json_key(json, key);
	json_null(json);
}

void why_thread_fields(struct json *json, const struct model *model, uint32_t thread)
{
	if (thread >= model->threads.len) {
		field_null(json, "pid");
		field_null(json, "tid");
		field_null(json, "comm");
		return;
	}
	json_field_u64(json, "pid", place_pid(model, thread));
	json_field_u64(json, "tid", place_tid(model, thread));
	json_field_string(json, "comm", model_thread_name(model, thread));
	place_json(json, model, thread);
}

void why_thread_json(struct json *json, const struct model *model, const char *key, uint32_t thread)
{
	json_key(json, key);
	if (thread >= model->threads.len) {
		json_null(json);
		return;
	}
	json_object_begin(json);
	why_thread_fields(json, model, thread);
	json_object_end(json);
}

void why_node_fields(struct json *json, const struct model *model, uint8_t kind, uint32_t index,
		     uint64_t id)
{
	struct model_node node = {.thread = MODEL_NONE};
	bool found = model_node_find(model, kind, index, &node);

	json_field_string(json, "kind", kind_name(kind));
	if (found) {
		json_field_string(json, "name", model_site(model, node.site)->name);
		json_field_u64(json, "start_ns", node.ts);
	} else {
		field_null(json, "name");
		field_null(json, "start_ns");
	}
	json_field_hex64(json, "id", id);
	json_key(json, "thread");
	json_object_begin(json);
	why_thread_fields(json, model, node.thread);
	json_object_end(json);
}
