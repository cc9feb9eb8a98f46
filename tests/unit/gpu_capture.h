/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of CUDA and NCCL in captures made by hand, as the tables of calls describe them. Threads 10
 * to 19 are of process 10, rank 0; 20 to 29 of process 20, rank 1; 30 to 39 of process 30, rank 2.
 */
#ifndef WAFFLE_TEST_GPU_CAPTURE_H
#define WAFFLE_TEST_GPU_CAPTURE_H

#include "why_capture.h"

#define STREAM 0x7f01
#define COMM_STREAM 0x7f02
#define COMM 0xc0
#define GEMM 0x401000
#define SOFTMAX 0x402000

enum gpu_site {
	GPU_LAUNCH = CAPTURE_SITES,
	GPU_COPY_ASYNC,
	GPU_COPY,
	GPU_SYNC_STREAM,
	GPU_SYNC_EVENT,
	GPU_SYNC_DEVICE,
	GPU_EVENT_RECORD,
	GPU_STREAM_WAIT,
	GPU_ALL_REDUCE,
	GPU_COMM_INIT,
	GPU_GROUP_START,
	GPU_GROUP_END,
	GPU_FORWARD, /* span "forward", of the program */
	GPU_SITE_END
};

#define CALL(call_name, call_category, call_kind, call_role, ...)                                  \
	{                                                                                          \
		.name = call_name, .category = call_category, .file = "", .func = "",              \
		.object = "/lib/lib" call_category ".so", .kind = call_kind, .role = call_role,    \
		.call = true, __VA_ARGS__                                                          \
	}

static const struct site_info gpu_sites[] = {
	CALL("cudaLaunchKernel", "cuda", WAFFLE_SITE_EVENT, SITE_ROLE_LAUNCH, .key_count = 5,
	     .keys = {{WAFFLE_KEY_CODE, "kernel"},
		      {WAFFLE_KEY_DIM3, "grid"},
		      {WAFFLE_KEY_DIM3, "block"},
		      {WAFFLE_KEY_U64, "shared_bytes"},
		      {WAFFLE_KEY_PTR, "stream"}}),
	CALL("cudaMemcpyAsync", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_COPY, .key_count = 3,
	     .keys = {{WAFFLE_KEY_U64, "bytes"},
		      {WAFFLE_KEY_STR, "kind"},
		      {WAFFLE_KEY_PTR, "stream"}}),
	CALL("cudaMemcpy", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_COPY, .key_count = 3,
	     .keys = {{WAFFLE_KEY_U64, "bytes"},
		      {WAFFLE_KEY_STR, "kind"},
		      {WAFFLE_KEY_I64, "result"}}),
	CALL("cudaStreamSynchronize", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_SYNC_STREAM,
	     .key_count = 1, .keys = {{WAFFLE_KEY_PTR, "stream"}}),
	CALL("cudaEventSynchronize", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_SYNC_EVENT, .key_count = 1,
	     .keys = {{WAFFLE_KEY_PTR, "event"}}),
	CALL("cudaDeviceSynchronize", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_SYNC_DEVICE),
	CALL("cudaEventRecord", "cuda", WAFFLE_SITE_EVENT, SITE_ROLE_EVENT_RECORD, .key_count = 2,
	     .keys = {{WAFFLE_KEY_PTR, "event"}, {WAFFLE_KEY_PTR, "stream"}}),
	CALL("cudaStreamWaitEvent", "cuda", WAFFLE_SITE_EVENT, SITE_ROLE_STREAM_WAIT,
	     .key_count = 2, .keys = {{WAFFLE_KEY_PTR, "stream"}, {WAFFLE_KEY_PTR, "event"}}),
	CALL("ncclAllReduce", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_COLLECTIVE, .key_count = 7,
	     .keys = {{WAFFLE_KEY_U64, "count"},
		      {WAFFLE_KEY_STR, "datatype"},
		      {WAFFLE_KEY_PTR, "comm"},
		      {WAFFLE_KEY_I64, "rank"},
		      {WAFFLE_KEY_I64, "nranks"},
		      {WAFFLE_KEY_U64, "seq"},
		      {WAFFLE_KEY_PTR, "stream"}}),
	CALL("ncclCommInitRank", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_COMM_INIT, .key_count = 3,
	     .keys = {{WAFFLE_KEY_I64, "rank"},
		      {WAFFLE_KEY_I64, "nranks"},
		      {WAFFLE_KEY_PTR, "comm"}}),
	CALL("ncclGroupStart", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_GROUP_START),
	CALL("ncclGroupEnd", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_GROUP_END),
	{.name = "forward",
	 .category = "",
	 .file = "a.c",
	 .func = "f",
	 .object = "/bin/a",
	 .kind = WAFFLE_SITE_SPAN},
};
_Static_assert(sizeof(gpu_sites) / sizeof(gpu_sites[0]) == GPU_SITE_END - GPU_LAUNCH, "a row each");

static inline uint32_t pid_of(uint32_t tid)
{
	return tid / 10 * 10;
}

/* Processes 10, 20 and 30 with their threads, the first of which is the rank's. */
static inline void gpu_begin(struct capture *capture)
{
	struct error err = ERROR_INIT;

	capture_begin(capture, true);
	for (size_t i = 0; i < GPU_SITE_END - GPU_LAUNCH; i++)
		capture_must(store_writer_add_site(capture->writer, &gpu_sites[i], &err), err);
	for (uint32_t pid = 10; pid < 40; pid += 10) {
		struct store_name gemm = {GEMM, pid, "void gemm<float>(float*, int)"};
		struct store_name softmax = {SOFTMAX, pid, "softmax"};

		capture_must(store_writer_add_name(capture->writer, &gemm, &err), err);
		capture_must(store_writer_add_name(capture->writer, &softmax, &err), err);
	}
}

static inline void hit(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site,
		       uint64_t id, unsigned count, const uint64_t *words)
{
	struct {
		struct waffle_rec_hit hit;
		uint64_t frame[4 + 64];
	} rec = {.hit = {.rec = {ts, tid, WAFFLE_REC_HIT, 0},
			 .tgid = pid_of(tid),
			 .site = site,
			 .frame_bytes = 32 + 8 * count},
		 .frame = {id, 0, 0, 0}};

	if (count)
		memcpy(&rec.frame[4], words, count * sizeof(*words));
	capture_add(capture, &rec);
}

#define WORDS(...)                                                                                 \
	sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t), (uint64_t[])                         \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

/* A call's end, without values. */
static inline void returns(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site,
			   uint64_t id)
{
	struct waffle_rec_return rec = {.rec = {ts, tid, WAFFLE_REC_RETURN, 0},
					.span_id = id,
					.tgid = pid_of(tid),
					.site = site};

	capture_add(capture, &rec);
}

/* With its result. */
static inline void returns_result(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site,
				  uint64_t id, uint64_t result)
{
	struct {
		struct waffle_rec_return end;
		uint64_t result;
	} rec = {.end = {.rec = {ts, tid, WAFFLE_REC_RETURN, 0},
			 .span_id = id,
			 .tgid = pid_of(tid),
			 .site = site,
			 .frame_bytes = 8},
		 .result = result};

	capture_add(capture, &rec);
}

/* A span of the program, of rank 0 or another. */
static inline void span(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site,
			uint64_t id)
{
	hit(capture, ts, tid, site, id, 0, NULL);
}

static inline void ends(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site,
			uint64_t id)
{
	struct waffle_rec_span_end rec = {.rec = {ts, tid, WAFFLE_REC_SPAN_END, 0},
					  .span_id = id,
					  .tgid = pid_of(tid),
					  .site = site};

	capture_add(capture, &rec);
}

/* ---- calls ---- */

static inline void launches(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t kernel,
			    uint64_t stream)
{
	hit(capture, ts, tid, GPU_LAUNCH, ts, WORDS(kernel, 1, 1, 256, 1, 0, stream));
}

#define HTOD 4, 0x446f7448ull /* a string of 4 bytes, "HtoD" */
#define F32 3, 0x323366ull    /* "f32" */

/* The k-th of a rank, which lasts 1 ns. */
static inline void reduces(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t seq,
			   unsigned nranks)
{
	hit(capture, ts, tid, GPU_ALL_REDUCE, ts << 8 | tid,
	    WORDS(1024, F32, COMM, tid / 10 - 1, nranks, seq, COMM_STREAM));
	returns(capture, ts + 1, tid, GPU_ALL_REDUCE, ts << 8 | tid);
}

/* Makes a communicator: every rank at the same time, before anything else. */
static inline void inits(struct capture *capture, uint32_t tid, unsigned nranks)
{
	hit(capture, 1001, tid, GPU_COMM_INIT, 1001 << 8 | tid, WORDS(tid / 10 - 1, nranks, COMM));
	returns(capture, 1002, tid, GPU_COMM_INIT, 1001 << 8 | tid);
}

static inline void records_event(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t event,
				 uint64_t stream)
{
	hit(capture, ts, tid, GPU_EVENT_RECORD, ts, WORDS(event, stream));
}

static inline void stream_waits(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t stream,
				uint64_t event)
{
	hit(capture, ts, tid, GPU_STREAM_WAIT, ts, WORDS(stream, event));
}

/* ---- rank 0 ---- */

#define SYNC_ID 0x51

/* Thread 11 of rank 0 runs on CPU 1, and begins a span at 1010. */
static inline void begin(struct capture *capture)
{
	gpu_begin(capture);
	named(capture, 11, 10, "trainer");
	named(capture, 15, 10, "cuda-EvtHandlr");
	named(capture, 21, 20, "rank1");
	named(capture, 22, 20, "loader");
	named(capture, 31, 30, "rank2");
	gets(capture, 1003, 1, 0, 11, 0, 0, 0);
	capture_span(capture, 1010, 11, 1);
}

/* It waits in a futex from `from` to `to`, when the driver's thread wakes it. */
static inline void blocks(struct capture *capture, uint64_t from, uint64_t to)
{
	waits(capture, from, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(capture, to, 1, 0, 11, 15, to, 0);
}

static inline void sync_begins(struct capture *capture, uint64_t ts)
{
	hit(capture, ts, 11, GPU_SYNC_STREAM, SYNC_ID, WORDS(STREAM));
}

static inline void sync_ends(struct capture *capture, uint64_t ts)
{
	returns(capture, ts, 11, GPU_SYNC_STREAM, SYNC_ID);
}

#endif
