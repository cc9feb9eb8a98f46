// SPDX-License-Identifier: Apache-2.0
#include "render/json/stack_frame_internal.h"

void stack_frame_json(struct json *json, const struct stack_frame *frame)
{
	json_object_begin(json);
	if (frame->function)
		json_field_string(json, "function", frame->function);
	if (frame->module)
		json_field_string(json, "module", frame->module);
	if (frame->file)
		json_field_string(json, "file", frame->file);
	if (frame->line)
		json_field_u64(json, "line", frame->line);
	json_field_hex64(json, "offset", frame->offset);
	if (frame->inlined)
		json_field_bool(json, "inlined", true);
	json_object_end(json);
}
