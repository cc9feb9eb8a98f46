/* SPDX-License-Identifier: Apache-2.0 */
/* The values of a frame in JSON. It needs no model. */
#ifndef WAFFLE_RENDER_JSON_VALUE_JSON_H
#define WAFFLE_RENDER_JSON_VALUE_JSON_H

#include "target/elf/site.h"
#include "util/json.h"

/*
 * Writes the values as members of the open object, without the ids of causes. Pointers are strings
 * "0x…" and null strings are null. A truncated string ends with "…", and three dimensions are an
 * array.
 */
void value_json_all(struct json *json, struct value_walk walk);

#endif
