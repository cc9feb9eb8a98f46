// SPDX-License-Identifier: Apache-2.0
/*
 * The store's numbers: bytes a record on disk, and the speed of writing and reading. The records
 * are those of a training loop: eight threads with nested spans of two integer keys, that wait for
 * each other by futex and pipe, on four CPUs; a switch comes with every wait, and every eighth wait
 * has a record of its own. Random times and values, so that the compressor has what it would have
 * in life. Every thread's states are known from begin to end, so that `why` explains all of it.
 *
 *	store_bench [RECORDS [FILE [RANK RANKS]]]
 *
 * With a rank it only writes: the file of one rank of a job, with eight ranks on each host.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"

#define THREADS 8
#define CPUS 4
#define BATCH (1u << 16)
#define SLOT_WORDS 10 /* the longest record of the mix: a hit with two keys */
#define DEPTH 4
#define PIPES 4
#define RANKS_OF_HOST 8

struct bench_thread {
	uint64_t id, trace_hi, trace_lo, step;
	uint64_t open[DEPTH], open_site[DEPTH];
	uint64_t since; /* on a CPU, or blocked */
	unsigned depth, cpu;
};

struct bench {
	struct bench_thread threads[THREADS];
	uint32_t tid;                     /* of the first thread, and the process */
	const struct store_meta *meta;    /* NULL: of no job */
	const struct store_rank *of_rank; /* likewise */
	uint64_t ts, random, made, switches;
	unsigned running[CPUS];
	unsigned told; /* the thread whose wait is told next; THREADS: none */
	uint64_t told_from;
	uint64_t (*slots)[SLOT_WORDS];
};

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13; /* xorshift64, Marsaglia 2003 */
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Short gaps are common, long ones are not: 100 ns to 100 µs. */
static uint64_t gap(struct bench *bench)
{
	uint64_t r = random_next(&bench->random);

	return 100 + (r >> 8) % (100u << (r % 11));
}

static void make_begin(struct bench *bench, unsigned t, uint64_t *slot)
{
	struct bench_thread *thread = &bench->threads[t];
	struct waffle_rec_hit *hit = (struct waffle_rec_hit *)slot;
	uint64_t *frame = (uint64_t *)(hit + 1);
	uint32_t site = thread->depth * 4 + (uint32_t)(random_next(&bench->random) % 4);

	if (!thread->depth) {
		thread->trace_hi = (thread->id + 1) * 0x9e3779b97f4a7c15ull;
		thread->trace_lo = thread->id + 2;
		thread->id += 2;
		thread->step++;
	}
	*hit = (struct waffle_rec_hit){
		.rec = {bench->ts, bench->tid + t, WAFFLE_REC_HIT, (uint16_t)thread->cpu},
		.tgid = bench->tid,
		.site = site,
		.frame_bytes = 48};
	frame[0] = ++thread->id;
	frame[1] = thread->depth ? thread->open[thread->depth - 1] : 0;
	frame[2] = thread->trace_hi;
	frame[3] = thread->trace_lo;
	frame[4] = thread->step;
	frame[5] = random_next(&bench->random) % 4096;
	thread->open[thread->depth] = frame[0];
	thread->open_site[thread->depth++] = site;
}

static void make_end(struct bench *bench, unsigned t, uint64_t *slot)
{
	struct bench_thread *thread = &bench->threads[t];

	thread->depth--;
	*(struct waffle_rec_span_end *)slot = (struct waffle_rec_span_end){
		.rec = {bench->ts, bench->tid + t, WAFFLE_REC_SPAN_END, (uint16_t)thread->cpu},
		.span_id = thread->open[thread->depth],
		.tgid = bench->tid,
		.site = (uint32_t)thread->open_site[thread->depth]};
}

/* A thread that is on a CPU and was already at ts. */
static unsigned waker_at(struct bench *bench, unsigned cpu, uint64_t ts)
{
	unsigned other = bench->running[random_next(&bench->random) % CPUS];

	return bench->threads[other].since <= ts ? other : bench->running[cpu];
}

/* The thread on a CPU blocks, in a futex if its number is even, else in a pipe; the other thread of
 * the CPU was woken a moment ago. */
static void make_switch(struct bench *bench, unsigned cpu, uint64_t *slot)
{
	unsigned t = bench->running[cpu], next = t ^ 4u;
	uint64_t wake_ts = bench->ts - 500 - random_next(&bench->random) % 20000;
	uint64_t earliest = bench->threads[t].since + 1;

	if (wake_ts < earliest)
		wake_ts = earliest < bench->ts ? earliest : bench->ts;
	*(struct waffle_rec_switch *)slot = (struct waffle_rec_switch){
		.rec = {bench->ts, bench->tid + t, WAFFLE_REC_SWITCH, (uint16_t)cpu},
		.next_tid = bench->tid + next,
		.waker_tid = bench->tid + waker_at(bench, cpu, wake_ts),
		.wake_ts = wake_ts,
		.prev_state = WAFFLE_TASK_INTERRUPTIBLE,
		.flags =
			WAFFLE_SWITCH_PREV_TRACED | WAFFLE_SWITCH_NEXT_TRACED | WAFFLE_SWITCH_WOKEN,
		.syscall = t % 2 ? 0 : 202,
		.args = {t % 2 ? t + 3 : 0x7f1200000040 + t * 64, t % 2 ? 0x7ffd12345678 : 128,
			 t % 2 ? 4096 : 2}};
	if (++bench->switches % 8 == 0) {
		bench->told = next;
		bench->told_from = bench->threads[next].since;
	}
	bench->running[cpu] = next;
	bench->threads[next].cpu = cpu;
	bench->threads[t].since = bench->ts;
	bench->threads[next].since = bench->ts;
}

static void make_wait(struct bench *bench, uint64_t *slot)
{
	*(struct waffle_rec_wait *)slot = (struct waffle_rec_wait){
		.rec = {bench->ts, bench->tid + bench->told, WAFFLE_REC_WAIT,
			(uint16_t)bench->threads[bench->told].cpu},
		.from_ts = bench->told_from,
		.object = bench->told % 2 ? 1 + bench->told / 2 : 0};
	bench->told = THREADS;
}

/* Name and state of a thread at the begin: four run, their partners wait. */
static void make_first(struct bench *bench, unsigned number, uint64_t *slot)
{
	unsigned t = number / 2;
	struct waffle_rec rec = {bench->ts, bench->tid + t, WAFFLE_REC_TASK, (uint16_t)(t % CPUS)};

	bench->threads[t].since = bench->ts;
	if (number % 2) {
		rec.kind = WAFFLE_REC_STATE;
		*(struct waffle_rec_state *)slot = (struct waffle_rec_state){
			.rec = rec,
			.tgid = bench->tid,
			.state = t < CPUS ? WAFFLE_THREAD_RUNNING : WAFFLE_THREAD_BLOCKED,
			.task_state = t < CPUS ? 0 : WAFFLE_TASK_INTERRUPTIBLE,
			.syscall = -1};
		return;
	}
	*(struct waffle_rec_task *)slot = (struct waffle_rec_task){
		.rec = rec, .tgid = bench->tid, .flags = WAFFLE_TASK_TRACED_FLAG, .start_ts = 1};
	snprintf(((struct waffle_rec_task *)slot)->comm, WAFFLE_COMM_BYTES, "worker-%u", t);
}

static void make_record(struct bench *bench, uint64_t *slot)
{
	unsigned cpu = (unsigned)(random_next(&bench->random) % CPUS);
	unsigned t = bench->running[cpu];
	struct bench_thread *thread = &bench->threads[t];
	unsigned choice = (unsigned)(random_next(&bench->random) % 3);

	if (bench->made++ < 2 * THREADS) {
		make_first(bench, (unsigned)bench->made - 1, slot);
		return;
	}
	if (bench->told < THREADS) {
		make_wait(bench, slot);
		return;
	}
	bench->ts += gap(bench) / CPUS;
	thread->cpu = cpu;
	if (choice == 2)
		make_switch(bench, cpu, slot);
	else if ((choice == 0 && thread->depth < DEPTH) || !thread->depth)
		make_begin(bench, t, slot);
	else
		make_end(bench, t, slot);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static const char *const bench_names[DEPTH] = {"step", "forward", "layer", "kernel"};
static const struct site_info bench_site = {
	.category = "train",
	.file = "train.c",
	.func = "loop",
	.object = "/usr/bin/train",
	.line = 42,
	.kind = WAFFLE_SITE_SPAN,
	.key_count = 2,
	.keys = {{WAFFLE_KEY_I64, "step"}, {WAFFLE_KEY_I64, "item"}},
};

static void check(int ret, const struct error *err)
{
	if (ret < 0) {
		fprintf(stderr, "store_bench: %s\n", err->message);
		exit(1);
	}
}

/* Four sites a depth, and the pipes that are waited for. */
static void add_tables(struct store_writer *writer)
{
	struct error err = ERROR_INIT;
	char name[32];

	for (unsigned i = 0; i < 4 * DEPTH; i++) {
		struct site_info site = bench_site;

		site.name = bench_names[i / 4];
		site.line += i;
		check(store_writer_add_site(writer, &site, &err), &err);
	}
	for (unsigned i = 0; i < PIPES; i++) {
		struct store_object pipe = {.pid = 5000, .name = name, .detail = "pipe"};

		snprintf(name, sizeof(name), "pipe:[%u]", 4242 + i);
		check(store_writer_add_object(writer, &pipe, &err), &err);
	}
}

static double bench_write(struct bench *bench, const char *path, uint64_t records)
{
	const struct store_counts counts[WAFFLE_SOURCE_COUNT] = {{records, records, 0}};
	const struct store_meta own = {
		.start_ts = bench->ts, .machine = "x86_64", .cpu_count = CPUS, .sched = true};
	const struct store_meta *meta = bench->meta ? bench->meta : &own;
	const struct store_process process = {
		.pid = bench->tid, .ts = bench->ts, .cmdline = "train"};
	struct error err = ERROR_INIT;
	struct store_writer *writer;
	double seconds = 0;

	check(store_writer_open(&writer, path, meta, &err), &err);
	add_tables(writer);
	if (bench->of_rank)
		check(store_writer_add_process(writer, &process, &err)
			      ?: store_writer_add_rank(writer, bench->of_rank, &err),
		      &err);
	for (uint64_t done = 0; done < records;) {
		unsigned count = records - done < BATCH ? (unsigned)(records - done) : BATCH;
		double start;

		for (unsigned i = 0; i < count; i++)
			make_record(bench, bench->slots[i]);
		start = seconds_now();
		for (unsigned i = 0; i < count; i++)
			check(store_writer_append(writer, (struct waffle_rec *)bench->slots[i],
						  &err),
			      &err);
		seconds += seconds_now() - start;
		done += count;
	}
	seconds -= seconds_now();
	check(store_writer_close(writer, bench->ts, counts, &err), &err);
	return seconds + seconds_now();
}

static double bench_read(const char *path, uint64_t records)
{
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	double start = seconds_now();
	uint64_t read = 0;
	int ret;

	check(store_reader_open(&reader, path, &err), &err);
	while ((ret = store_reader_next(reader, &rec, &err)) > 0)
		read++;
	check(ret, &err);
	store_reader_close(reader);
	if (read != records) {
		fprintf(stderr, "store_bench: read %" PRIu64 " of %" PRIu64 "\n", read, records);
		exit(1);
	}
	return seconds_now() - start;
}

/* Writes the file of one rank. The monotonic clocks of hosts differ, their wall clocks do not. */
static void write_rank(struct bench *bench, const char *path, uint64_t records, uint32_t rank,
		       uint32_t ranks)
{
	uint32_t host = rank / RANKS_OF_HOST;
	char name[32], boot_id[32];
	struct store_rank of_rank = {.rank = rank, .world_size = ranks, .job = "slurm:1"};
	struct store_meta meta = {.hostname = name,
				  .boot_id = boot_id,
				  .machine = "x86_64",
				  .command = "train",
				  .cpu_count = RANKS_OF_HOST * CPUS,
				  .sched = true};

	snprintf(name, sizeof(name), "node-%u", host);
	snprintf(boot_id, sizeof(boot_id), "boot-%u", host);
	bench->tid += rank % RANKS_OF_HOST * 100;
	bench->ts += host * 1000000000ull + rank % RANKS_OF_HOST;
	meta.start_ts = meta.boot_ns = bench->ts;
	meta.real_ns = 1700000000000000000 + rank % RANKS_OF_HOST;
	of_rank.pid = bench->tid;
	bench->meta = &meta;
	bench->of_rank = &of_rank;
	bench_write(bench, path, records);
}

int main(int argc, char **argv)
{
	uint64_t records = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000000;
	const char *path = argc > 2 ? argv[2] : "store_bench.waffle";
	struct bench bench = {
		.tid = 5000, .ts = 1000000000000, .random = 0x9e3779b97f4a7c15ull, .told = THREADS};
	double write_seconds, read_seconds;
	struct stat st = {0};

	if (!records) {
		fprintf(stderr, "usage: store_bench [RECORDS [FILE [RANK RANKS]]]\n");
		return 2;
	}
	bench.slots = malloc(BATCH * sizeof(*bench.slots));
	if (!bench.slots)
		return 1;
	if (argc > 4) /* ids of two ranks never meet */
		bench.random *= 2 * strtoull(argv[3], NULL, 10) + 1;
	for (unsigned t = 0; t < THREADS; t++)
		bench.threads[t].id = random_next(&bench.random);
	for (unsigned cpu = 0; cpu < CPUS; cpu++)
		bench.running[cpu] = cpu;
	if (argc > 4) {
		write_rank(&bench, path, records, (uint32_t)strtoul(argv[3], NULL, 10),
			   (uint32_t)strtoul(argv[4], NULL, 10));
		return 0;
	}
	write_seconds = bench_write(&bench, path, records);
	read_seconds = bench_read(path, records);
	if (stat(path, &st))
		return 1;
	printf("records %" PRIu64 "\nbytes_per_record %.2f\nwrite_ns_per_record %.1f\n"
	       "read_ns_per_record %.1f\n",
	       records, (double)st.st_size / (double)records, write_seconds * 1e9 / (double)records,
	       read_seconds * 1e9 / (double)records);
	if (argc <= 2)
		unlink(path);
	free(bench.slots);
	return 0;
}
