// SPDX-License-Identifier: Apache-2.0
#include "render/json/span_stack.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct stack_names *span_stack_open(const struct model *model)
{
	return model->stacks.len ? stack_names_open(model->reader, true) : NULL;
}

struct json_frames {
	struct json *json;
	bool cut;
};

static void frame_json(const struct stack_frame *frame, void *arg)
{
	struct json_frames *frames = arg;
	struct json *json = frames->json;
	char offset[24];

	if (frame->cut) {
		frames->cut = true;
		return;
	}
	json_object_begin(json);
	if (frame->function)
		json_field_string(json, "function", frame->function);
	if (frame->file)
		json_field_string(json, "file", frame->file);
	if (frame->line)
		json_field_u64(json, "line", frame->line);
	if (frame->module)
		json_field_string(json, "module", frame->module);
	if (!frame->function) {
		snprintf(offset, sizeof(offset), "0x%" PRIx64, frame->offset);
		json_field_string(json, "offset", offset);
	}
	if (frame->inlined)
		json_field_bool(json, "inlined", true);
	json_object_end(json);
}

static void stack_json(struct json *json, struct stack_names *names, const char *prefix,
		       const char *key, uint32_t number, uint64_t ts)
{
	struct json_frames frames = {.json = json};
	char whole[40];

	if (!number)
		return;
	snprintf(whole, sizeof(whole), "%s%s", prefix, key);
	json_key(json, whole);
	json_array_begin(json);
	stack_names_all(names, number, ts, frame_json, &frames);
	json_array_end(json);
	if (!frames.cut)
		return;
	snprintf(whole, sizeof(whole), "%s%s_cut", prefix, key);
	json_field_bool(json, whole, true);
}

void span_stack_json(struct json *json, const struct model *model, struct stack_names *names,
		     const char *prefix, uint64_t id)
{
	const struct model_stack *stack = names ? model_stack_of(model, id) : NULL;

	if (!stack)
		return;
	stack_json(json, names, prefix, "python_stack", stack->python_stack, stack->ts);
	stack_json(json, names, prefix, "user_stack", stack->user_stack, stack->ts);
	stack_json(json, names, prefix, "kernel_stack", stack->kernel_stack, stack->ts);
}
