// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/dictionary_internal.h"
#include "store/format_internal.h"
#include "store/record_schema.h"
#include "store_helpers.h"

/* ---- record.h ---- */

static void test_record_size_of_each_kind_is_that_of_its_row(void **state)
{
	struct record_buffer buffer = {0};

	(void)state;
	for (unsigned kind = 1; kind < WAFFLE_REC_KIND_COUNT; kind++) {
		size_t size = record_kinds[kind].bytes;

		buffer.rec.kind = (uint16_t)kind;
		assert_int_equal(record_size(&buffer, sizeof(buffer)), size);
		assert_int_equal(record_size(&buffer, size), size);
		assert_int_equal(record_size(&buffer, size - 1), 0);
	}
	assert_string_equal(record_source_name(WAFFLE_SOURCE_SCHED), "sched");
	assert_string_equal(record_source_name(99), "?");
}

static void test_record_size_refuses_what_does_not_fit(void **state)
{
	struct record_buffer buffer = {.hit.rec.kind = WAFFLE_REC_HIT, .hit.frame_bytes = 33};

	(void)state;
	assert_int_equal(record_size(&buffer, sizeof(buffer)), 32 + 40);
	assert_int_equal(record_size(&buffer, 71), 0);
	buffer.hit.frame_bytes = WAFFLE_FRAME_MAX;
	assert_int_equal(record_size(&buffer, sizeof(buffer)), 32 + WAFFLE_FRAME_MAX);
	buffer.hit.frame_bytes = WAFFLE_FRAME_MAX + 1;
	assert_int_equal(record_size(&buffer, sizeof(buffer)), 0);
	buffer.hit.frame_bytes = UINT32_MAX;
	assert_int_equal(record_size(&buffer, sizeof(buffer)), 0);
	buffer.rec.kind = 0;
	assert_int_equal(record_size(&buffer, sizeof(buffer)), 0);
	buffer.rec.kind = WAFFLE_REC_RING_COUNT;
	assert_int_equal(record_size(&buffer, sizeof(buffer)), 0);
	assert_int_equal(record_size(&buffer, 15), 0);
}

/* ---- round trip ---- */

static void round_trip(const char *path, uint64_t seed, unsigned count)
{
	struct record_source source = FIXTURE_SOURCE(seed);
	struct store_writer *writer = open_writer(path);
	struct store_reader *reader;

	for (unsigned done = 0; done < count; done += count / 4) {
		append_random(writer, &source, count / 4);
		flush_writer(writer, done);
	}
	assert_int_equal(store_writer_persisted(writer), count);
	close_writer(writer, source.ts);

	reader = open_reader(path);
	source = FIXTURE_SOURCE(seed);
	for (unsigned i = 0; i < count; i++)
		assert_next_is_random(reader, &source);
	assert_at_end(reader);
	assert_false(store_reader_truncated(reader, NULL));
	store_reader_close(reader);
}

static void test_records_of_every_kind_come_back_exactly(void **state)
{
	struct store_test *test = *state;

	for (uint64_t seed = 1; seed <= 20; seed++)
		round_trip(test->path, seed, 2000);
	/* Long enough that chunks are closed because they are full. */
	round_trip(test->path, 99, 40000);
}

static void test_longest_frame_comes_back_exactly(void **state)
{
	struct store_test *test = *state;
	struct site_info site = fixture_sites[2];
	struct store_writer *writer;
	struct record_source source = FIXTURE_SOURCE(5);
	struct record_buffer buffer = {.hit.rec = {.ts = 1, .tid = 2, .kind = WAFFLE_REC_HIT}};
	uint64_t *at = (uint64_t *)(&buffer.hit + 1) + 4;
	const struct waffle_rec *rec;
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	site.key_count = WAFFLE_KEYS_MAX;
	for (unsigned i = 0; i < WAFFLE_KEYS_MAX; i++) {
		site.keys[i] = (struct site_key){WAFFLE_KEY_STR, "text"};
		*at++ = WAFFLE_STR_MAX | WAFFLE_STR_CUT;
		for (unsigned j = 0; j < WAFFLE_STR_MAX / 8; j++)
			*at++ = fixture_random(&source.random);
	}
	buffer.hit.frame_bytes = WAFFLE_FRAME_MAX;
	writer = open_writer(test->path);
	must(store_writer_add_site(writer, &site, &err), &err);
	for (buffer.hit.site = 0; buffer.hit.site <= FIXTURE_SITES; buffer.hit.site++)
		append(writer, &buffer.rec);
	close_writer(writer, 2);
	reader = open_reader(test->path);
	for (buffer.hit.site = 0; buffer.hit.site <= FIXTURE_SITES; buffer.hit.site++) {
		must(store_reader_next(reader, &rec, &err), &err);
		assert_memory_equal(rec, &buffer, sizeof(buffer.hit) + WAFFLE_FRAME_MAX);
	}
	store_reader_close(reader);
}

static void test_more_threads_than_a_chunk_holds_come_back_exactly(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct waffle_rec_switch sw = {.rec.kind = WAFFLE_REC_SWITCH, .syscall = -1};
	struct store_reader *reader;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;

	for (uint32_t i = 0; i < 20000; i++) {
		sw.rec.ts = sw.rec.tid = i;
		sw.next_tid = i + 1000000;
		sw.waker_tid = i + 2000000;
		append(writer, &sw.rec);
	}
	close_writer(writer, 20000);
	reader = open_reader(test->path);
	for (uint32_t i = 0; i < 20000; i++) {
		must(store_reader_next(reader, &rec, &err), &err);
		sw.rec.ts = sw.rec.tid = i;
		sw.next_tid = i + 1000000;
		sw.waker_tid = i + 2000000;
		assert_memory_equal(rec, &sw, sizeof(sw));
	}
	assert_at_end(reader);
	store_reader_close(reader);
}

static void test_probe_address_of_a_span_end_is_not_kept(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct waffle_rec_span_end end = {.rec = {.ts = 9, .tid = 1, .kind = WAFFLE_REC_SPAN_END},
					  .span_id = 77,
					  .site = 1,
					  .probe_addr = 0x401000};
	const struct waffle_rec *rec;
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	append(writer, &end.rec);
	close_writer(writer, 10);
	reader = open_reader(test->path);
	must(store_reader_next(reader, &rec, &err), &err);
	end.probe_addr = 0;
	assert_memory_equal(rec, &end, sizeof(end));
	store_reader_close(reader);
}

static void test_nested_spans_cost_less_than_six_bytes_a_record(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct record_buffer hit = {
		.hit = {.rec = {.tid = 9, .kind = WAFFLE_REC_HIT}, .tgid = 9, .frame_bytes = 48}};
	struct waffle_rec_span_end end = {.rec = {.tid = 9, .kind = WAFFLE_REC_SPAN_END},
					  .tgid = 9};
	uint64_t *frame = (uint64_t *)(&hit.hit + 1), random = 3, ts = 1000;

	frame[0] = 0x123456789abcdef0ull;
	for (unsigned i = 0; i < 20000; i++) {
		hit.rec.ts = ts += fixture_random(&random) % 5000;
		end.span_id = ++frame[0];
		frame[4] = i;
		frame[5] = fixture_random(&random) % 100;
		append(writer, &hit.rec);
		end.rec.ts = ts += fixture_random(&random) % 5000;
		append(writer, &end.rec);
	}
	flush_writer(writer, 0);
	assert_in_range(store_writer_bytes(writer), 40000, 40000 * 6);
	close_writer(writer, ts);
}

/* ---- what a file says of its capture ---- */

static void test_stacks_objects_and_symbols_come_back(void **state)
{
	static const uint64_t user[] = {0x7f0000001000, 0x55550000abcd, 1}, kernel[] = {~0ull};
	struct store_stack stack = {.addresses = user, .count = 3, .pid = 7};
	struct store_object object = {.ino = 9, .dev = 0x800001, .pid = 7, .name = "/data/x"};
	struct store_symbol symbol = {.address = ~0ull, .offset = 16, .name = "ext4_read [ext4]"};
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct error err = ERROR_INIT;
	struct store_reader *reader;

	must(store_writer_add_stack(writer, &stack, &err), &err);
	must(store_writer_add_object(writer, &object, &err), &err);
	flush_writer(writer, 3);
	stack = (struct store_stack){.addresses = kernel, .count = 1};
	must(store_writer_add_stack(writer, &stack, &err), &err);
	must(store_writer_add_symbol(writer, &symbol, &err), &err);
	close_writer(writer, 123);

	reader = open_reader(test->path);
	assert_null(store_reader_stack(reader, 0));
	assert_null(store_reader_stack(reader, 3));
	assert_int_equal(store_reader_stack(reader, 1)->pid, 7);
	assert_int_equal(store_reader_stack(reader, 1)->count, 3);
	assert_memory_equal(store_reader_stack(reader, 1)->addresses, user, sizeof(user));
	assert_int_equal(store_reader_stack(reader, 2)->pid, 0);
	assert_memory_equal(store_reader_stack(reader, 2)->addresses, kernel, sizeof(kernel));
	assert_int_equal(store_reader_object(reader, 1)->ino, 9);
	assert_int_equal(store_reader_object(reader, 1)->dev, 0x800001);
	assert_string_equal(store_reader_object(reader, 1)->name, "/data/x");
	assert_string_equal(store_reader_object(reader, 1)->detail, "");
	assert_null(store_reader_object(reader, 2));
	assert_int_equal(store_reader_symbol_count(reader), 1);
	assert_int_equal(store_reader_symbol(reader, 0)->address, ~0ull);
	assert_int_equal(store_reader_symbol(reader, 0)->offset, 16);
	assert_string_equal(store_reader_symbol(reader, 0)->name, "ext4_read [ext4]");
	store_reader_close(reader);
}

static void test_a_stack_that_is_cut_comes_back_as_such(void **state)
{
	static const struct {
		uint32_t count;
		bool cut;
		uint32_t count_back;
		bool cut_back;
	} rows[] = {
		{2, true, 2, true},
		{2, false, 2, false},
		{1, true, 1, true},
		{0, true, 0, false},
		{STORE_STACK_MAX, false, STORE_STACK_MAX, false},
		{STORE_STACK_MAX, true, STORE_STACK_MAX - 1, true},
		{STORE_STACK_MAX + 1, false, STORE_STACK_MAX - 1, true},
	};
	uint64_t addresses[STORE_STACK_MAX + 1];
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct error err = ERROR_INIT;
	struct store_reader *reader;

	for (uint32_t i = 0; i <= STORE_STACK_MAX; i++)
		addresses[i] = 0x7f0000001000 + 16ull * i;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct store_stack stack = {.addresses = addresses,
					    .count = rows[i].count,
					    .pid = 7,
					    .cut = rows[i].cut};

		must(store_writer_add_stack(writer, &stack, &err), &err);
	}
	close_writer(writer, 123);
	reader = open_reader(test->path);
	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct store_stack *stack = store_reader_stack(reader, i + 1);

		assert_int_equal(stack->count, rows[i].count_back);
		assert_int_equal(stack->cut, rows[i].cut_back);
		assert_memory_equal(stack->addresses, addresses, 8ul * stack->count);
	}
	store_reader_close(reader);
}

static void test_mappings_and_the_segments_of_their_files_come_back(void **state)
{
	static const struct store_segment segments[] = {{0x800, 0x401800, 0x2800},
							{~0ull - 5, ~0ull, 5}};
	struct store_mapping mapping = {.ts = 5,
					.start = 0x1000,
					.end = 0x3000,
					.offset = 0x800,
					.ino = 11,
					.dev = 3,
					.pid = 7,
					.path = "/lib/libx.so",
					.build_id = {0xde, 0xad},
					.build_id_bytes = 20,
					.segments = segments,
					.segment_count = 2};
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct error err = ERROR_INIT;
	struct store_reader *reader;

	must(store_writer_add_mapping(writer, &mapping, &err), &err);
	mapping.segment_count = 0;
	must(store_writer_add_mapping(writer, &mapping, &err), &err);
	close_writer(writer, 123);
	reader = open_reader(test->path);
	assert_int_equal(store_reader_mapping_count(reader), 2);
	assert_int_equal(store_reader_mapping(reader, 0)->end, 0x3000);
	assert_int_equal(store_reader_mapping(reader, 0)->offset, 0x800);
	assert_string_equal(store_reader_mapping(reader, 0)->path, "/lib/libx.so");
	assert_memory_equal(store_reader_mapping(reader, 0)->build_id, mapping.build_id, 20);
	assert_int_equal(store_reader_mapping(reader, 0)->segment_count, 2);
	assert_memory_equal(store_reader_mapping(reader, 0)->segments, segments, sizeof(segments));
	assert_int_equal(store_reader_mapping(reader, 1)->segment_count, 0);
	assert_string_equal(store_reader_mapping(reader, 1)->path, "/lib/libx.so");
	store_reader_close(reader);
}

/* Any file that a program maps can claim to have such segments. */
static void test_a_mapping_that_cannot_be_leaves_the_file_readable(void **state)
{
	static const struct store_segment segments[] = {
		{~0ull, 0, 2}, {0x800, 0x401800, 0x2800}, {5, 0, ~0ull}};
	struct store_mapping mapping = {.start = 0x1000,
					.end = 0x3000,
					.pid = 7,
					.path = "/tmp/any",
					.segments = segments,
					.segment_count = 3};
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct error err = ERROR_INIT;
	struct store_reader *reader;

	must(store_writer_add_mapping(writer, &mapping, &err), &err);
	mapping.end = 0x800;
	must(store_writer_add_mapping(writer, &mapping, &err), &err);
	close_writer(writer, 123);
	reader = open_reader(test->path);
	assert_int_equal(store_reader_mapping_count(reader), 2);
	assert_int_equal(store_reader_mapping(reader, 0)->segment_count, 1);
	assert_memory_equal(store_reader_mapping(reader, 0)->segments, &segments[1],
			    sizeof(segments[1]));
	assert_int_equal(store_reader_mapping(reader, 1)->end, 0x1000);
	store_reader_close(reader);
}

/* A mapping's bytes from its segments on; what is before is 0. */
static int read_segments(const unsigned char *bytes, size_t size)
{
	unsigned char mapping[64] = {0};
	struct cursor cursor = {.at = mapping, .end = mapping + 9 + size};
	struct dictionary dictionary;
	int result;

	assert_true(size <= sizeof(mapping) - 9 && dictionary_init(&dictionary));
	memcpy(mapping + 9, bytes, size);
	result = dictionary_get_mappings(&dictionary, &cursor, 1);
	dictionary_free(&dictionary);
	return result;
}

static void test_segments_that_cannot_be_are_refused(void **state)
{
	unsigned char many[1 + 3 * 9] = {9};
	static const unsigned char one[] = {1, 5, 6, 7};
	/* Its end is beyond 2^64. */
	static const unsigned char wraps[] = {1,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
					      0xff, 0xff, 0xff, 1,    0,    1};

	(void)state;
	assert_int_equal(read_segments(one, sizeof(one)), 0);
	assert_int_equal(read_segments(one, sizeof(one) - 1), -EBADMSG);
	assert_int_equal(read_segments(many, sizeof(many)), -EBADMSG);
	many[0] = 8;
	assert_int_equal(read_segments(many, sizeof(many) - 3), 0);
	assert_int_equal(read_segments(many, sizeof(many)), -EBADMSG);
	assert_int_equal(read_segments(wraps, sizeof(wraps)), -EBADMSG);
}

static void test_meta_sites_and_processes_come_back(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct store_process process = {.pid = 7, .ppid = 1, .ts = 55, .cmdline = "train --fast"};
	struct error err = ERROR_INIT;
	const struct store_meta *meta;
	struct store_reader *reader;

	must(store_writer_add_process(writer, &process, &err), &err);
	flush_writer(writer, 3);
	process.cmdline = "sh -c true";
	must(store_writer_add_process(writer, &process, &err), &err);
	close_writer(writer, 123);

	reader = open_reader(test->path);
	meta = store_reader_meta(reader);
	assert_int_equal(meta->start_ts, fixture_meta.start_ts);
	assert_int_equal(meta->end_ts, 123);
	assert_int_equal(meta->boot_ns, fixture_meta.boot_ns);
	assert_int_equal(meta->real_ns, fixture_meta.real_ns);
	assert_string_equal(meta->hostname, "node-7");
	assert_string_equal(meta->boot_id, fixture_meta.boot_id);
	assert_string_equal(meta->kernel, "6.1.0");
	assert_string_equal(meta->machine, "x86_64");
	assert_string_equal(meta->version, "0.1.0");
	assert_string_equal(meta->command, "train --epochs 3");
	assert_string_equal(meta->filter, "name ~ \"a*\"\n && dur > 1ms");
	assert_int_equal(meta->cpu_count, 4);
	assert_true(meta->sched);
	assert_memory_equal(meta->counts, fixture_counts, sizeof(fixture_counts));
	assert_int_equal(store_reader_site_count(reader), FIXTURE_SITES);
	for (unsigned i = 0; i < FIXTURE_SITES; i++) {
		const struct site_info *site = store_reader_site(reader, i);

		assert_string_equal(site->name, fixture_sites[i].name);
		assert_string_equal(site->category, fixture_sites[i].category);
		assert_string_equal(site->file, fixture_sites[i].file);
		assert_string_equal(site->func, fixture_sites[i].func);
		assert_string_equal(site->object, fixture_sites[i].object);
		assert_int_equal(site->line, fixture_sites[i].line);
		assert_int_equal(site->kind, fixture_sites[i].kind);
		assert_int_equal(site->role, fixture_sites[i].role);
		assert_int_equal(site->simulated, fixture_sites[i].simulated);
		assert_int_equal(site->keyed, fixture_sites[i].keyed);
		assert_int_equal(site->laps, fixture_sites[i].laps);
		assert_int_equal(site->call, fixture_sites[i].call);
		assert_int_equal(site->key_count, fixture_sites[i].key_count);
		for (unsigned k = 0; k < site->key_count; k++) {
			assert_int_equal(site->keys[k].type, fixture_sites[i].keys[k].type);
			assert_string_equal(site->keys[k].name, fixture_sites[i].keys[k].name);
		}
	}
	assert_null(store_reader_site(reader, FIXTURE_SITES));
	assert_int_equal(store_reader_process_count(reader), 2);
	assert_int_equal(store_reader_process(reader, 0)->ts, 55);
	assert_string_equal(store_reader_process(reader, 0)->cmdline, "train --fast");
	assert_string_equal(store_reader_process(reader, 1)->cmdline, "sh -c true");
	assert_null(store_reader_process(reader, 2));
	store_reader_close(reader);
}

static void test_file_of_a_writer_that_did_not_finish_has_all_flushed_records(void **state)
{
	struct store_test *test = *state;
	struct record_source source = FIXTURE_SOURCE(3), again = FIXTURE_SOURCE(3);
	struct store_writer *writer = open_writer(test->path);
	struct store_reader *reader;
	uint64_t unused = 1;

	append_random(writer, &source, 300);
	flush_writer(writer, 300);
	append_random(writer, &source, 5); /* not flushed */
	reader = open_reader(test->path);
	for (unsigned i = 0; i < 300; i++)
		assert_next_is_random(reader, &again);
	assert_at_end(reader);
	assert_true(store_reader_truncated(reader, &unused));
	assert_int_equal(unused, 0);
	assert_int_equal(store_reader_meta(reader)->end_ts, 0);
	assert_int_equal(store_reader_meta(reader)->counts[0].delivered, 300);
	store_reader_close(reader);
	close_writer(writer, 1);
}

static void test_discarded_writer_leaves_the_old_file_and_nothing_else(void **state)
{
	struct store_test *test = *state;
	struct error err = ERROR_INIT;
	struct store_writer *writer;
	struct store_reader *reader;
	struct record_source source = FIXTURE_SOURCE(3);

	writer = open_writer(test->path);
	append_random(writer, &source, 7);
	close_writer(writer, 1);
	must(store_writer_open(&writer, test->path, &fixture_meta, &err), &err);
	append_random(writer, &source, 5);
	flush_writer(writer, 5);
	store_writer_discard(writer);
	reader = open_reader(test->path);
	source = (struct record_source)FIXTURE_SOURCE(3);
	for (unsigned i = 0; i < 7; i++)
		assert_next_is_random(reader, &source);
	assert_at_end(reader);
	store_reader_close(reader); /* the teardown fails if anything is left in the folder */
}

/* A file of version 1 of nothing but META, cut or followed by what a later version may add. */
static void write_meta_file(const char *path, const unsigned char *meta, size_t bytes)
{
	struct chunk_header header = {.type = CHUNK_META,
				      .codec = CODEC_NONE,
				      .stored_bytes = (uint32_t)bytes,
				      .raw_bytes = (uint32_t)bytes,
				      .checksum = chunk_checksum(meta, bytes)};
	unsigned char file[FILE_HEADER_BYTES + CHUNK_HEADER_BYTES + 256];

	assert_true(bytes <= 256);
	file_header_pack(file);
	put_le(file + 8, 1, 2);
	put_le(file + 12, chunk_checksum(file, 12), 4);
	chunk_header_pack(file + FILE_HEADER_BYTES, &header);
	memcpy(file + FILE_HEADER_BYTES + CHUNK_HEADER_BYTES, meta, bytes);
	write_file(path, file, FILE_HEADER_BYTES + CHUNK_HEADER_BYTES + bytes);
}

static void test_meta_without_a_filter_and_with_more_than_is_known_is_read(void **state)
{
	static const unsigned char meta[] = "\x05\x06\x07\x02\x01\x01h\x01k\x01m\x01v\x02"
					    "ab\x04pid1\x02io\x2a\xff\xff";
	const size_t without = 5 + 4 * 2 + 3, with = without + 5, sources = with + 3;
	const struct {
		size_t bytes;
		const char *filter, *sources;
	} rows[] = {{without, "", ""},
		    {with, "pid1", ""},
		    {sources, "pid1", "io"},
		    {sizeof(meta) - 1, "pid1", "io"}};
	struct store_test *test = *state;
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		write_meta_file(test->path, meta, rows[i].bytes);
		reader = open_reader(test->path);
		assert_int_equal(store_reader_meta(reader)->start_ts, 5);
		assert_string_equal(store_reader_meta(reader)->command, "ab");
		assert_string_equal(store_reader_meta(reader)->filter, rows[i].filter);
		assert_string_equal(store_reader_meta(reader)->sources, rows[i].sources);
		store_reader_close(reader);
	}
	write_meta_file(test->path, meta, with - 1);
	assert_int_equal(store_reader_open(&reader, test->path, &err), -EBADMSG);
}

#define with_folder(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_size_of_each_kind_is_that_of_its_row),
		cmocka_unit_test(test_record_size_refuses_what_does_not_fit),
		with_folder(test_records_of_every_kind_come_back_exactly),
		with_folder(test_longest_frame_comes_back_exactly),
		with_folder(test_more_threads_than_a_chunk_holds_come_back_exactly),
		with_folder(test_probe_address_of_a_span_end_is_not_kept),
		with_folder(test_nested_spans_cost_less_than_six_bytes_a_record),
		cmocka_unit_test(test_segments_that_cannot_be_are_refused),
		with_folder(test_meta_sites_and_processes_come_back),
		with_folder(test_stacks_objects_and_symbols_come_back),
		with_folder(test_a_stack_that_is_cut_comes_back_as_such),
		with_folder(test_mappings_and_the_segments_of_their_files_come_back),
		with_folder(test_a_mapping_that_cannot_be_leaves_the_file_readable),
		with_folder(test_meta_without_a_filter_and_with_more_than_is_known_is_read),
		with_folder(test_file_of_a_writer_that_did_not_finish_has_all_flushed_records),
		with_folder(test_discarded_writer_leaves_the_old_file_and_nothing_else),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
