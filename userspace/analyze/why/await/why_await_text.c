// SPDX-License-Identifier: Apache-2.0
/* Texts for ops and streams: "kernel gemm", "copy HtoD of 4096 bytes", "stream 0x7f01". */
#include <inttypes.h>
#include <string.h>

#include "analyze/why/await/why_await.h"

size_t why_await_function_len(const char *name, size_t len)
{
	size_t at = len;
	int depth = 0;

	if (!len || name[len - 1] != ')')
		return len;
	while (at) {
		at--;
		depth += name[at] == ')' ? 1 : name[at] == '(' ? -1 : 0;
		if (!depth)
			break;
	}
	return at ? at : len;
}

void why_await_put_function(FILE *out, const char *what, const struct value *value)
{
	const char *name = value->text;
	size_t len = value->text_len;

	if (value->type != WAFFLE_KEY_STR || !value->text_len) {
		fprintf(out, "%s 0x%" PRIx64, what, value->u64);
		return;
	}
	if (len > 5 && !memcmp(name, "void ", 5)) {
		name += 5;
		len -= 5;
	}
	fprintf(out, "%s %.*s", what, (int)why_await_function_len(name, len), name);
}

static bool value_of(const struct model *model, const struct model_gpu_op *op, const char *key,
		     struct value *value)
{
	return model_gpu_value(model, op->node, op->index, key, value);
}

bool why_await_bytes(const struct model *model, const struct model_gpu_op *op, uint64_t *bytes)
{
	struct value value;

	if (value_of(model, op, "bytes", &value)) {
		*bytes = value.u64;
		return true;
	}
	if (!value_of(model, op, "width", &value))
		return false;
	*bytes = value.u64;
	*bytes *= value_of(model, op, "height", &value) ? value.u64 : 1;
	*bytes *= value_of(model, op, "depth", &value) ? value.u64 : 1;
	return true;
}

static void put_bytes(FILE *out, const struct model *model, const struct model_gpu_op *op)
{
	uint64_t bytes;

	if (why_await_bytes(model, op, &bytes))
		fprintf(out, " of %" PRIu64 " bytes", bytes);
}

static const char *name_of(const struct model *model, const struct model_gpu_op *op)
{
	uint32_t site = op->node == MODEL_NODE_SPAN ? model->spans.data[op->index].site
						    : model->events.data[op->index].site;

	return model_site(model, site)->name;
}

void why_await_put_op(FILE *out, const struct model *model, const struct model_gpu_op *op)
{
	struct value value;

	switch (op->role) {
	case SITE_ROLE_LAUNCH:
		if (value_of(model, op, "kernel", &value))
			why_await_put_function(out, "kernel", &value);
		else if (op->host && value_of(model, op, "host", &value))
			why_await_put_function(out, "host function", &value);
		else
			fputs(name_of(model, op), out);
		break;
	case SITE_ROLE_COPY:
		fputs("copy", out);
		if (value_of(model, op, "kind", &value) && value.type == WAFFLE_KEY_STR)
			fprintf(out, " %.*s", (int)value.text_len, value.text);
		put_bytes(out, model, op);
		break;
	case SITE_ROLE_SET:
		fputs("set", out);
		put_bytes(out, model, op);
		break;
	default:
		fputs(name_of(model, op), out);
	}
}

/* 1 and 2 are the handles cudaStreamLegacy and cudaStreamPerThread. */
void why_await_put_stream(FILE *out, uint64_t stream)
{
	if (stream <= 1)
		fputs("the default stream", out);
	else if (stream == 2)
		fputs("its thread's default stream", out);
	else
		fprintf(out, "stream 0x%" PRIx64, stream);
}
