/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes operations of GPUs as spans: "what ran" on the track "stream S" of the group "GPU D"
 * (docs/gpu.md). Only one thread may call these functions.
 */
#ifndef WAFFLE_USDT_GPU_OPERATIONS_H
#define WAFFLE_USDT_GPU_OPERATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "usdt/gpu/activity.h"
#include "waffle_named.h"

/* What the names that are made at the start are for: while one of them is armed, somebody records
 * operations. Names of kernels are made when they come. */
enum gpu_name {
	GPU_NAME_SESSION,
	GPU_NAME_LAUNCH,
	GPU_NAME_LAUNCH_UNPLACED, /* on an unknown stream */
	GPU_NAME_CAPTURE,
	GPU_NAME_WAIT_CALL,
	GPU_NAME_WAIT_FOR_STREAM,
	GPU_NAME_WAIT_FOR_EVENT,
	GPU_NAME_EVENT_RECORD,
	GPU_NAME_CONTEXT_RECORD, /* an event is recorded on all streams of a context */
	GPU_NAME_STREAM_WAIT,
	GPU_NAME_CONTEXT_WAIT, /* all streams of a context wait for an event */
	GPU_NAME_STREAM_CREATE,
	GPU_NAME_CAPTURE_BEGIN,
	GPU_NAME_CAPTURE_END,
	GPU_NAME_COPY,
	GPU_NAME_SET,
	GPU_NAME_WAIT,
	GPU_NAME_GRAPH,
	GPU_NAME_HOST,
	GPU_NAMES
};

/* Makes the names, once. */
waffle_name_t *const *operations_names(void);

/* Gives the names of events the key `simulated`, since CUPTI is a stand-in. No calls may be watched
 * meanwhile. Every event is emitted with OPERATIONS_SIMULATED as its last value, which names
 * without the key leave out. */
void operations_simulate(void);
#define OPERATIONS_SIMULATED waffle_bool(true)

/* Takes note of the device of a context. */
void operations_context(const struct gpu_context *context);

/* Writes an operation whose times are of CLOCK_MONOTONIC. `clamped`: its begin was moved. */
void operations_write(const struct gpu_operation *operation, bool clamped);

#endif
