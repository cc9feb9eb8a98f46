// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/fields.h"

#include <string.h>

static void add(struct fields *fields, char type, const char *key, waffle_value_t value)
{
	fields->keys[fields->count] = (waffle_key_t){type, key};
	fields->values[fields->count++] = value;
}

static void add_number(struct fields *fields, const char *key, uint64_t value)
{
	add(fields, WAFFLE_KEY_U64, key, waffle_u64(value));
}

static void add_text(struct fields *fields, const char *key, const char *text)
{
	add(fields, WAFFLE_KEY_STR, key, waffle_str(text));
}

/* Adds a part that not all operations of this kind have. */
static bool has(struct fields *fields, unsigned bit, bool is_there)
{
	fields->shape |= (uint32_t)is_there << bit;
	return is_there;
}

static char *number_put(char *to, uint32_t number)
{
	char digits[10];
	unsigned count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while (number /= 10);
	while (count)
		*to++ = digits[--count];
	return to;
}

/* "x,y,z", as the probes print a dim3 */
static const char *size_put(char *text, const int32_t size[3])
{
	char *to = text;

	for (unsigned i = 0; i < 3; i++) {
		if (i)
			*to++ = ',';
		to = number_put(to, (uint32_t)size[i]);
	}
	*to = '\0';
	return text;
}

static void add_kernel(struct fields *fields, const struct gpu_operation *operation)
{
	add_text(fields, "grid", size_put(fields->grid, operation->grid));
	add_text(fields, "block", size_put(fields->block, operation->block));
	add_number(fields, "shared_bytes", operation->shared_bytes);
	add_number(fields, "registers", operation->registers);
}

static void add_own(struct fields *fields, const struct gpu_operation *operation)
{
	if (operation->op == GPU_KERNEL)
		add_kernel(fields, operation);
	if (operation->op == GPU_COPY || operation->op == GPU_WAIT)
		add_text(fields, "kind", operation->kind);
	if (operation->op == GPU_COPY || operation->op == GPU_SET)
		add_number(fields, "bytes", operation->bytes);
}

static void add_graph(struct fields *fields, const struct gpu_operation *operation)
{
	bool node = has(fields, 8, operation->graph_node != 0);

	if (node || operation->op == GPU_GRAPH)
		add_number(fields, "graph", operation->graph);
	if (node)
		add_number(fields, "graph_node", operation->graph_node);
}

void fields_make(struct fields *fields, const struct gpu_operation *operation, bool clamped)
{
	static const char *const ops[GPU_OPS] = {"kernel", "copy", "set", "wait", "graph", "host"};

	fields->count = 0;
	fields->shape = operation->op;
	add_text(fields, "op", ops[operation->op]);
	if (has(fields, 9, operation->device_is_known))
		add_number(fields, "device", operation->device);
	add_number(fields, "context", operation->context);
	if (has(fields, 10, operation->stream_is_known))
		add_number(fields, "stream", operation->stream);
	add_number(fields, "correlation", operation->correlation);
	add_own(fields, operation);
	add_graph(fields, operation);
	if (has(fields, 11, operation->queued != 0))
		add_number(fields, "queued_ns", operation->queued);
	if (has(fields, 12, operation->submitted != 0))
		add_number(fields, "submitted_ns", operation->submitted);
	if (has(fields, 13, operation->has_event))
		add_number(fields, "event", operation->event);
	if (has(fields, 14, clamped))
		add(fields, WAFFLE_KEY_BOOL, "clamped", waffle_bool(true));
	if (has(fields, 15, operation->simulated))
		add(fields, WAFFLE_KEY_BOOL, "simulated", waffle_bool(true));
}
