/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated stream: a queue and a thread that does what is in it, in order. Time is kept apart
 * from the thread: an operation begins when it was submitted or when the one before ended, and
 * takes what it takes, however late the thread comes to it. So a thread need not be woken for a
 * launch that nobody waits for; the first who looks wakes it.
 */
#ifndef SIM_STREAM_H
#define SIM_STREAM_H

#include <stdbool.h>
#include <stdint.h>

struct stream;
struct op;

/* What an operation does in the stream's thread; returns when it ended. NULL: nothing but last. */
typedef uint64_t (*op_run)(struct op *op, uint64_t start_ns);

struct op {
	op_run run;
	uint64_t submit_ns; /* set by stream_submit() */
	uint64_t duration_ns;
	uintptr_t words[4]; /* for `run` */
	bool prompt;        /* others wait for it: to be done though nobody here looks */
};

/* Operations that streams have recorded instead of doing them. */
struct op_list {
	struct stream *origin; /* that was told to; others follow it */
	struct op *ops;
	uint32_t count, room;
};

/* `blocking`: it and the legacy default stream wait for each other. */
struct stream *stream_new(bool blocking);
/* Returns at once: it is freed when all is done, and others may still look whether that is so. */
void stream_free(struct stream *stream);

/* Returns a ticket by which to wait for it. False, if memory is out while it is recorded. */
bool stream_submit(struct stream *stream, struct op *op, uint32_t *ticket);
/* The ticket of what was submitted last. */
uint32_t stream_last(struct stream *stream);
bool stream_done(struct stream *stream, uint32_t ticket);
/* Blocks or spins, as the environment says. */
void stream_wait(struct stream *stream, uint32_t ticket);

/* From now on operations are added to `list` instead. False: the stream does so already. */
bool stream_record(struct stream *stream, struct op_list *list);
/* The list that they are added to; NULL: they are done. */
struct op_list *stream_list(struct stream *stream);
/* Whether streams add to a list, which need not be there any more. */
bool streams_record(const struct op_list *list);
/* All streams that add to a list do what they get again. */
void streams_record_end(const struct op_list *list);

/* Before something is put into `stream`: makes it wait for what is in others, if it is the legacy
 * default stream, or for that, if it is blocking. `legacy` may be NULL. */
bool stream_order(struct stream *stream, struct stream *legacy);

/* Waits for every stream of the process, or every blocking one. */
void streams_wait(bool blocking);

void sim_sleep_until(uint64_t ns);

#endif
