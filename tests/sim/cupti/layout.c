// SPDX-License-Identifier: Apache-2.0
#include "cupti/layout.h"

#include <string.h>

#include "cupti/settings.h"

#define UNKNOWN_KIND 99
#define UNKNOWN_BYTES 72

/* Bytes of a record in CUDA 12.4, 12.9, 13.0 and 13.5. 0: that version has none. */
static const struct {
	uint32_t kind;
	uint16_t bytes[4];
} sizes[] = {
	{10, {208, 208, 216, 248}}, {1, {88, 88, 96, 112}}, {22, {96, 96, 96, 96}},
	{2, {88, 88, 88, 104}},     {38, {40, 56, 56, 56}}, {LAYOUT_GRAPH, {56, 56, 56, 56}},
	{58, {0, 0, 0, 48}},        {9, {16, 16, 16, 16}},  {UNKNOWN_KIND, {72, 72, 72, 72}},
};

size_t layout_bytes(uint32_t kind)
{
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i].kind == kind)
			return sizes[i].bytes[settings()->row];
	return 0;
}

uint32_t layout_kind(const uint8_t *record)
{
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	return kind;
}

bool layout_has(int kind)
{
	return kind > 0 && kind != UNKNOWN_KIND && layout_bytes((uint32_t)kind);
}

static void put32(struct layout_record *record, size_t at, uint32_t value)
{
	memcpy(record->data + at, &value, sizeof(value));
}

static void put64(struct layout_record *record, size_t at, uint64_t value)
{
	memcpy(record->data + at, &value, sizeof(value));
}

static void times_put(struct layout_record *record, size_t at, const struct layout_op *op)
{
	put64(record, at, op->start);
	put64(record, at + 8, op->end);
}

/* Device 0 and context 1. */
static void place_put(struct layout_record *record, size_t device, size_t context, size_t stream,
		      const struct layout_op *op)
{
	put32(record, device, 0);
	put32(record, context, 1);
	put32(record, stream, op->stream);
}

static void kernel_put(struct layout_record *record, const struct layout_op *op)
{
	const struct op_about *about = &op->about;

	record->data[6] = 42; /* registers */
	times_put(record, 16, op);
	place_put(record, 40, 44, 48, op);
	memcpy(record->data + 52, about->grid, 12);
	memcpy(record->data + 64, about->block, 12);
	put32(record, 76, 16); /* static shared memory */
	put32(record, 80, about->shared);
	put32(record, 92, about->correlation);
	put64(record, 104, (uintptr_t)about->name);
	put64(record, 144, about->node);
	put32(record, 156, about->graph);
}

static void copy_put(struct layout_record *record, const struct layout_op *op)
{
	bool peer = record->kind == 22;

	record->data[4] = (uint8_t)op->about.kind;
	put64(record, 8, op->about.bytes);
	times_put(record, 16, op);
	place_put(record, 32, 36, 40, op);
	put32(record, peer ? 60 : 44, op->about.correlation);
	put64(record, peer ? 72 : 64, op->about.node);
	put32(record, peer ? 80 : 72, op->about.graph);
}

static void wait_put(struct layout_record *record, const struct layout_op *op)
{
	put32(record, 4, op->about.kind);
	times_put(record, 8, op);
	put32(record, 24, op->about.correlation);
	put32(record, 28, 1);
	put32(record, 32, op->stream);
	put32(record, 36, op->about.kind <= 2 ? 5 : UINT32_MAX);
}

static void graph_put(struct layout_record *record, const struct layout_op *op)
{
	put32(record, 4, op->about.correlation);
	times_put(record, 8, op);
	place_put(record, 24, 32, 36, op);
	put32(record, 28, op->about.graph);
}

static void host_put(struct layout_record *record, const struct layout_op *op)
{
	put32(record, 4, op->stream);
	put32(record, 8, 1);
	put32(record, 16, op->about.correlation);
	times_put(record, 32, op);
}

struct layout_record layout_make(const struct layout_op *op)
{
	static const struct {
		uint32_t kind;
		void (*put)(struct layout_record *record, const struct layout_op *op);
	} makers[] = {
		[SIM_KERNEL] = {10, kernel_put}, [SIM_COPY] = {1, copy_put},
		[SIM_SET] = {2, copy_put},       [SIM_WAIT] = {38, wait_put},
		[SIM_HOST] = {58, host_put},
	};
	struct layout_record record = {0};
	enum sim_op what = op->about.op;

	if (what == SIM_NOT_SEEN)
		return record;
	record.kind = op->is_graph                               ? LAYOUT_GRAPH
		      : what == SIM_COPY && op->about.kind == 10 ? 22
								 : makers[what].kind;
	record.bytes = layout_bytes(record.kind);
	memcpy(record.data, &record.kind, sizeof(record.kind));
	(op->is_graph ? graph_put : makers[what].put)(&record, op);
	return record;
}

struct layout_record layout_unknown(void)
{
	struct layout_record record = {.kind = UNKNOWN_KIND, .bytes = UNKNOWN_BYTES};

	memcpy(record.data, &record.kind, sizeof(record.kind));
	return record;
}
