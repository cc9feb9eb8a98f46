/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated stream: a queue, and a thread that executes its operations in order. Simulated time
 * is independent of the thread. An operation begins when it was submitted or when the previous one
 * ended, and takes its duration, however late the thread executes it. So a launch that nobody waits
 * for need not wake the thread; the first one to wait or poll does.
 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "observer.h"

struct stream;
struct op;

/* Executes an operation in the stream's thread and returns the time of its end. NULL: the operation
 * only takes time. */
typedef uint64_t (*op_run)(struct op *op, uint64_t start_ns);

struct op {
	op_run run;
	uint64_t submit_ns; /* set by stream_submit() */
	uint64_t duration_ns;
	uintptr_t words[4]; /* parameters of `run` */
	bool prompt;        /* other threads wait for it: execute it even if nobody requests it */
	struct op_about about;
};

/* Operations that streams have recorded instead of executing them. */
struct op_list {
	struct stream *origin; /* the stream that began recording; others join it */
	struct op *ops;
	uint32_t count, room;
	uint32_t id; /* number of the graph */
	bool is_old; /* it was instantiated before graphs were observed */
};

/* `blocking`: this stream and the legacy default stream wait for each other. */
struct stream *stream_new(bool blocking);
/* Counts from 0. */
uint32_t stream_number(const struct stream *stream);
/* A number for a graph, from 1. */
uint32_t graph_number(void);
/* Returns at once. The stream is freed when all is done; others may still query its state. */
void stream_free(struct stream *stream);

/* Returns a ticket with which to wait for the operation. False: out of memory while recording. */
bool stream_submit(struct stream *stream, struct op *op, uint32_t *ticket);
/* The ticket of the last submitted operation. */
uint32_t stream_last(struct stream *stream);
bool stream_done(struct stream *stream, uint32_t ticket);
/* Blocks or spins, depending on the environment. */
void stream_wait(struct stream *stream, uint32_t ticket);

/* From now on adds operations to `list` instead. False: the stream is recording already. */
bool stream_record(struct stream *stream, struct op_list *list);
/* The list to which operations are added. NULL: they are executed. */
struct op_list *stream_list(struct stream *stream);
/* Whether any stream adds to a list, which may be freed already. */
bool streams_record(const struct op_list *list);
/* Ends recording: all streams that add to the list execute operations again. */
void streams_record_end(const struct op_list *list);

/* Call it before submitting to `stream`. The legacy default stream then waits for the blocking
 * streams, and a blocking stream for the legacy stream. `legacy` may be NULL. */
bool stream_order(struct stream *stream, struct stream *legacy);

/* Waits for every stream of the process, or every blocking one. */
void streams_wait(bool blocking);

void sim_sleep_until(uint64_t ns);

#endif
