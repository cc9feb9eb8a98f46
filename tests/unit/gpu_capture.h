/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of CUDA and NCCL in captures made by hand, with the sites of the tables of calls. Threads
 * 10 to 19 belong to process 10, rank 0; 20 to 29 to process 20, rank 1; 30 to 39 to process 30,
 * rank 2.
 */
#ifndef WAFFLE_TEST_GPU_CAPTURE_H
#define WAFFLE_TEST_GPU_CAPTURE_H

#include "why_capture.h"

#include "calls_capture.h"

#define STREAM 0x7f01
#define COMM_STREAM 0x7f02
#define COMM 0xc0
#define GEMM 0x401000
#define SOFTMAX 0x402000

static inline uint32_t pid_of(uint32_t tid)
{
	return tid / 10 * 10;
}

/* Processes 10, 20 and 30 with their threads. The first thread of each is the rank's. */
static inline void gpu_begin(struct capture *capture)
{
	struct error err = ERROR_INIT;

	capture_begin(capture, true);
	calls_add_sites(capture);
	for (uint32_t pid = 10; pid < 40; pid += 10) {
		struct store_name gemm = {GEMM, pid, "void gemm<float>(float*, int)", 0};
		struct store_name softmax = {SOFTMAX, pid, "softmax", 0};

		capture_must(store_writer_add_name(capture->writer, &gemm, &err), err);
		capture_must(store_writer_add_name(capture->writer, &softmax, &err), err);
	}
}

static inline void hit(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site,
		       uint64_t id, unsigned count, const uint64_t *words)
{
	call_hit_in(capture, pid_of(tid), ts, tid, site, id, count, words);
}

#define WORDS(...) CALL_WORDS(__VA_ARGS__)

/* The end of a call, without values. */
static inline void returns(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site,
			   uint64_t id)
{
	call_return_in(capture, pid_of(tid), ts, tid, site, id, 0, NULL);
}

/* The same with a result. */
static inline void returns_result(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site,
				  uint64_t id, uint64_t result)
{
	call_return_in(capture, pid_of(tid), ts, tid, site, id, 1, &result);
}

/* A span of the program, on any rank. */
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
	hit(capture, ts, tid, CALL_LAUNCH, ts, WORDS(kernel, 1, 1, stream));
}

/* A stream calls a function of the program. */
static inline void launches_host(struct capture *capture, uint64_t ts, uint32_t tid,
				 uint64_t function, uint64_t stream)
{
	hit(capture, ts, tid, CALL_HOST, ts, WORDS(stream, function));
}

/* Creates a stream during the capture, before anything else. */
static inline void makes_stream(struct capture *capture, uint32_t tid, uint64_t stream,
				uint64_t flags)
{
	hit(capture, 1003, tid, CALL_STREAM_CREATE, stream << 8 | tid, WORDS(flags));
	call_return_in(capture, pid_of(tid), 1003, tid, CALL_STREAM_CREATE, stream << 8 | tid, 1,
		       &stream);
}

/* The k-th all-reduce of a rank, which lasts 1 ns. */
static inline void reduces(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t seq,
			   unsigned nranks)
{
	hit(capture, ts, tid, CALL_ALL_REDUCE, ts << 8 | tid,
	    WORDS(1024, 7, COMM, tid / 10 - 1, nranks, seq, COMM_STREAM));
	returns(capture, ts + 1, tid, CALL_ALL_REDUCE, ts << 8 | tid);
}

/* The k-th send to, or recv from, the other of two ranks; it lasts 1 ns. */
static inline void meets(struct capture *capture, uint64_t ts, uint32_t tid, uint32_t site,
			 unsigned peer, uint64_t seq)
{
	hit(capture, ts, tid, site, ts << 8 | tid,
	    WORDS(1024, peer, COMM, tid / 10 - 1, 2, seq, COMM_STREAM));
	returns(capture, ts + 1, tid, site, ts << 8 | tid);
}

/* Creates a communicator: all ranks at the same time, before anything else. */
static inline void inits(struct capture *capture, uint32_t tid, unsigned nranks)
{
	const uint64_t comm = COMM;

	hit(capture, 1001, tid, CALL_COMM_INIT, 1001 << 8 | tid, WORDS(tid / 10 - 1, nranks));
	call_return_in(capture, pid_of(tid), 1002, tid, CALL_COMM_INIT, 1001 << 8 | tid, 1, &comm);
}

static inline void records_event(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t event,
				 uint64_t stream)
{
	hit(capture, ts, tid, CALL_RECORD, ts, WORDS(event, stream));
}

static inline void stream_waits(struct capture *capture, uint64_t ts, uint32_t tid, uint64_t stream,
				uint64_t event)
{
	hit(capture, ts, tid, CALL_WAIT, ts, WORDS(stream, event));
}

/* ---- rank 0 ---- */

#define SYNC_ID 0x51

/* Thread 11 of rank 0 runs on CPU 1 and begins a span at 1010. */
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

/* The same, with rank 1 traced as well, and a communicator of the two. */
static inline void begin_two_ranks(struct capture *capture)
{
	begin(capture);
	gets(capture, 1004, 2, 0, 21, 0, 0, 0);
	inits(capture, 11, 2);
	inits(capture, 21, 2);
}

/* The thread waits in a futex from `from` to `to`, when the driver's thread wakes it. */
static inline void blocks(struct capture *capture, uint64_t from, uint64_t to)
{
	waits(capture, from, 1, 11, 0, S, NR_FUTEX, 0x7f00, FUTEX_COND, 0);
	gets(capture, to, 1, 0, 11, 15, to, 0);
}

/* Synchronises with a stream, and is blocked all the time. */
static inline void syncs(struct capture *capture, uint64_t from, uint64_t to, uint64_t stream)
{
	hit(capture, from, 11, CALL_SYNC, SYNC_ID, WORDS(stream));
	blocks(capture, from, to);
	returns(capture, to, 11, CALL_SYNC, SYNC_ID);
}

static inline void sync_begins(struct capture *capture, uint64_t ts)
{
	hit(capture, ts, 11, CALL_SYNC, SYNC_ID, WORDS(STREAM));
}

static inline void sync_ends(struct capture *capture, uint64_t ts)
{
	returns(capture, ts, 11, CALL_SYNC, SYNC_ID);
}

#endif
