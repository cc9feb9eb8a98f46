// SPDX-License-Identifier: Apache-2.0
/*
 * Writes .waffle files without a kernel: make_capture scenario FILE, a small capture that holds one
 * of everything (test_export.py knows what) (loss: and losses),
 * make_capture bench FILE RECORDS [THREADS], a large one of spans with two integers, and switches,
 * make_capture alike FILE RECORDS, a small file of very many events,
 * make_capture rank FILE RANK LATE_MS REAL_NS, a rank of a job of RANK_COUNT, which sleeps LATE_MS
 * in each "load"; it began at REAL_NS since 1970, or make_capture random FILE SEED, records that
 * often contradict each other.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_fixture.h"

#define START 1000000000000ull
#define MS 1000000ull

struct capture {
	struct store_writer *writer;
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct error err;
};

static void check(struct capture *c, int code)
{
	if (code >= 0)
		return;
	fprintf(stderr, "make_capture: %s\n", c->err.message);
	exit(1);
}

static void append(struct capture *c, const void *rec)
{
	check(c, store_writer_append(c->writer, rec, &c->err));
	c->counts[WAFFLE_SOURCE_SPANS].produced++;
	c->counts[WAFFLE_SOURCE_SPANS].delivered++;
}

static const struct site_info sites[] = {
	{"step", "train", "train.c", "main", "/bin/train", 10, WAFFLE_SITE_SPAN, SITE_ROLE_NONE,
	 false, false, .key_count = 2,
	 .keys = {{WAFFLE_KEY_I64, "rank"}, {WAFFLE_KEY_STR, "note"}}},
	{"load", "", "load.c", "load", "/bin/train", 20, WAFFLE_SITE_SPAN, SITE_ROLE_NONE, false,
	 false, .key_count = 0, .keys = {{0}}},
	{"creating NaN", "", "train.c", "main", "/bin/train", 30, WAFFLE_SITE_EVENT, SITE_ROLE_NONE,
	 false, false, .key_count = 1, .keys = {{WAFFLE_KEY_U64, "id"}}},
	{"loss", "", "train.c", "main", "/bin/train", 40, WAFFLE_SITE_COUNTER, SITE_ROLE_NONE,
	 false, false, .key_count = 1, .keys = {{WAFFLE_KEY_NUMBER, "value"}}},
	{"slow disk", "", "load.c", "load", "/bin/train", 50, WAFFLE_SITE_LOG_WARN, SITE_ROLE_NONE,
	 false, false, .key_count = 0, .keys = {{0}}},
	{"allreduce", "mpi", "train.c", "main", "/bin/train", 60, WAFFLE_SITE_SPAN, SITE_ROLE_NONE,
	 false, false, .key_count = 2,
	 .keys = {{WAFFLE_KEY_CAUSE_EVENT, "cause"}, {WAFFLE_KEY_F64, "scale"}}},
	{"tokens", "", "train.c", "main", "/bin/train", 70, WAFFLE_SITE_COUNTER, SITE_ROLE_NONE,
	 false, false, .key_count = 1, .keys = {{WAFFLE_KEY_NUMBER, "value"}}},
	{"unit", "bench", "bench.c", "main", "/bin/bench", 80, WAFFLE_SITE_SPAN, SITE_ROLE_NONE,
	 false, false, .key_count = 2, .keys = {{WAFFLE_KEY_I64, "i"}, {WAFFLE_KEY_U64, "n"}}},
};

enum { STEP, LOAD, NAN_EVENT, LOSS_COUNTER, SLOW_LOG, ALLREDUCE, TOKENS, UNIT };

struct hit {
	struct waffle_rec_hit head;
	struct waffle_frame frame;
	uint64_t words[40];
};

static void hit(struct capture *c, uint64_t ts, uint32_t tid, uint32_t pid, uint32_t site,
		uint64_t id, uint64_t parent, const uint64_t *words, unsigned count)
{
	struct hit rec = {
		.head = {.rec = {ts, tid, WAFFLE_REC_HIT, 0}, .tgid = pid, .site = site},
		.frame = {id, parent, 0xabcd,
			  id == 0  ? 0
			  : parent ? parent
				   : id},
	};

	rec.head.frame_bytes = (uint32_t)(sizeof(rec.frame) + count * 8);
	memcpy(rec.words, words, count * 8);
	append(c, &rec);
}

static void span_end(struct capture *c, uint64_t ts, uint32_t tid, uint32_t pid, uint32_t site,
		     uint64_t id)
{
	struct waffle_rec_span_end rec = {
		.rec = {ts, tid, WAFFLE_REC_SPAN_END, 0}, .span_id = id, .tgid = pid, .site = site};

	append(c, &rec);
}

static void task(struct capture *c, uint64_t ts, uint32_t tid, uint32_t pid, const char *comm,
		 bool traced)
{
	struct waffle_rec_task rec = {.rec = {ts, tid, WAFFLE_REC_TASK, 0},
				      .tgid = pid,
				      .flags = traced ? WAFFLE_TASK_TRACED_FLAG : 0,
				      .start_ts = ts};

	memcpy(rec.comm, comm, strnlen(comm, sizeof(rec.comm) - 1));
	append(c, &rec);
}

static void state(struct capture *c, uint64_t ts, uint32_t tid, uint32_t pid, uint16_t cpu,
		  uint16_t what)
{
	struct waffle_rec_state rec = {.rec = {ts, tid, WAFFLE_REC_STATE, cpu},
				       .tgid = pid,
				       .state = what,
				       .task_state = what == WAFFLE_THREAD_BLOCKED ? 1 : 0,
				       .syscall = -1};

	append(c, &rec);
}

struct change {
	uint64_t ts;
	uint16_t cpu;
	uint32_t prev, next;
	uint16_t prev_state;
	uint8_t flags;
	uint64_t wake_ts;
	uint32_t waker;
	int32_t syscall;
};

static void change(struct capture *c, struct change s)
{
	struct waffle_rec_switch rec = {.rec = {s.ts, s.prev, WAFFLE_REC_SWITCH, s.cpu},
					.next_tid = s.next,
					.waker_tid = s.waker,
					.wake_ts = s.wake_ts,
					.prev_state = s.prev_state,
					.flags = s.flags,
					.syscall = s.syscall,
					.args = {7, 8, 9}};

	append(c, &rec);
}

#define P WAFFLE_SWITCH_PREV_TRACED
#define N WAFFLE_SWITCH_NEXT_TRACED
#define W WAFFLE_SWITCH_WOKEN

/* Process 100: threads 100 and 101, later 101 again. 200: a neighbour. Two CPUs. */
static void scenario_sched(struct capture *c, uint64_t at)
{
	const struct change rows[] = {
		/* 101 blocks in read() on CPU 1; 100 wakes it from CPU 0, in a softirq later. */
		{10 * MS, 1, 101, 0, 1, P, 0, 0, 0},
		{12 * MS, 1, 0, 101, 0, N | W, 11 * MS, 100, -1},
		/* 100 is preempted by the neighbour, which is seen to leave again. */
		{20 * MS, 0, 100, 200, 0x100, P | WAFFLE_SWITCH_PREEMPTED, 0, 0, -1},
		{22 * MS, 0, 200, 100, 1, N, 0, 0, -1},
		/* A neighbour that is not seen to leave: the next switch is from the idle thread.
		 */
		{30 * MS, 0, 100, 200, 2, P, 0, 0, 1},
		{34 * MS, 0, 0, 100, 0, N | W, 33 * MS, 200, -1},
		{36 * MS, 1, 101, 0, 1, P, 0, 0, 202},
		{38 * MS, 1, 0, 101, 0, N | W | WAFFLE_SWITCH_WAKER_SOFTIRQ, 37 * MS, 100, -1},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct change row = rows[i];

		if (row.ts < at || row.ts >= at + 10 * MS)
			continue;
		row.ts += START;
		row.wake_ts += row.wake_ts ? START : 0;
		change(c, row);
	}
}

static uint64_t bits(double value)
{
	uint64_t word;

	memcpy(&word, &value, sizeof(word));
	return word;
}

static void scenario(struct capture *c, bool loss)
{
	const uint64_t step[] = {(uint64_t)-3, 6 | WAFFLE_STR_CUT, 0};
	const uint64_t count[] = {WAFFLE_NUMBER_F64, bits(0.5)};
	const uint64_t tokens[] = {WAFFLE_NUMBER_U64, 123};
	const uint64_t number[] = {42};
	const uint64_t causes[] = {0x2001, bits(2.5)};
	uint64_t note[3];

	memcpy(note, step, sizeof(note));
	memcpy(&note[2], "ab\xff\"\ncd", 7); /* not UTF-8; six bytes of it */
	task(c, START, 100, 100, "train", true);
	task(c, START, 101, 100, "loader\xfe", true);
	task(c, START, 200, 200, "neighbour", false);
	state(c, START, 100, 100, 0, WAFFLE_THREAD_RUNNING);
	state(c, START, 101, 100, 1, WAFFLE_THREAD_RUNNING);
	span_end(c, START + 1 * MS, 100, 100, LOAD, 0x1000); /* begun before */
	hit(c, START + 2 * MS, 100, 100, STEP, 0x1001, 0, note, 3);
	hit(c, START + 3 * MS, 100, 100, LOAD, 0x1002, 0x1001, NULL, 0);
	hit(c, START + 4 * MS, 100, 100, NAN_EVENT, 0x2001, 0x1002, number, 1);
	hit(c, START + 5 * MS, 100, 100, LOSS_COUNTER, 0, 0x1002, count, 2);
	hit(c, START + 6 * MS, 101, 100, SLOW_LOG, 0x2002, 0, NULL, 0);
	hit(c, START + 7 * MS, 101, 100, ALLREDUCE, 0x1003, 0, causes, 2);
	scenario_sched(c, 10 * MS);
	hit(c, START + 13 * MS, 101, 100, LOAD, 0x1004, 0x1003, NULL, 0);
	span_end(c, START + 14 * MS, 100, 100, LOAD, 0x1002);
	/* 0x1003 ends before 0x1004, which is inside it: 0x1004 does not nest. */
	span_end(c, START + 15 * MS, 101, 100, ALLREDUCE, 0x1003);
	span_end(c, START + 16 * MS, 101, 100, LOAD, 0x1004);
	hit(c, START + 17 * MS, 101, 100, LOAD, 0x1005, 0, NULL, 0);
	hit(c, START + 18 * MS, 100, 100, TOKENS, 0, 0, tokens, 2);
	/* 0x1005 moves. */
	span_end(c, START + 19 * MS, 100, 100, LOAD, 0x1005);
	scenario_sched(c, 20 * MS);
	scenario_sched(c, 30 * MS);
	if (loss) {
		struct waffle_rec_loss rec = {.rec = {START + 42 * MS, 0, WAFFLE_REC_LOSS, 0},
					      .source = WAFFLE_SOURCE_SCHED,
					      .from_ts = START + 40 * MS,
					      .count = 77};

		append(c, &rec);
		c->counts[WAFFLE_SOURCE_SCHED].produced += 77;
		c->counts[WAFFLE_SOURCE_SCHED].lost += 77;
		/* 100 was running on CPU 0; now 0x100 leaves CPU 0 after unseen switches. */
		change(c, (struct change){START + 44 * MS, 0, 0, 100, 0, N, 0, 0, -1});
	}
	/* 0x1001 stays open. */
}

static void bench(struct capture *c, uint64_t records, uint32_t threads)
{
	uint64_t ts = START, next_id = 0x9e3779b97f4a7c15ull, i = 0;

	for (uint32_t t = 0; t < threads; t++)
		task(c, START, 100 + t, 100, "bench", true);
	/* A round: on a thread a span with four inside it, and a switch away and back. */
	while (i < records) {
		uint32_t tid = 100 + (uint32_t)(i / 12 % threads);
		uint64_t root = next_id += 0x9e3779b97f4a7c15ull;
		uint64_t words[2] = {i, i * 3};

		hit(c, ts += 300, tid, 100, UNIT, root, 0, words, 2);
		for (int k = 0; k < 4; k++) {
			uint64_t id = next_id += 0x9e3779b97f4a7c15ull;

			hit(c, ts += 300, tid, 100, UNIT, id, root, words, 2);
			span_end(c, ts += 700, tid, 100, UNIT, id);
		}
		change(c, (struct change){ts += 100, (uint16_t)(tid % 4), tid, 0, 1, P, 0, 0, 202});
		change(c, (struct change){ts += 400, (uint16_t)(tid % 4), 0, tid, 0, N | W,
					  ts - 200, 100 + (tid + 1) % threads, -1});
		span_end(c, ts += 300, tid, 100, UNIT, root);
		i += 12;
	}
}

/* The same event again and again, at equal distances, which takes hardly any room in a file. */
static void alike(struct capture *c, uint64_t records)
{
	task(c, START, 100, 100, "alike", true);
	for (uint64_t i = 1; i <= records; i++)
		hit(c, START + i * 1000, 100, 100, SLOW_LOG, 1, 0, NULL, 0);
}

/* Losses that are counted are those of the records, as of a capture's end. */
static void random_records(struct capture *c, uint64_t seed)
{
	struct record_source source = FIXTURE_SOURCE(seed);
	struct record_buffer buffer;

	for (int i = 0; i < 3000; i++) {
		fixture_record(&source, &buffer);
		if (buffer.rec.kind == WAFFLE_REC_LOSS) {
			buffer.loss.count %= 1000000;
			c->counts[buffer.loss.source].produced += buffer.loss.count;
			c->counts[buffer.loss.source].lost += buffer.loss.count;
		}
		append(c, &buffer);
	}
}

/* ---- a rank of a job ---- */

#define RANK_COUNT 100
#define RANK_STEPS 20
#define RANK_NODE 8   /* ranks of a host */
#define NANOSLEEP 230 /* the number of the system call on x86-64 */
#define RECVFROM 45

/* The thread is blocked in a system call. An interrupt wakes it. */
static void blocked(struct capture *c, uint64_t from_ts, uint64_t to_ts, uint32_t tid, int syscall)
{
	change(c, (struct change){from_ts, 0, tid, 0, 1, P, 0, 0, syscall});
	change(c, (struct change){to_ts, 0, 0, tid, 0, N | W | WAFFLE_SWITCH_WAKER_HARDIRQ, to_ts,
				  0, -1});
}

static void rank_step(struct capture *c, uint64_t at, uint32_t pid, uint64_t id, uint64_t rank,
		      uint64_t late_ns)
{
	const uint64_t note[] = {rank, 2, 0x6b6f /* "ok" */}, scale[] = {0, 0};
	uint64_t loaded = at + 10 * MS + late_ns;

	hit(c, at, pid, pid, STEP, id, 0, note, 3);
	hit(c, at + MS, pid, pid, LOAD, id + 1, id, NULL, 0);
	if (late_ns)
		blocked(c, at + 2 * MS, at + 2 * MS + late_ns, pid, NANOSLEEP);
	span_end(c, loaded, pid, pid, LOAD, id + 1);
	hit(c, loaded + MS, pid, pid, ALLREDUCE, id + 2, id, scale, 2);
	blocked(c, loaded + 2 * MS, at + 90 * MS, pid, RECVFROM);
	span_end(c, at + 91 * MS, pid, pid, ALLREDUCE, id + 2);
	span_end(c, at + 92 * MS, pid, pid, STEP, id);
}

static int make_rank(const char *path, uint32_t rank, uint64_t late_ms, uint64_t real_ns)
{
	uint32_t pid = 1000 + rank % RANK_NODE;
	char host[32];
	struct store_meta meta = {
		.start_ts = START,
		.boot_ns = START + 5000000000ull,
		.real_ns = real_ns,
		.hostname = host,
		.kernel = "6.1.0-13-amd64",
		.machine = "x86_64",
		.version = "0",
		.command = "/opt/train --epochs 1",
		.boot_id = host,
		.cpu_count = 1,
		.sched = true,
	};
	struct store_process process = {
		.pid = pid, .ppid = 1, .ts = START, .cmdline = "/opt/train --epochs 1"};
	struct store_rank entry = {START, pid, rank, RANK_COUNT, "slurm:4711"};
	struct capture c = {0};

	snprintf(host, sizeof(host), "node-%02u", rank / RANK_NODE);
	check(&c, store_writer_open(&c.writer, path, &meta, &c.err));
	for (size_t i = 0; i < sizeof(sites) / sizeof(sites[0]); i++)
		check(&c, store_writer_add_site(c.writer, &sites[i], &c.err));
	check(&c, store_writer_add_process(c.writer, &process, &c.err));
	check(&c, store_writer_add_rank(c.writer, &entry, &c.err));
	task(&c, START, pid, pid, "train", true);
	state(&c, START, pid, pid, 0, WAFFLE_THREAD_RUNNING);
	for (uint64_t i = 0; i < RANK_STEPS; i++)
		rank_step(&c, START + MS + i * 100 * MS, pid,
			  ((uint64_t)rank + 1) << 32 | (i + 1) << 8, rank, late_ms * MS);
	check(&c,
	      store_writer_close(c.writer, START + (RANK_STEPS + 1) * 100 * MS, c.counts, &c.err));
	return 0;
}

static int make(int argc, char **argv)
{
	struct store_meta meta = {
		.start_ts = START,
		.boot_ns = START + 5000000000ull,
		.real_ns = 1700000000000000000ull,
		.hostname = "host",
		.kernel = "6.1.0-13-amd64",
		.machine = "x86_64",
		.version = "0",
		.command = "train --epochs 1",
		.cpu_count = 2,
		.sched = true,
	};
	struct store_process process = {
		.pid = 100, .ppid = 1, .ts = START, .cmdline = "train --epochs 1"};
	struct capture c = {0};

	bool random = strcmp(argv[1], "random") == 0, bomb = strcmp(argv[1], "alike") == 0;
	bool large = bomb || strcmp(argv[1], "bench") == 0;
	const struct site_info *table = random ? fixture_sites : sites;
	size_t count = random ? FIXTURE_SITES : sizeof(sites) / sizeof(sites[0]);
	uint64_t number = argc > 3 ? strtoull(argv[3], NULL, 10) : 1000000;

	check(&c, store_writer_open(&c.writer, argv[2], random ? &fixture_meta : &meta, &c.err));
	for (size_t i = 0; i < count; i++)
		check(&c, store_writer_add_site(c.writer, &table[i], &c.err));
	check(&c, store_writer_add_process(c.writer, &process, &c.err));
	if (bomb)
		alike(&c, number);
	else if (large)
		bench(&c, number, argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 8);
	else if (random)
		random_records(&c, number);
	else
		scenario(&c, strcmp(argv[1], "loss") == 0);
	check(&c, store_writer_close(c.writer, START + (large ? 3600 * 1000 * MS : 50 * MS),
				     c.counts, &c.err));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "make_capture: scenario|loss|bench|alike|rank|random FILE …\n");
		return 2;
	}
	if (argc == 6 && !strcmp(argv[1], "rank"))
		return make_rank(argv[2], (uint32_t)strtoul(argv[3], NULL, 10),
				 strtoull(argv[4], NULL, 10), strtoull(argv[5], NULL, 10));
	return make(argc, argv);
}
