/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A prediction of the next record of a chunk. Encoder and decoder keep the same prediction, so a
 * field that is as predicted costs one bit. The prediction starts empty in every data chunk, so
 * that a chunk can be decoded on its own. docs/file-format.md describes the rules.
 */
#ifndef WAFFLE_STORE_PREDICT_INTERNAL_H
#define WAFFLE_STORE_PREDICT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/record.h"
#include "target/elf/site.h"
#include "util/vec.h"

#define PREDICT_DEPTH_MAX 16
#define PREDICT_BLOCKS_MAX 1024
/* Fuzzers define a smaller limit: the table is cleared for each input. */
#ifndef PREDICT_THREADS_MAX
#define PREDICT_THREADS_MAX 8192
#endif
#define PREDICT_WORDS_MAX 20
#define PREDICT_CPUS (UINT16_MAX + 1)

struct open_span {
	uint64_t id;
	uint32_t site; /* WAFFLE_SITE_UNKNOWN: the span began before the chunk */
};

/* The state and the call in which a thread left its CPU. */
struct block {
	uint64_t args[WAFFLE_SYSCALL_ARGS];
	int32_t syscall;
	uint16_t state;
};

/* Ids of a thread's spans and events, or of its calls. Macros and calls number their ids
 * separately. */
struct predict_ids {
	uint64_t last_id;            /* 0: none yet */
	uint64_t trace_hi, trace_lo; /* trace id of the last hit */
	uint32_t depth;
	struct open_span open[PREDICT_DEPTH_MAX];
};

struct predict_thread {
	uint32_t tid, tgid;
	struct block block;
	struct predict_ids spans, calls;
};

/* What is needed of a site to decode a frame, and the last values of its keys. */
struct predict_site {
	uint16_t kind;
	bool call;
	uint16_t key_count;
	char types[WAFFLE_KEYS_MAX];
	uint32_t chunk; /* the chunk in which the members below were set */
	/* Number of keys in a hit's frame; the return's frame has the others. */
	uint16_t begin_keys;
	/* One block for both, NULL until the site is used: few sites of a large program are, and
	 * each file of a job has a decoder of its own. */
	uint64_t *last;
	uint64_t *second; /* second words: WAFFLE_KEY_DIM3 */
};

struct predict {
	/* Used from 1 to thread_count; 0 means none. They may move when one is added. */
	struct predict_thread *threads;
	uint32_t thread_count, thread_room;
	struct block blocks[PREDICT_BLOCKS_MAX];
	uint32_t block_count;
	VEC(struct predict_site) sites;
	uint32_t chunk;
	uint16_t *current;  /* index of the thread on each CPU; 0: unknown */
	uint32_t cpu_room;  /* length of current[] */
	uint32_t cpu_limit; /* current[] is 0 from here on */
	uint64_t ts;        /* of the previous record */
	uint16_t cpu;
	uint32_t tgid;      /* the last one written */
	uint64_t call_seed; /* of the last call, see predict_call() */
	bool failed;        /* out of memory */
	/* For kinds that consist of words after their head: the words of the last record. */
	uint64_t words[WAFFLE_REC_KIND_COUNT][PREDICT_WORDS_MAX];
};

bool predict_init(struct predict *predict);
void predict_free(struct predict *predict);
bool predict_add_site(struct predict *predict, const struct site_info *site);
/* Clears everything but the sites, for a new chunk. */
void predict_reset(struct predict *predict);

/* Adds a thread and returns its index; 0 if the chunk has too many. */
uint32_t predict_add_thread(struct predict *predict, uint32_t tid);
/* Index of the thread that was last seen on a CPU; 0: none. */
static inline uint32_t predict_current(const struct predict *predict, uint16_t cpu)
{
	return cpu < predict->cpu_room ? predict->current[cpu] : 0;
}
/* Out of memory, the CPU has no thread. So a file could not be decoded: see predict.failed. */
void predict_set_current(struct predict *predict, uint16_t cpu, uint32_t thread);
/* The site, or NULL if it is unknown, or if memory is short: see predict.failed. Clears its last
 * values if they are from another chunk. */
struct predict_site *predict_site(struct predict *predict, uint32_t index);
void predict_add_block(struct predict *predict, const struct block *block);

/* A span outside any trace starts a trace and takes three ids: two for the trace id, the third for
 * itself (include/waffle/emit.h). */
#define PREDICT_ROOT_STEP 3
static inline uint64_t predict_root_hi(uint64_t id)
{
	return (id - 2) * 0x9e3779b97f4a7c15ull;
}

static inline struct predict_ids *predict_ids(struct predict_thread *thread,
					      const struct predict_site *site)
{
	return site->call ? &thread->calls : &thread->spans;
}

/*
 * The id of a call is computed from its time, its thread and a number of the session
 * (bpf/call.bpf.c). Given the id, this returns the session's number; given the number, it returns
 * the id.
 */
static inline uint64_t predict_call(uint64_t known, const struct waffle_rec *rec)
{
	return (rec->ts << 22 | rec->tid) * 0x9e3779b97f4a7c15ull ^ known;
}

/* The id that a hit probably has if it is not the one after the last id. */
static inline uint64_t predict_id(const struct predict *predict, const struct predict_ids *ids,
				  const struct predict_site *site, const struct waffle_rec *rec)
{
	return site->call ? predict_call(predict->call_seed, rec)
			  : ids->last_id + PREDICT_ROOT_STEP;
}

/* Id of the innermost open span, or 0. Calls do not know their parents. */
static inline uint64_t predict_parent(const struct predict_ids *ids,
				      const struct predict_site *site)
{
	return ids->depth && !site->call ? ids->open[ids->depth - 1].id : 0;
}

/* Whether the span or call that ends is the innermost one. */
static inline bool predict_ends(const struct predict_ids *ids, uint64_t id, uint32_t site)
{
	return ids->depth && ids->open[ids->depth - 1].id == id &&
	       ids->open[ids->depth - 1].site == site;
}

/* Updates the prediction with a hit whose frame was decoded by the site's keys. */
void predict_hit(struct predict *predict, struct predict_ids *ids, const struct predict_site *site,
		 const struct waffle_rec_hit *hit, const struct waffle_frame *head);
void predict_end(struct predict_ids *ids, uint64_t id);

#endif
