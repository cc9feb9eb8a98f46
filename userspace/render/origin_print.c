// SPDX-License-Identifier: Apache-2.0
#include "render/origin_print.h"

#include <inttypes.h>

#include "render/json/summary_json.h"
#include "render/text/why_node.h"
#include "util/terminal.h"

/* Limit of the indentation; deeper lines are not indented further. */
#define INDENT_MAX 40

static const char *const via_texts[] = {
	[ORIGIN_START] = "",
	[ORIGIN_LINK] = "caused by ",
	[ORIGIN_INSIDE] = "inside of ",
};

static void print_node(const struct why_printer *printer, const struct origin_node *node)
{
	uint32_t depth = node->depth < INDENT_MAX ? node->depth : INDENT_MAX;

	fprintf(printer->out, "%*s%s", 2 * (int)depth, "", via_texts[node->via]);
	why_paint(printer, node->root || !node->depth ? TERMINAL_BOLD : TERMINAL_END);
	why_put_node(printer, node->kind, node->index, node->id);
	why_paint(printer, TERMINAL_END);
	if (node->record)
		fprintf(printer->out, ", record %" PRIu64, node->record);
	if (node->repeated)
		fputs(" (see above)", printer->out);
	else if (node->root && node->index != MODEL_NONE)
		fputs(node->depth ? " (the origin)" : " (it has no link to a cause)", printer->out);
	fputc('\n', printer->out);
}

void origin_print_text(const struct origin *origin, const struct why_view *view, FILE *out)
{
	const struct why_printer printer = {.model = origin->model, .view = view, .out = out};

	for (size_t i = 0; i < origin->nodes.len; i++)
		print_node(&printer, &origin->nodes.data[i]);
	why_print_records(&printer);
}

int origin_print_json(const struct origin *origin, FILE *out)
{
	struct json *json = json_new(out, true);

	json_object_begin(json);
	json_key(json, "instances");
	json_array_begin(json);
	json_array_end(json);
	json_key(json, "origin");
	json_array_begin(json);
	for (size_t i = 0; i < origin->nodes.len; i++) {
		const struct origin_node *node = &origin->nodes.data[i];

		json_object_begin(json);
		why_node_fields(json, origin->model, node->kind, node->index, node->id);
		json_field_u64(json, "depth", node->depth);
		json_field_string(json, "via", origin_via_names[node->via]);
		json_field_bool(json, "root", node->root);
		if (node->record)
			json_field_u64(json, "record", node->record);
		json_field_bool(json, "repeated", node->repeated);
		json_object_end(json);
	}
	json_array_end(json);
	summary_json_filter(json, origin->model);
	summary_json_records(json, origin->model);
	json_object_end(json);
	return json_close(json);
}
