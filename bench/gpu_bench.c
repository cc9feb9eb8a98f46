// SPDX-License-Identifier: Apache-2.0
/*
 * A capture for the benchmarks of `gpu` and `replay`, as libwaffle-gpu writes it: a process whose
 * four threads launch work on eight streams of two GPUs, in steps. Each operation has a launch and
 * values of its own. The operations of a step are written together after the step, as CUPTI
 * delivers them.
 *
 *	gpu_bench OPERATIONS FILE
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"

#define START 1000000000000ull
#define PID 4711
#define THREADS 4
#define STREAMS 8
#define KERNELS 32
#define STEP_OPS 512 /* operations that each thread launches in a step */

enum site { SITE_STEP, SITE_LAUNCH, SITE_COPY, SITE_SET, SITE_KERNEL };

#define OP_KEYS                                                                                    \
	{WAFFLE_KEY_STR, "op"}, {WAFFLE_KEY_U64, "device"}, {WAFFLE_KEY_U64, "context"},           \
		{WAFFLE_KEY_U64, "stream"},                                                        \
	{                                                                                          \
		WAFFLE_KEY_U64, "correlation"                                                      \
	}
#define SITE_OF(name_, category_, kind_, count_, ...)                                              \
	{                                                                                          \
		.name = (name_), .category = (category_), .file = "", .func = "",                  \
		.object = "/bin/train", .kind = (kind_), .key_count = (count_), .keys = {          \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

static const struct site_info sites[] = {
	[SITE_STEP] = SITE_OF("step", "train", WAFFLE_SITE_SPAN, 1, {WAFFLE_KEY_U64, "step"}),
	[SITE_LAUNCH] = SITE_OF("launch", "gpu", WAFFLE_SITE_EVENT, 2,
				{WAFFLE_KEY_U64, "correlation"}, {WAFFLE_KEY_STR, "function"}),
	[SITE_COPY] = SITE_OF("copy", "gpu", WAFFLE_SITE_SPAN, 7, OP_KEYS, {WAFFLE_KEY_STR, "kind"},
			      {WAFFLE_KEY_U64, "bytes"}),
	[SITE_SET] = SITE_OF("set", "gpu", WAFFLE_SITE_SPAN, 6, OP_KEYS, {WAFFLE_KEY_U64, "bytes"}),
	[SITE_KERNEL] = SITE_OF(NULL, "gpu", WAFFLE_SITE_SPAN, 9, OP_KEYS, {WAFFLE_KEY_STR, "grid"},
				{WAFFLE_KEY_STR, "block"}, {WAFFLE_KEY_U64, "shared_bytes"},
				{WAFFLE_KEY_U64, "registers"}),
};

struct operation {
	uint64_t start_ts, end_ts;
	uint32_t site, stream, correlation, bytes;
};

struct bench {
	struct store_writer *writer;
	struct error err;
	uint64_t clock[THREADS];   /* time of each launching thread */
	uint64_t free_ts[STREAMS]; /* when the stream's last operation ends */
	uint64_t random, ids, records, last_ts;
	uint32_t correlation;
	struct operation made[THREADS * STEP_OPS];
	size_t made_count;
};

static void check(struct bench *bench, int result)
{
	if (result >= 0)
		return;
	fprintf(stderr, "gpu_bench: %s\n", bench->err.message);
	exit(1);
}

static uint64_t random_next(struct bench *bench)
{
	bench->random ^= bench->random << 13; /* xorshift64, Marsaglia 2003 */
	bench->random ^= bench->random >> 7;
	bench->random ^= bench->random << 17;
	return bench->random;
}

static void append(struct bench *bench, const void *record)
{
	const struct waffle_rec *rec = record;

	check(bench, store_writer_append(bench->writer, record, &bench->err));
	bench->last_ts = rec->ts > bench->last_ts ? rec->ts : bench->last_ts;
	bench->records++;
}

/* ---- records ---- */

struct hit {
	struct waffle_rec_hit head;
	struct waffle_frame frame;
	uint64_t words[32];
	unsigned count;
};

static void hit_number(struct hit *hit, uint64_t number)
{
	hit->words[hit->count++] = number;
}

static void hit_text(struct hit *hit, const char *text)
{
	size_t len = strlen(text);

	hit->words[hit->count++] = len;
	memset(&hit->words[hit->count], 0, (len + 7) & ~7ull);
	memcpy(&hit->words[hit->count], text, len);
	hit->count += (unsigned)(len + 7) / 8;
}

static uint64_t hit_append(struct bench *bench, struct hit *hit, uint64_t ts, uint32_t tid,
			   uint32_t site)
{
	hit->frame = (struct waffle_frame){.id = ++bench->ids};
	hit->head = (struct waffle_rec_hit){.rec = {ts, tid, WAFFLE_REC_HIT, 0},
					    .tgid = PID,
					    .site = site,
					    .frame_bytes =
						    (uint32_t)sizeof(hit->frame) + hit->count * 8};
	append(bench, hit);
	return bench->ids;
}

static void end_append(struct bench *bench, uint64_t ts, uint32_t tid, uint32_t site, uint64_t id)
{
	const struct waffle_rec_span_end end = {
		.rec = {ts, tid, WAFFLE_REC_SPAN_END, 0}, .span_id = id, .tgid = PID, .site = site};

	append(bench, &end);
}

static void operation_append(struct bench *bench, const struct operation *operation)
{
	struct waffle_rec_on_track on = {.rec = {operation->start_ts, PID, WAFFLE_REC_ON_TRACK, 0},
					 .id = bench->ids + 1,
					 .tgid = PID,
					 .track = operation->stream + 1};
	struct hit hit;
	char grid[32];

	hit.count = 0;
	hit_text(&hit, operation->site == SITE_COPY  ? "copy"
		       : operation->site == SITE_SET ? "set"
						     : "kernel");
	hit_number(&hit, operation->stream / 4);
	hit_number(&hit, 1 + operation->stream / 4);
	hit_number(&hit, 7 + operation->stream);
	hit_number(&hit, operation->correlation);
	if (operation->site == SITE_COPY)
		hit_text(&hit, operation->bytes & 1 ? "HtoD" : "DtoH");
	if (operation->site < SITE_KERNEL) {
		hit_number(&hit, operation->bytes);
	} else {
		snprintf(grid, sizeof(grid), "%" PRIu32 ",1,1", 1 + operation->bytes % 4096);
		hit_text(&hit, grid);
		hit_text(&hit, "256,1,1");
		hit_number(&hit, 0);
		hit_number(&hit, 32 + operation->site);
	}
	append(bench, &on);
	end_append(bench, operation->end_ts, PID, operation->site,
		   hit_append(bench, &hit, operation->start_ts, PID, operation->site));
}

/* ---- the schedule ---- */

static void launch_make(struct bench *bench, unsigned thread)
{
	uint64_t r = random_next(bench), length = 1000 + (r >> 8) % (1000u << (r % 6)), start;
	uint32_t stream = thread * 2 + (r >> 40) % 2, kind = (uint32_t)(r >> 44) % 16;
	struct hit hit = {.count = 0};
	struct operation *operation = &bench->made[bench->made_count++];

	hit_number(&hit, ++bench->correlation);
	hit_text(&hit, kind < 2 ? "cudaMemcpyAsync" : "cudaLaunchKernel");
	hit_append(bench, &hit, bench->clock[thread], PID + thread, SITE_LAUNCH);
	bench->clock[thread] += 2000 + (r >> 20) % 4000;
	start = bench->clock[thread] + 4000 + (r >> 48) % 2000;
	start = start > bench->free_ts[stream] + 1000 ? start : bench->free_ts[stream] + 1000;
	*operation = (struct operation){
		.start_ts = start,
		.end_ts = start + length,
		.stream = stream,
		.correlation = bench->correlation,
		.bytes = (uint32_t)(r >> 30),
		.site = kind < 2    ? SITE_COPY
			: kind == 2 ? SITE_SET
				    : SITE_KERNEL + (uint32_t)(r >> 50) % KERNELS,
	};
	bench->free_ts[stream] = operation->end_ts;
}

/* The thread that launches next: records come in the order of their times. */
static unsigned thread_next(const struct bench *bench)
{
	unsigned next = 0;

	for (unsigned thread = 1; thread < THREADS; thread++)
		if (bench->clock[thread] < bench->clock[next])
			next = thread;
	return next;
}

/* The thread waits until its streams have done all operations. */
static void thread_wait(struct bench *bench, unsigned thread)
{
	for (unsigned stream = thread * 2; stream < thread * 2 + 2; stream++)
		if (bench->free_ts[stream] > bench->clock[thread])
			bench->clock[thread] = bench->free_ts[stream];
	bench->clock[thread] += 20000;
}

static void step_make(struct bench *bench, uint64_t step, size_t ops)
{
	uint64_t id[THREADS];

	for (unsigned thread = 0; thread < THREADS; thread++) {
		struct hit hit = {.count = 0};

		hit_number(&hit, step);
		id[thread] = hit_append(bench, &hit, bench->clock[thread], PID + thread, SITE_STEP);
	}
	for (size_t i = 0; i < ops; i++)
		launch_make(bench, thread_next(bench));
	for (unsigned thread = 0; thread < THREADS; thread++) {
		thread_wait(bench, thread);
		end_append(bench, bench->clock[thread], PID + thread, SITE_STEP, id[thread]);
	}
	for (size_t i = 0; i < bench->made_count; i++)
		operation_append(bench, &bench->made[i]);
	bench->made_count = 0;
}

static void file_open(struct bench *bench, const char *path)
{
	const struct store_meta meta = {.start_ts = START,
					.boot_ns = START,
					.real_ns = 1700000000000000000ull,
					.hostname = "bench",
					.machine = "x86_64",
					.cpu_count = 2};
	char name[32];

	check(bench, store_writer_open(&bench->writer, path, &meta, &bench->err));
	for (uint32_t i = 0; i < SITE_KERNEL + KERNELS; i++) {
		struct site_info site = sites[i < SITE_KERNEL ? i : SITE_KERNEL];

		if (i >= SITE_KERNEL) {
			snprintf(name, sizeof(name), "gemm<%" PRIu32 ">", i - SITE_KERNEL);
			site.name = name;
		}
		check(bench, store_writer_add_site(bench->writer, &site, &bench->err));
	}
}

static void tracks_append(struct bench *bench)
{
	for (uint32_t stream = 0; stream < STREAMS; stream++) {
		struct waffle_rec_track track = {
			.rec = {START, PID, WAFFLE_REC_TRACK, 0}, .tgid = PID, .track = stream + 1};

		snprintf(track.name, sizeof(track.name), "stream %" PRIu32, 7 + stream);
		snprintf(track.group, sizeof(track.group), "GPU %" PRIu32, stream / 4);
		append(bench, &track);
	}
}

int main(int argc, char **argv)
{
	static struct bench bench = {.random = 88172645463325252ull, .err = ERROR_INIT};
	uint64_t count = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
	struct store_counts counts[WAFFLE_SOURCE_COUNT] = {0};

	if (!count) {
		fprintf(stderr, "usage: gpu_bench OPERATIONS FILE\n");
		return 2;
	}
	file_open(&bench, argv[2]);
	tracks_append(&bench);
	for (unsigned thread = 0; thread < THREADS; thread++)
		bench.clock[thread] = START + 1000 + thread;
	for (uint64_t done = 0, step = 0; done < count; step++) {
		uint64_t ops =
			count - done < THREADS * STEP_OPS ? count - done : THREADS * STEP_OPS;

		step_make(&bench, step, ops);
		done += ops;
	}
	counts[WAFFLE_SOURCE_SPANS].produced = counts[WAFFLE_SOURCE_SPANS].delivered =
		bench.records;
	check(&bench, store_writer_close(bench.writer, bench.last_ts + 1000, counts, &bench.err));
	printf("records %" PRIu64 "\n", bench.records);
	return 0;
}
