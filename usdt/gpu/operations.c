// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/operations.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "usdt/gpu/fields.h"
#include "usdt/gpu/kernel_names.h"
#include "util/keymap.h"
#include "util/vec.h"
#include "waffle_track.h"

/* Streams with a track of their own, of the 65,536 tracks that a process may have. Streams beyond
 * this number share one track for each GPU; the key `stream` still says which one it was. */
#define STREAMS_MAX 4096u
/* Of names that were made for one kind of operation, each with other keys. */
#define SHAPES_MAX 256u

struct context_device {
	uint32_t context, device;
};

static struct {
	waffle_name_t *names[GPU_NAMES];
	struct keymap streams; /* device, stream → index in `tracks` */
	VEC(waffle_track_t *) tracks;
	VEC(struct context_device) contexts;
	struct {
		uint32_t shape;
		waffle_name_t *name;
	} shapes[SHAPES_MAX];
	unsigned shape_count;
} all;

static const waffle_key_t session_keys[] = {
	{WAFFLE_KEY_STR, "state"},   {WAFFLE_KEY_BOOL, "simulated"},
	{WAFFLE_KEY_U64, "cupti"},   {WAFFLE_KEY_STR, "reason"},
	{WAFFLE_KEY_STR, "holder"},  {WAFFLE_KEY_U64, "clock_error_ns"},
	{WAFFLE_KEY_U64, "dropped"}, {WAFFLE_KEY_U64, "zero_times"},
	{WAFFLE_KEY_U64, "clamped"}, {WAFFLE_KEY_U64, "unknown"},
};
static const waffle_key_t call_keys[] = {
	{WAFFLE_KEY_U64, "correlation"},
	{WAFFLE_KEY_STR, "function"},
};
static const waffle_key_t stream_call_keys[] = {
	{WAFFLE_KEY_U64, "correlation"},
	{WAFFLE_KEY_STR, "function"},
	{WAFFLE_KEY_PTR, "handle"},
};
static const waffle_key_t event_call_keys[] = {
	{WAFFLE_KEY_U64, "correlation"},
	{WAFFLE_KEY_STR, "function"},
	{WAFFLE_KEY_PTR, "event"},
};
static const waffle_key_t capture_keys[] = {
	{WAFFLE_KEY_U64, "graph"},
	{WAFFLE_KEY_U64, "graph_node"},
	{WAFFLE_KEY_U64, "from_graph"},
};
static const waffle_key_t event_keys[] = {
	{WAFFLE_KEY_PTR, "event"},
	{WAFFLE_KEY_PTR, "handle"},
};
static const waffle_key_t create_keys[] = {
	{WAFFLE_KEY_PTR, "handle"},
	{WAFFLE_KEY_U64, "flags"},
};
static const waffle_key_t end_keys[] = {
	{WAFFLE_KEY_PTR, "handle"},
	{WAFFLE_KEY_U64, "result"},
};

#define KEYS(keys) keys, sizeof(keys) / sizeof((keys)[0])

/* Events. Those of one name differ in what is known. model/gpu/gpu.c knows the names of calls that
 * order streams. */
static const struct {
	const char *name;
	const waffle_key_t *keys;
	unsigned count;
} events[] = {
	[GPU_NAME_SESSION] = {"session", KEYS(session_keys)},
	[GPU_NAME_LAUNCH] = {"launch", KEYS(stream_call_keys)},
	[GPU_NAME_LAUNCH_UNPLACED] = {"launch", KEYS(call_keys)},
	[GPU_NAME_CAPTURE] = {"capture", KEYS(capture_keys)},
	[GPU_NAME_WAIT_CALL] = {"wait", KEYS(call_keys)},
	[GPU_NAME_WAIT_FOR_STREAM] = {"wait", KEYS(stream_call_keys)},
	[GPU_NAME_WAIT_FOR_EVENT] = {"wait", KEYS(event_call_keys)},
	[GPU_NAME_EVENT_RECORD] = {"event record", KEYS(event_keys)},
	[GPU_NAME_CONTEXT_RECORD] = {"event record", event_keys, 1},
	[GPU_NAME_STREAM_WAIT] = {"stream wait", KEYS(event_keys)},
	[GPU_NAME_CONTEXT_WAIT] = {"stream wait", event_keys, 1},
	[GPU_NAME_STREAM_CREATE] = {"stream create", KEYS(create_keys)},
	[GPU_NAME_CAPTURE_BEGIN] = {"capture begin", create_keys, 1},
	[GPU_NAME_CAPTURE_END] = {"capture end", KEYS(end_keys)},
};
#define EVENTS (sizeof(events) / sizeof(events[0]))

static waffle_name_t *name_make(int kind, const char *name, const waffle_key_t *keys,
				unsigned count)
{
	return waffle_name(&(struct waffle_name_spec){.size = sizeof(struct waffle_name_spec),
						      .kind = kind,
						      .name = name,
						      .category = "gpu",
						      .keys = keys,
						      .key_count = count});
}

static const char *op_name(enum gpu_op op)
{
	static const char *const names[GPU_OPS] = {"kernel",      "copy",  "set",
						   "synchronize", "graph", "host function"};

	return names[op];
}

/* The name of an operation that has no name of its own. */
static waffle_name_t *shape_name(const struct gpu_operation *operation, const struct fields *fields)
{
	for (unsigned i = 0; i < all.shape_count; i++)
		if (all.shapes[i].shape == fields->shape)
			return all.shapes[i].name;
	if (all.shape_count < SHAPES_MAX) {
		all.shapes[all.shape_count].shape = fields->shape;
		all.shapes[all.shape_count].name = name_make(
			WAFFLE_SITE_SPAN, op_name(operation->op), fields->keys, fields->count);
		return all.shapes[all.shape_count++].name;
	}
	return name_make(WAFFLE_SITE_SPAN, op_name(operation->op), fields->keys, fields->count);
}

/* With the keys that most of these operations have. */
static waffle_name_t *usual_name(enum gpu_op op)
{
	struct gpu_operation usual = {
		.op = op, .device_is_known = true, .stream_is_known = true, .kind = ""};
	struct fields fields;

	fields_make(&fields, &usual, false);
	return shape_name(&usual, &fields);
}

waffle_name_t *const *operations_names(void)
{
	if (all.names[0])
		return all.names;
	/* The session is the first one: a tracer arms names in this order, and wakes us at each of
	 * them. */
	for (unsigned i = 0; i < EVENTS; i++)
		all.names[i] = name_make(WAFFLE_SITE_EVENT, events[i].name, events[i].keys,
					 events[i].count);
	all.names[GPU_NAME_COPY] = usual_name(GPU_COPY);
	all.names[GPU_NAME_SET] = usual_name(GPU_SET);
	all.names[GPU_NAME_WAIT] = usual_name(GPU_WAIT);
	all.names[GPU_NAME_GRAPH] = usual_name(GPU_GRAPH);
	all.names[GPU_NAME_HOST] = usual_name(GPU_HOST);
	return all.names;
}

void operations_simulate(void)
{
	for (unsigned i = 0; i < EVENTS; i++) {
		waffle_key_t keys[WAFFLE_KEYS_MAX];

		if (i == GPU_NAME_SESSION) /* it always says whether it is */
			continue;
		memcpy(keys, events[i].keys, events[i].count * sizeof(*keys));
		keys[events[i].count] = (waffle_key_t){WAFFLE_KEY_BOOL, "simulated"};
		all.names[i] =
			name_make(WAFFLE_SITE_EVENT, events[i].name, keys, events[i].count + 1);
	}
}

void operations_context(const struct gpu_context *context)
{
	for (size_t i = 0; i < all.contexts.len; i++) {
		if (all.contexts.data[i].context == context->context) {
			all.contexts.data[i].device = context->device;
			return;
		}
	}
	(void)vec_push(&all.contexts, ((struct context_device){context->context, context->device}));
}

/* What CUPTI says of one operation of a context holds for those of which it says nothing. */
static void device_find(struct gpu_operation *operation)
{
	if (operation->device_is_known) {
		static uint32_t latest = UINT32_MAX;

		if (latest != operation->context)
			operations_context(
				&(struct gpu_context){operation->context, operation->device});
		latest = operation->context;
		return;
	}
	for (size_t i = 0; i < all.contexts.len; i++) {
		if (all.contexts.data[i].context != operation->context)
			continue;
		operation->device = all.contexts.data[i].device;
		operation->device_is_known = true;
	}
}

static waffle_track_t *track_make(const struct gpu_operation *operation, bool own)
{
	char name[32], group[32];

	if (!operation->stream_is_known)
		snprintf(name, sizeof(name), "synchronize");
	else if (own)
		snprintf(name, sizeof(name), "stream %" PRIu32, operation->stream);
	else
		snprintf(name, sizeof(name), "other streams");
	if (operation->device_is_known)
		snprintf(group, sizeof(group), "GPU %" PRIu32, operation->device);
	else
		snprintf(group, sizeof(group), "GPU unknown");
	return waffle_track(name, group, NULL);
}

static waffle_track_t *track_of(const struct gpu_operation *operation)
{
	uint32_t key[3] = {operation->device_is_known ? operation->device : UINT32_MAX,
			   operation->stream, operation->stream_is_known};
	uint32_t at = keymap_get(&all.streams, key, sizeof(key));
	waffle_track_t *track;

	if (at != MAP_NONE)
		return all.tracks.data[at];
	if (all.tracks.len >= STREAMS_MAX)
		return track_make(operation, false);
	track = track_make(operation, true);
	if (vec_push(&all.tracks, track) &&
	    !keymap_set(&all.streams, key, sizeof(key), (uint32_t)all.tracks.len - 1))
		all.tracks.len--;
	return track;
}

void operations_write(const struct gpu_operation *operation, bool clamped)
{
	struct gpu_operation own = *operation;
	struct fields fields;
	waffle_name_t *name;

	device_find(&own);
	fields_make(&fields, &own, clamped);
	name = own.op == GPU_KERNEL ? kernel_name(own.name, &fields) : shape_name(&own, &fields);
	if (waffle_name_armed(name))
		waffle_span_complete(track_of(&own), name, own.start, own.end - own.start,
				     fields.values, fields.count);
}
