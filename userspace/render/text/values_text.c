// SPDX-License-Identifier: Apache-2.0
#include "render/text/values_text_internal.h"

#include <inttypes.h>
#include <string.h>

#include "util/terminal.h"

/* Number of bytes shown of a string value. */
#define KEY_TEXT_MAX 40

static void put(FILE *out, const char *text)
{
	terminal_put(out, text, strlen(text));
}

static void put_text_value(FILE *out, const struct value *value)
{
	size_t shown = value->text_len < KEY_TEXT_MAX ? value->text_len : KEY_TEXT_MAX;

	if (value->null)
		put(out, value->lost ? "?" : "NULL");
	else
		terminal_put(out, value->text, shown);
	if (value->cut || shown < value->text_len)
		fputs("…", out);
}

static void put_value(FILE *out, const struct value *value)
{
	put(out, value->key->name);
	fputc('=', out);
	switch (value->type) {
	case WAFFLE_KEY_STR:
		put_text_value(out, value);
		break;
	case WAFFLE_KEY_F64:
		fprintf(out, "%g", value->f64);
		break;
	case WAFFLE_KEY_BOOL:
		fputs(value->u64 ? "true" : "false", out);
		break;
	case WAFFLE_KEY_I64:
		fprintf(out, "%" PRId64, value->i64);
		break;
	case WAFFLE_KEY_U64:
		fprintf(out, "%" PRIu64, value->u64);
		break;
	case WAFFLE_KEY_DIM3:
		fprintf(out, "[%u,%u,%u]", value->dim[0], value->dim[1], value->dim[2]);
		break;
	default:
		fprintf(out, "0x%" PRIx64, value->u64);
		break;
	}
}

void values_put(FILE *out, const struct model *model, uint32_t site, uint32_t frame)
{
	struct value_walk walk = model_values(model, site, frame);
	struct value value;

	while (value_walk_next(&walk, &value)) {
		if (value.type == WAFFLE_KEY_CAUSE_SPAN || value.type == WAFFLE_KEY_CAUSE_EVENT)
			continue;
		fputs("  ", out);
		put_value(out, &value);
	}
}
