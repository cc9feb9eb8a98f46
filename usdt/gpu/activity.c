// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/activity.h"

#include <string.h>

#include "usdt/gpu/cupti_abi.h"

/* A stream, an event or a context that a wait does not have. */
#define NONE UINT32_MAX

static uint8_t u8_at(const uint8_t *record, size_t at)
{
	return record[at];
}

static uint16_t u16_at(const uint8_t *record, size_t at)
{
	uint16_t value;

	memcpy(&value, record + at, sizeof(value));
	return value;
}

static uint32_t u32_at(const uint8_t *record, size_t at)
{
	uint32_t value;

	memcpy(&value, record + at, sizeof(value));
	return value;
}

static uint64_t u64_at(const uint8_t *record, size_t at)
{
	uint64_t value;

	memcpy(&value, record + at, sizeof(value));
	return value;
}

static void place_read(struct gpu_operation *operation, const uint8_t *record, size_t device,
		       size_t context, size_t stream)
{
	operation->device_is_known = operation->stream_is_known = true;
	operation->device = u32_at(record, device);
	operation->context = u32_at(record, context);
	operation->stream = u32_at(record, stream);
}

static void kernel_read(struct gpu_operation *operation, const uint8_t *record)
{
	uintptr_t name = (uintptr_t)u64_at(record, 104);

	operation->op = GPU_KERNEL;
	operation->registers = u16_at(record, 6);
	operation->start = u64_at(record, 16);
	operation->end = u64_at(record, 24);
	place_read(operation, record, 40, 44, 48);
	memcpy(operation->grid, record + 52, sizeof(operation->grid));
	memcpy(operation->block, record + 64, sizeof(operation->block));
	operation->shared_bytes = u32_at(record, 76) + u32_at(record, 80);
	operation->correlation = u32_at(record, 92);
	operation->name = (const char *)name;
	operation->queued = u64_at(record, 120);
	operation->submitted = u64_at(record, 128);
	operation->graph_node = u64_at(record, 144);
	operation->graph = u32_at(record, 156);
}

/* The kinds of copies have the names that the probes of cudaMemcpyAsync() print. */
static const char *copy_kind(uint8_t kind)
{
	static const char *const kinds[] = {"unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
					    "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};

	return kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[kind] : kinds[0];
}

static void copy_read(struct gpu_operation *operation, const uint8_t *record)
{
	operation->op = GPU_COPY;
	operation->kind = copy_kind(u8_at(record, 4));
	operation->bytes = u64_at(record, 8);
	operation->start = u64_at(record, 16);
	operation->end = u64_at(record, 24);
	place_read(operation, record, 32, 36, 40);
	operation->correlation = u32_at(record, 44);
	operation->graph_node = u64_at(record, 64);
	operation->graph = u32_at(record, 72);
}

static void peer_read(struct gpu_operation *operation, const uint8_t *record)
{
	copy_read(operation, record);
	operation->correlation = u32_at(record, 60);
	operation->graph_node = u64_at(record, 72);
	operation->graph = u32_at(record, 80);
}

static void set_read(struct gpu_operation *operation, const uint8_t *record)
{
	copy_read(operation, record);
	operation->op = GPU_SET;
	operation->kind = NULL;
}

static void wait_read(struct gpu_operation *operation, const uint8_t *record)
{
	static const char *const kinds[] = {"unknown", "event", "stream wait event", "stream",
					    "context"};
	uint32_t type = u32_at(record, 4);

	operation->op = GPU_WAIT;
	operation->kind = kinds[type < sizeof(kinds) / sizeof(kinds[0]) ? type : 0];
	operation->start = u64_at(record, 8);
	operation->end = u64_at(record, 16);
	operation->correlation = u32_at(record, 24);
	operation->context = u32_at(record, 28);
	operation->stream = u32_at(record, 32);
	operation->stream_is_known = operation->stream != NONE;
	operation->event = u32_at(record, 36);
	operation->has_event = (type == 1 || type == 2) && operation->event != NONE;
}

static void graph_read(struct gpu_operation *operation, const uint8_t *record)
{
	operation->op = GPU_GRAPH;
	operation->correlation = u32_at(record, 4);
	operation->start = u64_at(record, 8);
	operation->end = u64_at(record, 16);
	place_read(operation, record, 24, 32, 36);
	operation->graph = u32_at(record, 28);
}

static void host_read(struct gpu_operation *operation, const uint8_t *record)
{
	operation->op = GPU_HOST;
	operation->stream = u32_at(record, 4);
	operation->stream_is_known = true;
	operation->context = u32_at(record, 8);
	operation->correlation = u32_at(record, 16);
	operation->start = u64_at(record, 32);
	operation->end = u64_at(record, 40);
}

static const struct {
	uint32_t kind;
	uint32_t bytes;
	void (*read)(struct gpu_operation *operation, const uint8_t *record);
} readers[] = {
	{CUPTI_CONCURRENT_KERNEL, CUPTI_KERNEL_BYTES, kernel_read},
	{CUPTI_MEMCPY, CUPTI_MEMCPY_BYTES, copy_read},
	{CUPTI_MEMSET, CUPTI_MEMSET_BYTES, set_read},
	{CUPTI_SYNCHRONIZATION, CUPTI_SYNCHRONIZATION_BYTES, wait_read},
	{CUPTI_GRAPH_TRACE, CUPTI_GRAPH_BYTES, graph_read},
	{CUPTI_MEMCPY_PEER, CUPTI_PEER_BYTES, peer_read},
	{CUPTI_HOST_LAUNCH, CUPTI_HOST_BYTES, host_read},
};

enum activity activity_read(const uint8_t *record, size_t room, struct gpu_operation *operation,
			    struct gpu_context *context)
{
	uint32_t kind = room >= 4 ? u32_at(record, 0) : 0;

	if (kind == CUPTI_CONTEXT && room >= CUPTI_CONTEXT_BYTES) {
		*context = (struct gpu_context){u32_at(record, 4), u32_at(record, 8)};
		return ACTIVITY_CONTEXT;
	}
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		if (kind != readers[i].kind || room < readers[i].bytes)
			continue;
		*operation = (struct gpu_operation){0};
		readers[i].read(operation, record);
		return ACTIVITY_OPERATION;
	}
	return ACTIVITY_UNKNOWN;
}

bool activity_has_times(const struct gpu_operation *operation)
{
	return operation->start && operation->end >= operation->start;
}
