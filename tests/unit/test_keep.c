// SPDX-License-Identifier: Apache-2.0
/* The writer without a file, which the flight recorder uses: what it keeps, drops, and writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "capture/enrich/frame_names_internal.h"
#include "store_fixture.h"
#include "store_helpers.h"

#define SITE_STEP 0 /* a span with two keys, of fixture_sites */

static struct store_writer *open_memory(void)
{
	struct store_writer *writer = NULL;
	struct error err = ERROR_INIT;

	must(store_writer_open_memory(&writer, &err), &err);
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		must(store_writer_add_site(writer, &fixture_sites[i], &err), &err);
	return writer;
}

static void begin_segment(struct store_writer *writer, uint64_t from_ts)
{
	struct error err = ERROR_INIT;

	must(store_writer_begin_segment(writer, from_ts, &err), &err);
}

/* Writes what is kept to the test's file, and opens it. */
static struct store_reader *dump(struct store_writer *memory, const char *path,
				 struct store_counts *counts)
{
	struct store_writer *file = NULL;
	struct store_meta meta = fixture_meta;
	struct error err = ERROR_INIT;

	meta.trigger = "a test";
	meta.trigger_ts = 77;
	must(store_writer_open(&file, path, &meta, &err), &err);
	must(store_writer_dump(memory, file, counts, &err), &err);
	must(store_writer_close(file, 1000000, counts, &err), &err);
	return open_reader(path);
}

static struct waffle_rec rec_of(unsigned kind, uint64_t ts, uint32_t tid)
{
	return (struct waffle_rec){.ts = ts, .tid = tid, .kind = (uint16_t)kind};
}

static void append_begin_of(struct store_writer *writer, uint64_t ts, uint64_t id, uint32_t tgid)
{
	struct record_buffer buffer;
	struct waffle_frame *frame = (void *)(&buffer.hit + 1);
	uint64_t *values = (uint64_t *)(frame + 1);

	buffer.hit = (struct waffle_rec_hit){.rec = rec_of(WAFFLE_REC_HIT, ts, 10),
					     .tgid = tgid,
					     .site = SITE_STEP,
					     .frame_bytes = sizeof(*frame) + 16};
	*frame = (struct waffle_frame){.id = id, .trace_hi = 1, .trace_lo = 2};
	values[0] = id * 10;
	values[1] = id * 20;
	append(writer, &buffer.rec);
}

static void append_begin(struct store_writer *writer, uint64_t ts, uint64_t id)
{
	append_begin_of(writer, ts, id, 10);
}

static void append_end(struct store_writer *writer, uint64_t ts, uint64_t id)
{
	struct waffle_rec_span_end end = {.rec = rec_of(WAFFLE_REC_SPAN_END, ts, 10),
					  .span_id = id,
					  .tgid = 10,
					  .site = SITE_STEP};

	append(writer, &end.rec);
}

static void append_task(struct store_writer *writer, uint64_t ts, uint32_t tid, const char *comm)
{
	struct waffle_rec_task task = {.rec = rec_of(WAFFLE_REC_TASK, ts, tid),
				       .tgid = 10,
				       .flags = WAFFLE_TASK_TRACED_FLAG};

	strcpy(task.comm, comm);
	append(writer, &task.rec);
}

static void append_exit(struct store_writer *writer, uint64_t ts, uint32_t tid, uint32_t tgid)
{
	struct waffle_rec_exit end = {.rec = rec_of(WAFFLE_REC_EXIT, ts, tid), .tgid = tgid};

	append(writer, &end.rec);
}

static void append_loss(struct store_writer *writer, uint64_t ts, uint64_t count)
{
	struct waffle_rec_loss loss = {.rec = rec_of(WAFFLE_REC_LOSS, ts, 0),
				       .source = WAFFLE_SOURCE_SPANS,
				       .from_ts = ts - 5,
				       .count = count};

	append(writer, &loss.rec);
}

static void append_track(struct store_writer *writer, uint64_t ts, uint32_t number)
{
	struct waffle_rec_track track = {.rec = rec_of(WAFFLE_REC_TRACK, ts, 10),
					 .tgid = 10,
					 .track = number,
					 .name = "gpu"};

	append(writer, &track.rec);
}

/* "kind@ts " of all records. */
static const char *records_text(struct store_reader *reader)
{
	static char text[4096];
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;
	size_t len = 0;

	text[0] = '\0';
	must(store_reader_seek(reader, STORE_ALL, &err), &err);
	while (store_reader_next(reader, &rec, &err) > 0)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%u@%llu ", rec->kind,
					(unsigned long long)rec->ts);
	return text;
}

static void test_dump_has_all_records_of_all_segments_in_their_order(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct record_source source = FIXTURE_SOURCE(1), again = FIXTURE_SOURCE(1);
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct record_buffer expected;
	const struct waffle_rec *rec;
	struct store_reader *reader;
	struct error err = ERROR_INIT;
	uint64_t produced = 0;

	for (unsigned segment = 0; segment < 5; segment++) {
		begin_segment(memory, segment);
		append_random(memory, &source, 20000);
	}
	reader = dump(memory, test->path, counts);
	must(store_reader_seek(reader, STORE_ALL, &err), &err);
	for (unsigned i = 0; i < 100000; i++) {
		fixture_record(&again, &expected);
		assert_int_equal(store_reader_next(reader, &rec, &err), 1);
		assert_memory_equal(rec, &expected.rec, sizeof(*rec));
	}
	assert_at_end(reader);
	for (unsigned i = 0; i < WAFFLE_SOURCE_COUNT; i++) {
		assert_true(counts[i].produced == counts[i].delivered + counts[i].lost);
		produced += counts[i].delivered;
	}
	assert_true(produced > 90000 && produced <= 100000);
	assert_string_equal(store_reader_meta(reader)->trigger, "a test");
	assert_true(store_reader_meta(reader)->trigger_ts == 77);
	assert_false(store_reader_truncated(reader, &(uint64_t){0}));
	store_reader_close(reader);
	store_writer_discard(memory);
}

/* Kinds: 1 begin, 2 end, 4 task, 8 exit, 9 loss. */
static void test_dropped_segments_leave_open_spans_and_names_and_take_their_losses(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct store_reader *reader;

	begin_segment(memory, 100);
	append_task(memory, 101, 10, "main");
	append_task(memory, 102, 11, "gone");
	append_begin(memory, 110, 1); /* open for ever */
	append_begin(memory, 111, 2); /* ends in the second segment */
	append_begin(memory, 112, 3); /* ends in the first */
	append_end(memory, 113, 3);
	append_exit(memory, 114, 11, 10);
	append_loss(memory, 115, 7);
	begin_segment(memory, 200);
	append_end(memory, 201, 2);
	append_loss(memory, 202, 5);
	begin_segment(memory, 300);
	append_begin(memory, 301, 4);

	assert_true(store_writer_kept(memory).from_ts == 100);
	store_writer_drop(memory, 199, UINT64_MAX);
	assert_true(store_writer_kept(memory).from_ts == 100);
	store_writer_drop(memory, 200, UINT64_MAX);
	assert_true(store_writer_kept(memory).from_ts == 200);
	reader = dump(memory, test->path, counts);
	assert_string_equal(records_text(reader), "4@101 1@110 1@111 2@201 9@202 1@301 ");
	assert_true(counts[WAFFLE_SOURCE_SPANS].lost == 5);
	assert_true(counts[WAFFLE_SOURCE_SPANS].delivered == 5); /* that of the thread, too */
	store_reader_close(reader);

	store_writer_drop(memory, 1000, UINT64_MAX); /* never the current one */
	assert_true(store_writer_kept(memory).from_ts == 300);
	reader = dump(memory, test->path, counts);
	assert_string_equal(records_text(reader), "4@101 1@110 1@301 ");
	assert_true(counts[WAFFLE_SOURCE_SPANS].lost == 0);
	store_reader_close(reader);

	begin_segment(memory, 400);
	append_exit(memory, 401, 10, 10); /* the process and its spans */
	begin_segment(memory, 500);
	append_task(memory, 501, 12, "next");
	store_writer_drop(memory, 500, UINT64_MAX);
	reader = dump(memory, test->path, counts);
	assert_string_equal(records_text(reader), "4@501 ");
	store_reader_close(reader);
	store_writer_discard(memory);
}

static void append_thread_name(struct store_writer *writer, uint64_t ts, uint64_t start_ts)
{
	struct waffle_rec_thread_name name = {.rec = rec_of(WAFFLE_REC_THREAD_NAME, ts, 11),
					      .tgid = 10,
					      .start_ts = start_ts,
					      .name = "loader"};

	append(writer, &name.rec);
}

static void test_threads_have_their_own_names_in_a_later_file(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct waffle_rec_task again = {.rec = rec_of(WAFFLE_REC_TASK, 220, 11), .start_ts = 9};
	struct store_reader *reader;
	char text[64];

	begin_segment(memory, 100);
	append_task(memory, 101, 11, "main");
	append_thread_name(memory, 101, 0);
	begin_segment(memory, 200);
	append_task(memory, 201, 11, "renamed");
	/* Its start time differs, so this name belongs to an earlier thread with the same tid. */
	append_thread_name(memory, 202, 1);
	begin_segment(memory, 300);
	store_writer_drop(memory, 300, UINT64_MAX);
	reader = dump(memory, test->path, counts);
	snprintf(text, sizeof(text), "4@201 %u@101 ", WAFFLE_REC_THREAD_NAME);
	assert_string_equal(records_text(reader), text);
	store_reader_close(reader);
	append(memory, &again.rec); /* another thread has its tid */
	begin_segment(memory, 400);
	store_writer_drop(memory, 400, UINT64_MAX);
	reader = dump(memory, test->path, counts);
	assert_string_equal(records_text(reader), "4@220 ");
	store_reader_close(reader);
	store_writer_discard(memory);
}

static void test_tracks_have_their_names_in_a_later_file(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct waffle_rec_on_track on = {
		.rec = rec_of(WAFFLE_REC_ON_TRACK, 120, 10), .id = 1, .tgid = 10, .track = 1};
	struct store_reader *reader;
	char text[64];

	begin_segment(memory, 100);
	append_track(memory, 101, 1);
	append(memory, &on.rec);
	append_begin(memory, 120, 1);
	begin_segment(memory, 200);
	append_end(memory, 130, 1); /* the begin is not written again without its track */
	append_task(memory, 201, 10, "main");
	store_writer_drop(memory, 200, UINT64_MAX);
	reader = dump(memory, test->path, counts);
	snprintf(text, sizeof(text), "%u@101 2@130 4@201 ", WAFFLE_REC_TRACK);
	assert_string_equal(records_text(reader), text);
	store_reader_close(reader);
	append_exit(memory, 202, 10, 10);
	begin_segment(memory, 300);
	append_task(memory, 301, 11, "next");
	store_writer_drop(memory, 300, UINT64_MAX);
	reader = dump(memory, test->path, counts);
	assert_string_equal(records_text(reader), "4@301 ");
	store_reader_close(reader);
	store_writer_discard(memory);
}

/* An entry a second for some days: in the file, and not as a chunk each. */
static void test_tables_are_no_more_chunks_the_longer_it_runs(void **state)
{
	const struct store_counts none[WAFFLE_SOURCE_COUNT] = {{0}};
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	const uint64_t addresses[] = {0x1000, 0x2000};
	struct store_stack stack = {.addresses = addresses, .count = 2, .pid = 7};
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	size_t size;

	begin_segment(memory, 1);
	for (uint32_t i = 1; i <= 20000; i++) {
		struct store_object object = {.ino = i, .pid = 7, .name = "", .detail = ""};

		must(store_writer_add_stack(memory, &stack, &err), &err);
		must(store_writer_add_object(memory, &object, &err), &err);
		append_task(memory, i, 10, "main");
		must(store_writer_flush(memory, none, &err), &err);
		store_writer_drop(memory, 0, 64 << 10);
	}
	reader = dump(memory, test->path, counts);
	assert_non_null(store_reader_stack(reader, 20000));
	assert_true(store_reader_object(reader, 20000)->ino == 20000);
	assert_null(store_reader_object(reader, 20001));
	store_reader_close(reader);
	free(read_file(test->path, &size));
	assert_true(size < 512 << 10); /* with a chunk each, the headers alone are 2 MiB */
	store_writer_discard(memory);
}

static void test_values_of_a_begin_that_is_written_again_are_the_same(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	const struct waffle_rec_hit *hit;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	const uint64_t *frame;

	begin_segment(memory, 100);
	append_begin(memory, 110, 42);
	begin_segment(memory, 200);
	append_task(memory, 201, 10, "main");
	store_writer_drop(memory, 200, UINT64_MAX);
	reader = dump(memory, test->path, counts);
	must(store_reader_seek(reader, STORE_ALL, &err), &err);
	assert_int_equal(store_reader_next(reader, &rec, &err), 1);
	hit = (const struct waffle_rec_hit *)rec;
	frame = (const uint64_t *)(hit + 1);
	assert_true(rec->ts == 110 && rec->tid == 10 && hit->site == SITE_STEP);
	assert_true(frame[0] == 42 && frame[2] == 1 && frame[3] == 2);
	assert_true(frame[4] == 420 && frame[5] == 840);
	store_reader_close(reader);
	store_writer_discard(memory);
}

static void test_state_is_written_only_at_the_begin_of_a_file(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct waffle_rec_state thread = {.rec = rec_of(WAFFLE_REC_STATE, 150, 10), .tgid = 10};
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct error err = ERROR_INIT;
	struct store_reader *reader;

	for (uint64_t ts = 100; ts <= 300; ts += 100) {
		begin_segment(memory, ts);
		thread.rec.ts = ts + 50;
		must(store_writer_append_head(memory, &thread.rec, &err), &err);
		append_task(memory, ts + 60, 10, "main");
	}
	store_writer_drop(memory, 200, UINT64_MAX);
	reader = dump(memory, test->path, counts);
	assert_string_equal(records_text(reader), "5@250 4@260 4@360 ");
	store_reader_close(reader);
	store_writer_discard(memory);
}

static void test_memory_is_limited_also_within_a_segment(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct record_source source = FIXTURE_SOURCE(3);
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct store_reader *reader;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;
	uint64_t most = 2u << 20, from_ts = 0, records = 0;

	begin_segment(memory, 1);
	for (unsigned i = 0; i < 300; i++) {
		struct store_kept kept;

		append_random(memory, &source, 1000);
		store_writer_drop(memory, 0, most);
		kept = store_writer_kept(memory);
		assert_true(kept.bytes <= most);
		assert_true(kept.from_ts >= from_ts);
		from_ts = kept.from_ts;
	}
	assert_true(from_ts > 1);
	reader = dump(memory, test->path, counts);
	must(store_reader_seek(reader, STORE_ALL, &err), &err);
	while (store_reader_next(reader, &rec, &err) > 0)
		records++;
	assert_true(records > 1000 && records < 300000);
	store_reader_close(reader);
	store_writer_discard(memory);
}

/* A program gives records on a track any time. */
static void test_a_record_of_the_future_does_not_end_what_is_kept(void **state)
{
	struct store_writer *memory = open_memory();
	const struct store_counts none[WAFFLE_SOURCE_COUNT] = {{0}};
	struct error err = ERROR_INIT;
	uint64_t bytes;

	(void)state;
	begin_segment(memory, 100);
	store_writer_set_now(memory, 110);
	append_begin(memory, 1000000, 1);
	must(store_writer_flush(memory, none, &err), &err);
	bytes = store_writer_kept(memory).bytes;
	store_writer_set_now(memory, 120);
	append_task(memory, 120, 10, "main");
	must(store_writer_flush(memory, none, &err), &err);
	store_writer_drop(memory, 0, bytes);
	assert_true(store_writer_kept(memory).from_ts == 111);
	store_writer_discard(memory);
}

/* Many processes begin spans, end some of them, and exit or execute others, in any order. */
static void test_open_spans_of_any_process_end_with_it(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct store_reader *reader;
	uint64_t ended = 0;
	uint32_t seed = 1, pid;

	begin_segment(memory, 1);
	for (uint64_t i = 1; i <= 200000; i++) {
		seed = seed * 1664525 + 1013904223;
		pid = 100 + (seed >> 24) % 20;
		append_begin_of(memory, i, i, pid);
		if (seed >> 16 & 1)
			append_end(memory, i, i - (seed >> 20) % 50);
		if (i % 1000 == 0) {
			append_exit(memory, i, pid, pid);
			begin_segment(memory, i);
			store_writer_drop(memory, i > 5000 ? i - 5000 : 0, UINT64_MAX);
		}
	}
	for (pid = 100; pid < 120; pid++)
		append_exit(memory, 200001, pid, pid);
	begin_segment(memory, 200002);
	begin_segment(memory, 200003);
	append_task(memory, 200004, 10, "main");
	store_writer_drop(memory, 200003, UINT64_MAX);
	reader = dump(memory, test->path, counts);
	for (const char *at = records_text(reader); (at = strstr(at, "1@")); at++)
		ended++;
	assert_int_equal(ended, 0);
	store_reader_close(reader);
	store_writer_discard(memory);
}

static bool is_odd(uint32_t number, void *arg)
{
	(*(uint32_t *)arg)++;
	return number % 2;
}

static bool is_any(uint32_t number, void *arg)
{
	(void)number;
	(void)arg;
	return true;
}

/* A wait at `ts` for an object, with a stack. */
static void append_wait(struct store_writer *writer, uint64_t ts, uint32_t stack, uint32_t object)
{
	struct waffle_rec_wait wait = {.rec = rec_of(WAFFLE_REC_WAIT, ts, 10),
				       .from_ts = ts - 1,
				       .kernel_stack = stack,
				       .object = object};

	append(writer, &wait.rec);
}

/* A recorder runs for weeks. */
static void test_stacks_and_objects_of_dropped_records_make_room(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	const uint64_t addresses[] = {0x1000, 0x2000};
	struct store_stack stack = {.addresses = addresses, .count = 2};
	struct store_object object = {.ino = 5, .dev = 6, .name = "/data/a", .detail = "ext4"};
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	uint32_t asked = 0;

	begin_segment(memory, 100);
	for (uint32_t number = 1; number <= 5; number++) {
		assert_int_equal(store_writer_next(memory, STORE_STACKS), number);
		stack.pid = object.pid = number;
		must(store_writer_add_stack(memory, &stack, &err), &err);
		must(store_writer_add_object(memory, &object, &err), &err);
	}
	begin_segment(memory, 200);
	append_wait(memory, 201, 1, 3); /* the file needs these */
	store_writer_drop(memory, 200, UINT64_MAX);
	store_writer_sweep(memory, STORE_STACKS, is_odd, &asked);
	assert_int_equal(asked, 4); /* all but 1: 3 and 5 go */
	store_writer_sweep(memory, STORE_OBJECTS, is_odd, &asked);
	assert_int_equal(store_writer_next(memory, STORE_STACKS), 5);
	object.name = "/data/b";
	stack.pid = 55;
	must(store_writer_add_stack(memory, &stack, &err), &err);
	must(store_writer_add_object(memory, &object, &err), &err);
	append_wait(memory, 202, 5, 5);

	reader = dump(memory, test->path, counts);
	assert_int_equal(store_reader_stack(reader, 1)->pid, 1);
	assert_int_equal(store_reader_stack(reader, 2)->pid, 2);
	assert_int_equal(store_reader_stack(reader, 3)->count, 0);
	assert_int_equal(store_reader_stack(reader, 5)->pid, 55);
	assert_int_equal(store_reader_stack(reader, 5)->addresses[1], 0x2000);
	assert_null(store_reader_stack(reader, 6));
	assert_string_equal(store_reader_object(reader, 1)->name, "");
	assert_string_equal(store_reader_object(reader, 3)->name, "/data/a");
	assert_string_equal(store_reader_object(reader, 5)->name, "/data/b");
	assert_int_equal(store_reader_object(reader, 5)->ino, 5);
	store_reader_close(reader);
	store_writer_discard(memory);
}

/* As many as a recorder sees in some days. */
static void test_tables_never_become_full_if_little_is_kept(void **state)
{
	struct store_writer *memory = open_memory();
	uint64_t addresses[30] = {0x1000};
	struct store_stack stack = {.addresses = addresses, .count = 30, .pid = 7};
	struct store_object object = {.dev = 6, .name = "", .detail = "ext4"};
	struct error err = ERROR_INIT;
	char name[64];

	(void)state;
	object.name = name;
	for (uint64_t i = 1; i <= 1500000; i++) {
		if (i % 1000 == 1) {
			begin_segment(memory, i);
			append_task(memory, i, 10, "main");
			store_writer_drop(memory, i > 8000 ? i - 8000 : 0, UINT64_MAX);
		}
		snprintf(name, sizeof(name), "/data/%llu", (unsigned long long)i);
		addresses[1] = object.ino = i;
		assert_true(store_writer_has_room(memory));
		must(store_writer_add_stack(memory, &stack, &err), &err);
		must(store_writer_add_object(memory, &object, &err), &err);
		if (store_writer_should_sweep(memory, STORE_STACKS))
			store_writer_sweep(memory, STORE_STACKS, is_any, NULL);
		if (store_writer_should_sweep(memory, STORE_OBJECTS))
			store_writer_sweep(memory, STORE_OBJECTS, is_any, NULL);
	}
	assert_true(store_writer_next(memory, STORE_STACKS) < 300000);
	assert_int_equal(store_writer_left_out(memory), 0);
	store_writer_discard(memory);
}

static void add_mapping(struct store_writer *writer, uint32_t pid, uint64_t start, uint64_t ts,
			const char *path)
{
	struct store_mapping mapping = {.ts = ts,
					.start = start,
					.end = start + 4096,
					.ino = 5,
					.dev = 6,
					.pid = pid,
					.path = path};
	struct error err = ERROR_INIT;

	must(store_writer_add_mapping(writer, &mapping, &err), &err);
}

/* Processes come and go, and process 1 opens and closes libraries. */
static void test_tables_forget_processes_that_are_gone(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct store_process process = {.pid = 1, .cmdline = "server"};
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	const struct store_mapping *last = NULL;
	const struct store_name *name = NULL;
	uint32_t opened = 0;
	char text[64];

	must(store_writer_add_process(memory, &process, &err), &err);
	add_mapping(memory, 1, 0x400000, 1, "/usr/bin/server");
	for (uint32_t i = 2; i <= 20000; i++) {
		if (i % 100 == 2) {
			begin_segment(memory, i);
			append_task(memory, i, 10, "main");
			store_writer_drop(memory, i > 800 ? i - 800 : 0, UINT64_MAX);
			store_writer_compact(memory);
		}
		snprintf(text, sizeof(text), "job %u", i);
		process = (struct store_process){.pid = i, .ts = i, .cmdline = text};
		must(store_writer_add_process(memory, &process, &err), &err);
		for (uint64_t m = 0; m < 20; m++)
			add_mapping(memory, i, 0x1000000 * m, i, text);
		must(store_writer_add_name(
			     memory,
			     &(struct store_name){.value = 7, .pid = 1, .name = text, .since = i},
			     &err),
		     &err);
		add_mapping(memory, 1, 0x7f0000000000, i, text);
		store_writer_forget(memory, i, i);
	}
	reader = dump(memory, test->path, counts);
	assert_true(store_reader_process_count(reader) < 15000);
	assert_string_equal(store_reader_process(reader, 0)->cmdline, "server");
	process = *store_reader_process(reader, store_reader_process_count(reader) - 1);
	assert_int_equal(process.pid, 20000);
	assert_string_equal(process.cmdline, "job 20000");
	for (uint32_t i = 0; i < store_reader_mapping_count(reader); i++)
		if (store_reader_mapping(reader, i)->pid == 1) {
			last = store_reader_mapping(reader, i);
			opened++;
		}
	assert_true(opened > 800 && opened < 15000);
	assert_string_equal(last->path, "job 20000");
	name = store_reader_name(reader, store_reader_name_count(reader) - 1);
	assert_string_equal(name->name, "job 20000");
	assert_true(store_reader_name_count(reader) < 15000);
	store_reader_close(reader);
	store_writer_discard(memory);
}

/* A span, so that its stack is kept as long as it. */
static void append_stack(struct store_writer *writer, uint64_t ts, uint32_t number)
{
	struct waffle_rec_stack stack = {
		.rec = rec_of(WAFFLE_REC_STACK, ts, 10), .id = ts, .python_stack = number};

	append(writer, &stack.rec);
}

/* Names as a program makes that generates code for days; the pid of one that has ended is used
 * again. */
static void test_names_of_python_are_kept_as_long_as_stacks_refer_to_them(void **state)
{
	struct store_test *test = *state;
	struct store_writer *memory = open_memory();
	struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct frame_names names = {.writer = memory};
	uint64_t addresses[2];
	struct store_stack stack = {.addresses = addresses, .count = 2, .pid = 7};
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	const struct store_stack *one;
	struct map named = {0};
	uint32_t most = 0, found = 0, number;
	char text[64];

	store_writer_forget(memory, 7, 1);
	for (uint64_t i = 1; i <= 1500000; i++) {
		if (i % 1000 == 1) {
			begin_segment(memory, i);
			append_task(memory, i, 10, "main");
			store_writer_drop(memory, i > 8000 ? i - 8000 : 0, UINT64_MAX);
			store_writer_compact(memory);
		}
		assert_true(frame_names_begin(&names));
		for (uint64_t frame = 0; frame < 2; frame++) {
			const frame_key key = {1, 0x1000, frame ? i : 0, 0};

			number = frame_names_find(&names, key);
			snprintf(text, sizeof(text), "f (made.py:%llu)",
				 (unsigned long long)key[2]);
			if (number == MAP_NONE)
				must(frame_names_add(&names, key, 7, text, &number, &err), &err);
			addresses[frame] = STORE_NAMED | number;
		}
		number = store_writer_next(memory, STORE_STACKS);
		must(store_writer_add_stack(memory, &stack, &err), &err);
		append_stack(memory, i, number);
		if (store_writer_should_sweep(memory, STORE_STACKS))
			store_writer_sweep(memory, STORE_STACKS, is_any, NULL);
		most = names.number_of_name.len > most ? (uint32_t)names.number_of_name.len : most;
	}
	assert_true(most < 800000);
	reader = dump(memory, test->path, counts);
	assert_true(store_reader_name_count(reader) < 800000);
	for (uint32_t i = 0; i < store_reader_name_count(reader); i++)
		assert_true(map_set(&named, store_reader_name(reader, i)->value, 0));
	for (uint32_t i = 1; (one = store_reader_stack(reader, i)); i++)
		for (uint32_t frame = 0; frame < one->count; frame++, found++)
			assert_int_not_equal(map_get(&named, one->addresses[frame]), MAP_NONE);
	assert_true(found >= 2 * 8000);
	map_free(&named);
	frame_names_free(&names);
	store_reader_close(reader);
	store_writer_discard(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_tables_are_no_more_chunks_the_longer_it_runs,
						store_setup, store_teardown),
		cmocka_unit_test_setup_teardown(test_threads_have_their_own_names_in_a_later_file,
						store_setup, store_teardown),
		cmocka_unit_test_setup_teardown(test_tracks_have_their_names_in_a_later_file,
						store_setup, store_teardown),
		cmocka_unit_test_setup_teardown(
			test_dump_has_all_records_of_all_segments_in_their_order, store_setup,
			store_teardown),
		cmocka_unit_test_setup_teardown(
			test_dropped_segments_leave_open_spans_and_names_and_take_their_losses,
			store_setup, store_teardown),
		cmocka_unit_test_setup_teardown(
			test_values_of_a_begin_that_is_written_again_are_the_same, store_setup,
			store_teardown),
		cmocka_unit_test_setup_teardown(test_state_is_written_only_at_the_begin_of_a_file,
						store_setup, store_teardown),
		cmocka_unit_test_setup_teardown(
			test_a_record_of_the_future_does_not_end_what_is_kept, store_setup,
			store_teardown),
		cmocka_unit_test_setup_teardown(
			test_stacks_and_objects_of_dropped_records_make_room, store_setup,
			store_teardown),
		cmocka_unit_test_setup_teardown(test_tables_forget_processes_that_are_gone,
						store_setup, store_teardown),
		cmocka_unit_test_setup_teardown(test_open_spans_of_any_process_end_with_it,
						store_setup, store_teardown),
		cmocka_unit_test(test_tables_never_become_full_if_little_is_kept),
		cmocka_unit_test_setup_teardown(
			test_names_of_python_are_kept_as_long_as_stacks_refer_to_them, store_setup,
			store_teardown),
		cmocka_unit_test_setup_teardown(test_memory_is_limited_also_within_a_segment,
						store_setup, store_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
