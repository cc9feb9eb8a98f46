/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads CUPTI's activity records. They are memory of another library, whose version may be newer
 * than what is known here: a record is read up to the bytes that it is known to have, and a kind
 * that is not known is skipped.
 */
#ifndef WAFFLE_USDT_GPU_ACTIVITY_H
#define WAFFLE_USDT_GPU_ACTIVITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gpu_op { GPU_KERNEL, GPU_COPY, GPU_SET, GPU_WAIT, GPU_GRAPH, GPU_HOST, GPU_OPS };

/* An operation of a GPU, or a call that waits for one. Times are in ns of CUPTI's clock. What a
 * kind of operation does not have is 0. */
struct gpu_operation {
	enum gpu_op op;
	bool device_is_known; /* otherwise it is that of the context */
	bool stream_is_known; /* a wait for all of a device has none */
	uint32_t device, context, stream, correlation;
	uint64_t start, end;
	uint64_t queued, submitted; /* 0: not measured */
	const char *name;           /* of a kernel, mangled; CUPTI's string */
	const char *kind;           /* of a copy, or what a wait waits for */
	int32_t grid[3], block[3];
	uint32_t shared_bytes, registers;
	uint64_t bytes;
	uint32_t graph;
	uint64_t graph_node; /* 0: not in a graph */
	uint32_t event;      /* of a wait for an event */
	bool has_event;
	bool simulated; /* by a stand-in of CUPTI */
};

/* A context and the device that it is on. */
struct gpu_context {
	uint32_t context, device;
};

enum activity {
	ACTIVITY_OPERATION,
	ACTIVITY_CONTEXT,
	ACTIVITY_UNKNOWN, /* a kind that is not read, or too short a record */
};

/* Reads the record of which `room` bytes are readable. */
enum activity activity_read(const uint8_t *record, size_t room, struct gpu_operation *operation,
			    struct gpu_context *context);

/* Whether the times of an operation can be those of something that has happened. */
bool activity_has_times(const struct gpu_operation *operation);

#endif
