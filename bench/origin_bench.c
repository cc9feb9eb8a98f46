// SPDX-License-Identifier: Apache-2.0
/*
 * A job for the benchmark of origins: RANKS processes that train in step, with an all-reduce in
 * every step. A batch of rank 1 is broken in the middle, and the last thing that happens is the
 * symptom on rank 0.
 *
 *	origin_bench RANKS RECORDS FILE
 *
 * RECORDS is the number of records of each rank. With %r in its name, each rank has a FILE of its
 * own; otherwise one has all.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

#define MS 1000000ull
#define START 1000000000000ull
#define RANKS_MAX 1024
#define LAYERS 8
#define STEP_RECORDS (2 + 2 * LAYERS + 6)
#define COMM 0xc0ffee
#define STREAM 0x7f01

enum site {
	SITE_STEP,
	SITE_LAYER,
	SITE_BACKWARD,
	SITE_BROKEN,
	SITE_NAN,
	SITE_INIT,
	SITE_REDUCE,
	SITE_SYNC
};

#define SPAN_SITE(name_, line_, count_, ...)                                                       \
	{                                                                                          \
		.name = (name_), .category = "", .file = "train.c", .func = "main",                \
		.object = "/bin/train", .line = (line_), .kind = WAFFLE_SITE_SPAN,                 \
		.key_count = (count_), .keys = {                                                   \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}
#define CALL_SITE(name_, category_, role_, begin_, count_, ...)                                    \
	{                                                                                          \
		.name = (name_), .category = (category_), .file = "", .func = "",                  \
		.object = "/lib/libnccl.so.2", .kind = WAFFLE_SITE_SPAN, .role = (role_),          \
		.call = true, .begin_keys = (begin_), .key_count = (count_), .keys = {             \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static const struct site_info sites[] = {
	SPAN_SITE("step", 1, 1, {WAFFLE_KEY_I64, "step"}),
	SPAN_SITE("layer", 2, 1, {WAFFLE_KEY_I64, "layer"}),
	SPAN_SITE("backward", 3, 1, {WAFFLE_KEY_CAUSE_EVENT, "cause"}),
	{.name = "broken batch",
	 .category = "",
	 .file = "train.c",
	 .func = "main",
	 .object = "/bin/train",
	 .line = 4,
	 .kind = WAFFLE_SITE_EVENT},
	{.name = "loss is NaN",
	 .category = "",
	 .file = "train.c",
	 .func = "main",
	 .object = "/bin/train",
	 .line = 5,
	 .kind = WAFFLE_SITE_EVENT},
	CALL_SITE("ncclCommInitRank", "nccl", SITE_ROLE_COMM_INIT, 2, 3, {WAFFLE_KEY_I64, "rank"},
		  {WAFFLE_KEY_I64, "nranks"}, {WAFFLE_KEY_PTR, "comm"}),
	CALL_SITE("ncclAllReduce", "nccl", SITE_ROLE_COLLECTIVE, 7, 7, {WAFFLE_KEY_U64, "count"},
		  {WAFFLE_KEY_U64, "datatype"}, {WAFFLE_KEY_PTR, "comm"}, {WAFFLE_KEY_I64, "rank"},
		  {WAFFLE_KEY_I64, "nranks"}, {WAFFLE_KEY_U64, "seq"}, {WAFFLE_KEY_PTR, "stream"}),
	CALL_SITE("cudaStreamSynchronize", "cuda", SITE_ROLE_SYNC_STREAM, 1, 1,
		  {WAFFLE_KEY_PTR, "stream"}),
};

struct rank {
	struct store_writer *writer;
	uint32_t rank, ranks;
	uint64_t ts, next_id, records;
};

static void check(int result, const struct error *err)
{
	if (result >= 0)
		return;
	fprintf(stderr, "origin_bench: %s\n", err->message);
	exit(1);
}

static void append(struct rank *rank, const void *record)
{
	struct error err = ERROR_INIT;

	check(store_writer_append(rank->writer, record, &err), &err);
	rank->records++;
}

static uint64_t hit(struct rank *rank, enum site site, uint64_t parent, unsigned count,
		    const uint64_t *words)
{
	struct {
		struct waffle_rec_hit hit;
		uint64_t frame[4 + 8];
	} rec = {.hit = {.rec = {rank->ts += 100, 1000 + rank->rank, WAFFLE_REC_HIT, 0},
			 .tgid = 1000 + rank->rank,
			 .site = site,
			 .frame_bytes = 32 + 8 * count},
		 .frame = {++rank->next_id, parent}};

	if (count)
		memcpy(&rec.frame[4], words, count * sizeof(*words));
	append(rank, &rec);
	return rank->next_id;
}

static void end(struct rank *rank, enum site site, uint64_t id)
{
	struct waffle_rec_span_end rec = {
		.rec = {rank->ts += 100, 1000 + rank->rank, WAFFLE_REC_SPAN_END, 0},
		.span_id = id,
		.tgid = 1000 + rank->rank,
		.site = site,
	};

	append(rank, &rec);
}

static void call(struct rank *rank, enum site site, unsigned count, const uint64_t *words,
		 unsigned result_count, const uint64_t *result)
{
	struct {
		struct waffle_rec_return end;
		uint64_t words[1];
	} rec = {.end = {.rec = {0, 1000 + rank->rank, WAFFLE_REC_RETURN, 0},
			 .tgid = 1000 + rank->rank,
			 .site = site,
			 .frame_bytes = 8 * result_count}};

	rec.end.span_id = hit(rank, site, 0, count, words);
	rec.end.rec.ts = rank->ts += 100;
	if (result_count)
		rec.words[0] = *result;
	append(rank, &rec);
}

/* A step, at a time when all ranks are in it. */
static void step_make(struct rank *rank, uint64_t step, uint64_t cause)
{
	const uint64_t stream = STREAM;
	const uint64_t words[] = {1024, 7, COMM, rank->rank, rank->ranks, step, STREAM};
	uint64_t id, inner;

	rank->ts = START + (step + 1) * MS + rank->rank;
	id = hit(rank, SITE_STEP, 0, 1, &step);
	for (uint64_t layer = 0; layer < LAYERS; layer++)
		end(rank, SITE_LAYER, hit(rank, SITE_LAYER, id, 1, &layer));
	inner = hit(rank, SITE_BACKWARD, id, 1, &cause);
	call(rank, SITE_REDUCE, 7, words, 0, NULL);
	end(rank, SITE_BACKWARD, inner);
	rank->ts = START + (step + 1) * MS + MS / 2 + rank->rank;
	call(rank, SITE_SYNC, 1, &stream, 0, NULL);
	end(rank, SITE_STEP, id);
}

static void rank_run(struct rank *rank, uint64_t step, uint64_t steps)
{
	const uint64_t words[] = {rank->rank, rank->ranks}, comm = COMM;
	uint64_t cause = 0;

	if (step == 0) {
		rank->ts = START + rank->rank;
		rank->next_id = (uint64_t)(rank->rank + 1) << 40;
		call(rank, SITE_INIT, 2, words, 1, &comm);
	}
	if (step == steps / 2 && rank->rank == 1) {
		rank->ts = START + step * MS + 3 * MS / 4;
		cause = hit(rank, SITE_BROKEN, 0, 0, NULL);
	}
	step_make(rank, step, cause);
	if (step + 1 == steps && rank->rank == 0)
		hit(rank, SITE_NAN, 0, 0, NULL);
}

static struct store_writer *file_open(const char *path, uint32_t rank)
{
	const struct store_meta meta = {.start_ts = START + rank,
					.boot_ns = START + rank,
					.real_ns = 1700000000000000000ull + rank,
					.hostname = "bench",
					.machine = "x86_64",
					.cpu_count = 2};
	const char *mark = strstr(path, "%r");
	struct error err = ERROR_INIT;
	struct store_writer *writer;
	char name[4096];

	if (mark)
		snprintf(name, sizeof(name), "%.*s%u%s", (int)(mark - path), path, rank, mark + 2);
	else
		snprintf(name, sizeof(name), "%s", path);
	check(store_writer_open(&writer, name, &meta, &err), &err);
	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
		check(store_writer_add_site(writer, &sites[i], &err), &err);
	return writer;
}

static void file_close(struct store_writer *writer, uint64_t records, uint64_t end_ts)
{
	const struct store_counts counts[WAFFLE_SOURCE_COUNT] = {{records, records, 0}};
	struct error err = ERROR_INIT;

	check(store_writer_close(writer, end_ts, counts, &err), &err);
}

int main(int argc, char **argv)
{
	static struct rank ranks[RANKS_MAX];
	uint64_t count = argc == 4 ? strtoull(argv[1], NULL, 10) : 0;
	uint64_t steps = argc == 4 ? strtoull(argv[2], NULL, 10) / STEP_RECORDS : 0, records = 0;
	bool own = argc == 4 && strstr(argv[3], "%r");

	if (count < 2 || count > RANKS_MAX || !steps) {
		fprintf(stderr, "usage: origin_bench RANKS RECORDS FILE\n");
		return 2;
	}
	for (uint32_t i = 0; i < count; i++) {
		ranks[i] = (struct rank){.rank = i, .ranks = (uint32_t)count};
		ranks[i].writer = own || !i ? file_open(argv[3], i) : ranks[0].writer;
	}
	for (uint64_t step = 0; step < steps; step++)
		for (uint64_t i = 0; i < count; i++)
			rank_run(&ranks[i], step, steps);
	for (uint64_t i = count; i--;) {
		records += ranks[i].records;
		if (own || !i)
			file_close(ranks[i].writer, own ? ranks[i].records : records,
				   START + (steps + 2) * MS);
	}
	printf("records %" PRIu64 "\n", records);
	return 0;
}
