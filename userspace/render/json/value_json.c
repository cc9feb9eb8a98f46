// SPDX-License-Identifier: Apache-2.0
#include "render/json/value_json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/utf8.h"

static void write_text(struct json *json, const struct value *value)
{
	char text[WAFFLE_STR_MAX + sizeof("…")];
	size_t len = value->text_len, valid;

	if (!value->cut || len > WAFFLE_STR_MAX) {
		json_string_len(json, value->text, len);
		return;
	}
	/* Remove a character that was truncated. */
	valid = utf8_valid(value->text, len);
	if (len - valid < 4)
		len = valid;
	memcpy(text, value->text, len);
	memcpy(text + len, "…", strlen("…"));
	json_string_len(json, text, len + strlen("…"));
}

static void write_value(struct json *json, const struct value *value)
{
	char pointer[24];

	switch (value->type) {
	case WAFFLE_KEY_I64:
		json_i64(json, value->i64);
		break;
	case WAFFLE_KEY_F64:
		json_f64(json, value->f64);
		break;
	case WAFFLE_KEY_BOOL:
		json_bool(json, value->u64 != 0);
		break;
	case WAFFLE_KEY_PTR:
		snprintf(pointer, sizeof(pointer), "0x%" PRIx64, value->u64);
		json_string(json, pointer);
		break;
	case WAFFLE_KEY_DIM3:
		json_array_begin(json);
		for (unsigned i = 0; i < 3; i++)
			json_u64(json, value->dim[i]);
		json_array_end(json);
		break;
	case WAFFLE_KEY_STR:
		if (value->null)
			json_null(json);
		else
			write_text(json, value);
		break;
	default:
		json_u64(json, value->u64);
		break;
	}
}

void value_json_all(struct json *json, struct value_walk walk)
{
	struct value value;

	while (value_walk_next(&walk, &value)) {
		if (value.type == WAFFLE_KEY_CAUSE_SPAN || value.type == WAFFLE_KEY_CAUSE_EVENT ||
		    value.lost)
			continue;
		json_key(json, value.key->name);
		write_value(json, &value);
	}
}
