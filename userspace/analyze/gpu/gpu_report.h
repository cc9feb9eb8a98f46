/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the GPUs of a capture did, in numbers: how busy they were, with what, and why not. The
 * timeline must outlive the report. All times are cut to the window of the device: the time in
 * which its process recorded GPU times, within the capture and the options' window.
 *
 *	struct gpu_report *report = gpu_report_new(timeline, &options);
 *	gpu_report_free(report);
 */
#ifndef WAFFLE_ANALYZE_GPU_GPU_REPORT_H
#define WAFFLE_ANALYZE_GPU_GPU_REPORT_H

#include "model/gpu/gpu_timeline.h"

struct gpu_report_options {
	uint64_t from_ts, to_ts;
	uint32_t stretches; /* number of the longest launch-starved times to keep, of a device */
	bool pieces;        /* keep the pieces of critical paths, not only their sums */
};

/* Time and number of operations of one name. */
struct gpu_sum {
	const char *name;
	uint64_t count, total_ns, min_ns, max_ns, bytes;
};
typedef VEC(struct gpu_sum) gpu_sums;

/*
 * What a stream does. `waiting`: its next operation is launched, and waits for an operation of
 * another stream. `queued`: it is launched and waits for anything else, such as other work of the
 * device. `idle`: nothing is launched. `complete`: the same, and nothing follows in the capture.
 */
enum gpu_state {
	GPU_STATE_IDLE,
	GPU_STATE_QUEUED,
	GPU_STATE_RUNNING,
	GPU_STATE_WAITING,
	GPU_STATE_COMPLETE,
	GPU_STATE_COUNT
};
extern const char *const gpu_state_names[GPU_STATE_COUNT];

struct gpu_stream_report {
	uint64_t state_ns[GPU_STATE_COUNT]; /* sum: the window */
	uint64_t operations;                /* that overlap the window, without waits */
	uint32_t queue_max;                 /* launches that had not begun */
};

/*
 * Why a device had nothing to do: its next operation was not launched yet; it was launched, but an
 * operation that it depends on was not done; it could have begun; its launch is unknown.
 */
enum gpu_idle {
	GPU_IDLE_STARVED,
	GPU_IDLE_BLOCKING,
	GPU_IDLE_STALLED,
	GPU_IDLE_UNKNOWN,
	GPU_IDLE_COUNT
};
extern const char *const gpu_idle_names[GPU_IDLE_COUNT];

/* A time in which a device had nothing to do because `thread` had not launched anything. */
struct gpu_stretch {
	uint64_t from_ts, to_ts;
	uint32_t thread;
	uint32_t launch; /* what ended it, in timeline.launches; MODEL_NONE: the window's end */
};

struct gpu_level {
	uint32_t level; /* number of operations at a time */
	uint64_t ns;
};

struct gpu_device_report {
	uint64_t from_ts, to_ts; /* its window */
	uint64_t operations;     /* that overlap it, without waits */
	uint64_t busy_ns;
	uint32_t max_concurrency;
	VEC(struct gpu_level) levels; /* by level; those with time; level 0 is the idle time */
	uint64_t idle_ns[GPU_IDLE_COUNT];
	uint64_t kernel_ns;                    /* in which a kernel ran */
	uint64_t comm_ns, exposed_ns;          /* kernels of NCCL; alone, without other kernels */
	gpu_sums kernels, copies, sets, spans; /* by falling total_ns, then name */
	/* From the begin of the launch to the begin of its first operation on each stream. */
	uint64_t launches, delay_p50_ns, delay_p99_ns, delay_max_ns, delay_total_ns;
	uint32_t queue_max; /* the largest of its streams */
	uint64_t starved_count;
	VEC(struct gpu_stretch) starved; /* the longest, by falling length */
};

/* What a process had allocated with cudaMalloc() and its relatives, as the probes saw it. */
struct gpu_memory {
	uint32_t pid;
	uint64_t allocations, frees, unknown_frees;
	uint64_t peak_bytes, end_bytes;
};

/* A piece of the critical path. */
enum gpu_piece_kind {
	GPU_PIECE_OPERATION,
	GPU_PIECE_GAP,    /* from the end of what the operation depended on to its begin */
	GPU_PIECE_LAUNCH, /* from the begin of its launch to its begin */
	GPU_PIECE_HOST,   /* the launching thread, before the launch */
	GPU_PIECE_RETURN, /* from the operation's end to the return of the call that awaits it */
	GPU_PIECE_KIND_COUNT
};
extern const char *const gpu_piece_names[GPU_PIECE_KIND_COUNT];

struct gpu_piece {
	uint64_t from_ts, to_ts;
	uint32_t op;     /* in timeline.ops; MODEL_NONE: a piece of the host */
	uint32_t span;   /* the program's span, or MODEL_NONE */
	uint32_t thread; /* of the host; MODEL_NONE: a piece of the GPU */
	uint8_t kind;    /* enum gpu_piece_kind */
};

/* The time of a path by kind, name and span. */
struct gpu_path_sum {
	uint8_t kind;            /* enum gpu_piece_kind */
	const char *name, *span; /* span NULL: none */
	uint64_t count, total_ns;
};
typedef VEC(struct gpu_path_sum) gpu_path_sums;

/* The chain of what had to end before the last operation of a process could, back to the begin of
 * the window or to what is not known. The pieces follow each other without gaps. */
struct gpu_path {
	uint32_t pid;
	uint64_t from_ts, to_ts;
	gpu_path_sums sums;           /* the largest first */
	VEC(struct gpu_piece) pieces; /* in order of time; empty without options.pieces */
};

struct gpu_report {
	const struct gpu_timeline *timeline;
	struct gpu_device_report *devices; /* as timeline.devices */
	struct gpu_stream_report *streams; /* as timeline.streams */
	VEC(struct gpu_memory) memory;
	VEC(struct gpu_path) paths; /* by pid */
};

struct gpu_report *gpu_report_new(const struct gpu_timeline *timeline,
				  const struct gpu_report_options *options);
void gpu_report_free(struct gpu_report *report);

/* The program's span that an operation belongs to: of a graph's node that of the call which
 * captured it, otherwise that of the launch. MODEL_NONE: none. */
uint32_t gpu_report_span(const struct gpu_timeline *timeline, const struct gpu_timeline_op *op);

/* When the last of the operations that an operation depends on ended; 0: it depends on none. */
uint64_t gpu_report_ready_ts(const struct gpu_timeline *timeline, uint32_t op);

#endif
