/* SPDX-License-Identifier: Apache-2.0 */
/* A frame of a stack in the JSON of `why` and `report`. */
#ifndef WAFFLE_RENDER_JSON_STACK_FRAME_INTERNAL_H
#define WAFFLE_RENDER_JSON_STACK_FRAME_INTERNAL_H

#include "symbolize/stack_names.h"
#include "util/json.h"

/* Writes {"function", "module", "file", "line", "offset", "inlined"}, without the members that are
 * unknown. The frame must not be `cut`. */
void stack_frame_json(struct json *json, const struct stack_frame *frame);

#endif
