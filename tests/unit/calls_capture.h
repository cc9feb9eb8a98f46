/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in a capture made by hand. Include it after model_capture.h. */
#ifndef WAFFLE_TEST_CALLS_CAPTURE_H
#define WAFFLE_TEST_CALLS_CAPTURE_H

enum call_site {
	CALL_LAUNCH = CAPTURE_SITES, /* event: kernel, grid, stream */
	CALL_SYNC,                   /* span: stream; at the return: result */
	CALL_SYNC_DEVICE,            /* span */
	CALL_SYNC_EVENT,             /* span: event */
	CALL_RECORD,                 /* event: event, stream */
	CALL_WAIT,                   /* event: stream, event */
	CALL_COPY,                   /* span, synchronous: bytes, kind; at the return: result */
	CALL_COPY_ASYNC,             /* span: bytes, kind, stream */
	CALL_LAUNCH_PTSZ,            /* as CALL_LAUNCH, but stream 0 is the thread's */
	CALL_SYNC_PTSZ,              /* as CALL_SYNC, but stream 0 is the thread's */
	CALL_STREAM_CREATE,          /* span: flags; at the return: stream */
	CALL_CAPTURE_BEGIN,          /* span: stream; at the return: result */
	CALL_CAPTURE_END,            /* the same */
	CALL_GROUP_START,            /* event */
	CALL_GROUP_END,              /* span */
	CALL_ALL_REDUCE,             /* span: count, datatype, comm, rank, nranks, seq, stream */
	CALL_BROADCAST,              /* span: the same, with a root */
	CALL_SEND,                   /* span: count, peer, comm, rank, nranks, seq, stream */
	CALL_RECV,                   /* the same */
	CALL_COMM_INIT,              /* span: rank, nranks; at the return: comm */
	CALL_FORWARD,                /* span "forward" of the program */
	CALL_READ,                   /* span: fd; at the return: ret and path; "read {fd}" */
	CALL_FREE,                   /* span: address */
	CALL_COPY_2D,                /* span: width, height, kind, stream */
	CALL_COPY_BATCH,             /* span: copies, stream */
	CALL_JOB,                    /* span: id; a pair that is matched by it */
	CALL_HOST,                   /* event: stream, host */
	CALL_RECORD_CONTEXT,         /* event: context, event */
	CALL_WAIT_CONTEXT,           /* the same */
	CALL_ALL_REDUCE_AT,          /* span: count, comm_address, seq, stream */
	CALL_COMM_INIT_AT,           /* span: rank, nranks, comm_id; at the return: comm_address */
	CALL_LAP,                    /* span: from call to call */
	CALL_COPY_DRIVER,            /* span: bytes, stream; its name has the direction */
	CALL_SITES_END
};

#define CALL_SITE(name_, category_, kind_, role_, count_, ...)                                     \
	{                                                                                          \
		.name = (name_), .category = (category_), .file = "", .func = "",                  \
		.object = "/lib/x.so", .kind = (kind_), .role = (role_), .call = true,             \
		.key_count = (count_), .keys = {                                                   \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define CALL_U64(name)                                                                             \
	{                                                                                          \
		WAFFLE_KEY_U64, name                                                               \
	}
#define CALL_PTR(name)                                                                             \
	{                                                                                          \
		WAFFLE_KEY_PTR, name                                                               \
	}

static const struct site_info call_sites[] = {
	CALL_SITE("cudaLaunchKernel", "cuda", WAFFLE_SITE_EVENT, SITE_ROLE_LAUNCH, 3,
		  {WAFFLE_KEY_CODE, "kernel"}, {WAFFLE_KEY_DIM3, "grid"}, CALL_PTR("stream")),
	CALL_SITE("cudaStreamSynchronize", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_SYNC_STREAM, 2,
		  CALL_PTR("stream"), {WAFFLE_KEY_I64, "result"}),
	CALL_SITE("cudaDeviceSynchronize", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_SYNC_DEVICE, 0,
		  CALL_PTR("")),
	CALL_SITE("cudaEventSynchronize", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_SYNC_EVENT, 1,
		  CALL_PTR("event")),
	CALL_SITE("cudaEventRecord", "cuda", WAFFLE_SITE_EVENT, SITE_ROLE_EVENT_RECORD, 2,
		  CALL_PTR("event"), CALL_PTR("stream")),
	CALL_SITE("cudaStreamWaitEvent", "cuda", WAFFLE_SITE_EVENT, SITE_ROLE_STREAM_WAIT, 2,
		  CALL_PTR("stream"), CALL_PTR("event")),
	CALL_SITE("cudaMemcpy", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_COPY, 3, CALL_U64("bytes"),
		  {WAFFLE_KEY_STR, "kind"}, {WAFFLE_KEY_I64, "result"}),
	CALL_SITE("cudaMemcpyAsync", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_COPY, 3, CALL_U64("bytes"),
		  {WAFFLE_KEY_STR, "kind"}, CALL_PTR("stream")),
	CALL_SITE("cudaLaunchKernel_ptsz", "cuda", WAFFLE_SITE_EVENT, SITE_ROLE_LAUNCH, 3,
		  {WAFFLE_KEY_CODE, "kernel"}, {WAFFLE_KEY_DIM3, "grid"}, CALL_PTR("stream")),
	CALL_SITE("cudaStreamSynchronize_ptsz", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_SYNC_STREAM, 2,
		  CALL_PTR("stream"), {WAFFLE_KEY_I64, "result"}),
	CALL_SITE("cudaStreamCreateWithFlags", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_STREAM_CREATE, 2,
		  CALL_U64("flags"), CALL_PTR("stream")),
	CALL_SITE("cudaStreamBeginCapture", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_CAPTURE_BEGIN, 2,
		  CALL_PTR("stream"), {WAFFLE_KEY_I64, "result"}),
	CALL_SITE("cudaStreamEndCapture", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_CAPTURE_END, 2,
		  CALL_PTR("stream"), {WAFFLE_KEY_I64, "result"}),
	CALL_SITE("ncclGroupStart", "nccl", WAFFLE_SITE_EVENT, SITE_ROLE_GROUP_START, 0,
		  CALL_PTR("")),
	CALL_SITE("ncclGroupEnd", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_GROUP_END, 0, CALL_PTR("")),
	CALL_SITE("ncclAllReduce", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_COLLECTIVE, 7,
		  CALL_U64("count"), CALL_U64("datatype"), CALL_PTR("comm"),
		  {WAFFLE_KEY_I64, "rank"}, {WAFFLE_KEY_I64, "nranks"}, CALL_U64("seq"),
		  CALL_PTR("stream")),
	CALL_SITE("ncclBroadcast", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_COLLECTIVE, 7,
		  CALL_U64("count"), {WAFFLE_KEY_I64, "root"}, CALL_PTR("comm"),
		  {WAFFLE_KEY_I64, "rank"}, {WAFFLE_KEY_I64, "nranks"}, CALL_U64("seq"),
		  CALL_PTR("stream")),
	CALL_SITE("ncclSend", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_SEND, 7, CALL_U64("count"),
		  {WAFFLE_KEY_I64, "peer"}, CALL_PTR("comm"), {WAFFLE_KEY_I64, "rank"},
		  {WAFFLE_KEY_I64, "nranks"}, CALL_U64("seq"), CALL_PTR("stream")),
	CALL_SITE("ncclRecv", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_RECV, 7, CALL_U64("count"),
		  {WAFFLE_KEY_I64, "peer"}, CALL_PTR("comm"), {WAFFLE_KEY_I64, "rank"},
		  {WAFFLE_KEY_I64, "nranks"}, CALL_U64("seq"), CALL_PTR("stream")),
	CALL_SITE("ncclCommInitRank", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_COMM_INIT, 3,
		  {WAFFLE_KEY_I64, "rank"}, {WAFFLE_KEY_I64, "nranks"}, CALL_PTR("comm")),
	{.name = "forward",
	 .category = "",
	 .file = "a.c",
	 .func = "f",
	 .object = "/bin/a",
	 .kind = WAFFLE_SITE_SPAN},
	CALL_SITE("read {fd}", "libc", WAFFLE_SITE_SPAN, SITE_ROLE_NONE, 3, {WAFFLE_KEY_I64, "fd"},
		  {WAFFLE_KEY_I64, "ret"}, {WAFFLE_KEY_STR, "path"}),
	CALL_SITE("cudaFree", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_MAY_SYNC, 1, CALL_PTR("address")),
	CALL_SITE("cudaMemcpy2DAsync", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_COPY, 4,
		  CALL_U64("width"), CALL_U64("height"), {WAFFLE_KEY_STR, "kind"},
		  CALL_PTR("stream")),
	CALL_SITE("cudaMemcpyBatchAsync", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_COPY, 2,
		  CALL_U64("copies"), CALL_PTR("stream")),
	{.name = "job",
	 .category = "x",
	 .file = "",
	 .func = "",
	 .object = "/lib/x.so",
	 .kind = WAFFLE_SITE_SPAN,
	 .call = true,
	 .keyed = true,
	 .key_count = 1,
	 .keys = {CALL_U64("id")}},
	CALL_SITE("cudaLaunchHostFunc", "cuda", WAFFLE_SITE_EVENT, SITE_ROLE_LAUNCH, 2,
		  CALL_PTR("stream"), {WAFFLE_KEY_CODE, "host"}),
	CALL_SITE("cudaExecutionCtxRecordEvent", "cuda", WAFFLE_SITE_EVENT, SITE_ROLE_EVENT_RECORD,
		  2, CALL_PTR("context"), CALL_PTR("event")),
	CALL_SITE("cudaExecutionCtxWaitEvent", "cuda", WAFFLE_SITE_EVENT, SITE_ROLE_STREAM_WAIT, 2,
		  CALL_PTR("context"), CALL_PTR("event")),
	CALL_SITE("ncclAllReduce", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_COLLECTIVE, 4,
		  CALL_U64("count"), CALL_PTR("comm_address"), CALL_U64("seq"), CALL_PTR("stream")),
	CALL_SITE("ncclCommInitRank", "nccl", WAFFLE_SITE_SPAN, SITE_ROLE_COMM_INIT, 4,
		  {WAFFLE_KEY_I64, "rank"}, {WAFFLE_KEY_I64, "nranks"}, CALL_PTR("comm_id"),
		  CALL_PTR("comm_address")),
	{.name = "lap",
	 .category = "x",
	 .file = "",
	 .func = "",
	 .object = "/lib/x.so",
	 .kind = WAFFLE_SITE_SPAN,
	 .call = true,
	 .keyed = true,
	 .laps = true},
	CALL_SITE("cuMemcpyDtoHAsync_v2", "cuda", WAFFLE_SITE_SPAN, SITE_ROLE_COPY, 2,
		  CALL_U64("bytes"), CALL_PTR("stream")),
};
_Static_assert(sizeof(call_sites) / sizeof(call_sites[0]) == CALL_SITES_END - CALL_LAUNCH,
	       "a row a site");

/* Call it after capture_begin(). */
static inline void calls_add_sites(struct capture *capture)
{
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < sizeof(call_sites) / sizeof(call_sites[0]); i++)
		capture_must(store_writer_add_site(capture->writer, &call_sites[i], &err), err);
}

static inline void calls_begin(struct capture *capture)
{
	capture_begin(capture, false);
	calls_add_sites(capture);
}

/* The begin of a call, or an event, in a process. `words` are its values. */
static inline void call_hit_in(struct capture *capture, uint32_t pid, uint64_t ts, uint32_t tid,
			       uint32_t site, uint64_t id, unsigned count, const uint64_t *words)
{
	struct {
		struct waffle_rec_hit hit;
		uint64_t frame[4 + 16];
	} rec = {.hit = {.rec = {ts, tid, WAFFLE_REC_HIT, 0},
			 .tgid = pid,
			 .site = site,
			 .frame_bytes = 32 + 8 * count},
		 .frame = {id}};

	if (count)
		memcpy(&rec.frame[4], words, count * sizeof(*words));
	capture_add(capture, &rec);
}

static inline void call_return_in(struct capture *capture, uint32_t pid, uint64_t ts, uint32_t tid,
				  uint32_t site, uint64_t id, unsigned count, const uint64_t *words)
{
	struct {
		struct waffle_rec_return end;
		uint64_t words[16];
	} rec = {.end = {.rec = {ts, tid, WAFFLE_REC_RETURN, 0},
			 .span_id = id,
			 .tgid = pid,
			 .site = site,
			 .frame_bytes = 8 * count}};

	if (count)
		memcpy(rec.words, words, count * sizeof(*words));
	capture_add(capture, &rec);
}

#define CALL_WORDS(...)                                                                            \
	(sizeof((const uint64_t[]){0, __VA_ARGS__}) / sizeof(uint64_t) - 1),                       \
		((const uint64_t[]){0, __VA_ARGS__}) + 1

/* call_hit(&capture, ts, tid, site, id, values…) */
#define call_hit(capture, ts, tid, site, id, ...)                                                  \
	call_hit_in(capture, CAPTURE_PID, ts, tid, site, id, CALL_WORDS(__VA_ARGS__))
#define call_return(capture, ts, tid, site, id, ...)                                               \
	call_return_in(capture, CAPTURE_PID, ts, tid, site, id, CALL_WORDS(__VA_ARGS__))

#define DTOH 4, 0x486f7444ull /* "DtoH" */
#define HTOD 4, 0x446f7448ull /* a string of 4 bytes, "HtoD" */

/* A span of a call, with both ends. */
#define call_span(capture, from, to, tid, site, id, ...)                                           \
	do {                                                                                       \
		call_hit(capture, from, tid, site, id, __VA_ARGS__);                               \
		call_return_in(capture, CAPTURE_PID, to, tid, site, id, 0, NULL);                  \
	} while (0)

#endif
