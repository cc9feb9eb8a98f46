// SPDX-License-Identifier: Apache-2.0
/*
 * Files of other versions of the program: with kinds of records and words that this one does not
 * know, without words that it has, and with tables of lengths that no writer makes. A file is made
 * of the writer's own chunks, with another META and with records that are changed one by one.
 *
 * test_store_versions write FILE: the file of a newer writer (tests/golden/record.py).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/dictionary_internal.h"
#include "store/encode_internal.h"
#include "store/record_schema.h"
#include "store_helpers.h"

#define RECORDS 1200
/* Version 1 has the kinds below. */
#define KINDS_1 (WAFFLE_REC_STACK + 1)
#define SEED 7
/* The test's newer writer has it in the place of WAFFLE_REC_FREQUENCY. */
#define NEW_KIND 200

static void put(byte_vec *to, const void *bytes, size_t len)
{
	assert_true(vec_reserve(to, len + 1));
	memcpy(to->data + to->len, bytes, len);
	to->len += len;
}

static void put_number(byte_vec *to, uint64_t number)
{
	unsigned char bytes[VARINT_BYTES_MAX];

	put(to, bytes, (size_t)(put_varint(bytes, number) - bytes));
}

static void put_chunk(byte_vec *to, struct chunk_header header, const byte_vec *payload)
{
	unsigned char bytes[CHUNK_HEADER_BYTES];

	header.stored_bytes = header.raw_bytes = (uint32_t)payload->len;
	header.checksum = chunk_checksum(payload->data, payload->len);
	chunk_header_pack(bytes, &header);
	put(to, bytes, sizeof(bytes));
	put(to, payload->data, payload->len);
}

/* Ends with `table` instead of the program's own table; NULL: none. */
static void put_meta(byte_vec *to, const byte_vec *table)
{
	unsigned char own[RECORD_LENGTHS_BYTES_MAX];
	byte_vec payload = {0};

	assert_true(meta_put(&payload, &fixture_meta));
	payload.len -= (size_t)(record_lengths_put(own) - own) + 1 + strlen(fixture_meta.boot_id);
	if (table)
		put(&payload, table->data, table->len);
	put_chunk(to, (struct chunk_header){.type = CHUNK_META}, &payload);
	vec_free(&payload);
}

/* Adds the chunks of the fixture's strings and sites. */
static void put_sites(byte_vec *to, const char *path)
{
	struct store_writer *writer = open_writer(path);
	struct error err = ERROR_INIT;
	struct chunk_header header;
	unsigned char *bytes;
	size_t size;

	must(store_writer_flush(writer, fixture_counts, &err), &err);
	must(store_writer_close(writer, 1, fixture_counts, &err), &err);
	bytes = read_file(path, &size);
	for (size_t at = FILE_HEADER_BYTES; at < size;
	     at += CHUNK_HEADER_BYTES + header.stored_bytes) {
		assert_true(chunk_header_unpack(&header, bytes + at));
		if (header.type == CHUNK_STRINGS || header.type == CHUNK_SITES)
			put(to, bytes + at, CHUNK_HEADER_BYTES + header.stored_bytes);
	}
	free(bytes);
}

/* Makes a file whose META ends with `table`, and with `data` as its only data chunk. */
static void make_file(const char *path, unsigned version, const byte_vec *table,
		      struct chunk_header data, const byte_vec *records)
{
	unsigned char header[FILE_HEADER_BYTES];
	byte_vec file = {0};

	file_header_pack(header);
	put_le(header + 8, version, 2);
	put_le(header + 12, chunk_checksum(header, 12), 4);
	put(&file, header, sizeof(header));
	put_meta(&file, table);
	put_sites(&file, path);
	put_chunk(&file, data, records);
	write_file(path, file.data, file.len);
	vec_free(&file);
}

/* Changes the bytes of an encoded record. */
typedef void (*change_fn)(byte_vec *record, unsigned kind);

static struct chunk_header make_records(byte_vec *to, unsigned kinds, change_fn change)
{
	struct record_source source = {.random = SEED, .ts = 5000000000ull, .kinds = kinds};
	struct encoder *encoder = encoder_new();
	struct record_buffer buffer;
	struct encoded chunk;
	byte_vec record = {0};
	size_t done = 0;

	assert_non_null(encoder);
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		assert_true(encoder_add_site(encoder, &fixture_sites[i]));
	for (unsigned i = 0; i < RECORDS; i++) {
		fixture_record(&source, &buffer);
		assert_true(encoder_append(encoder, &buffer.rec));
		chunk = encoder_chunk(encoder);
		record.len = 0;
		put(&record, chunk.data + done, chunk.bytes - done);
		done = chunk.bytes;
		change(&record, buffer.rec.kind);
		put(to, record.data, record.len);
	}
	vec_free(&record);
	encoder_free(encoder);
	return (struct chunk_header){.type = CHUNK_DATA,
				     .records = RECORDS,
				     .min_ts = chunk.min_ts,
				     .max_ts = chunk.max_ts};
}

/* ---- a newer writer ---- */

/* Words that it has appended to a kind. */
static unsigned appended(unsigned kind)
{
	return kind % 3;
}

static void change_to_newer(byte_vec *record, unsigned kind)
{
	static const uint64_t values[] = {UINT64_MAX, 5};

	if (kind == WAFFLE_REC_FREQUENCY) {
		assert_int_equal(record->data[1], kind);
		record->data[1] = NEW_KIND;
	}
	for (unsigned i = 0; i < appended(kind); i++)
		put_number(record, values[i]);
}

static void newer_table(byte_vec *table)
{
	put_number(table, WAFFLE_REC_KIND_COUNT - 1);
	for (unsigned kind = 1; kind < WAFFLE_REC_KIND_COUNT; kind++) {
		put_number(table, kind == WAFFLE_REC_FREQUENCY ? NEW_KIND : kind);
		put_number(table, record_kinds[kind].words + appended(kind));
	}
}

static void make_newer_file(const char *path)
{
	byte_vec table = {0}, records = {0};
	struct chunk_header data = make_records(&records, 0, change_to_newer);

	newer_table(&table);
	make_file(path, FILE_VERSION, &table, data, &records);
	vec_free(&table);
	vec_free(&records);
}

static void test_newer_file_is_read_without_the_kinds_and_words_that_are_new(void **state)
{
	struct store_test *test = *state;
	struct record_source source = FIXTURE_SOURCE(SEED);
	unsigned kinds[WAFFLE_REC_KIND_COUNT] = {0};
	struct store_reader *reader;
	struct record_buffer buffer;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;

	make_newer_file(test->path);
	reader = open_reader(test->path);
	assert_true(store_reader_newer(reader));
	for (unsigned i = 1; i <= RECORDS; i++) {
		fixture_record(&source, &buffer);
		kinds[buffer.rec.kind]++;
		if (buffer.rec.kind == WAFFLE_REC_FREQUENCY)
			continue;
		must(store_reader_next(reader, &rec, &err), &err);
		assert_memory_equal(rec, &buffer, record_size(&buffer, sizeof(buffer)));
		/* Also those that are skipped have a number. */
		assert_int_equal(store_reader_number(reader), i);
	}
	assert_at_end(reader);
	for (unsigned kind = 1; kind < WAFFLE_REC_KIND_COUNT; kind++)
		assert_true(kinds[kind] > 0);
	store_reader_close(reader);
}

/* ---- an older writer ---- */

/* Words that it did not have yet. */
static unsigned missing(unsigned kind)
{
	return record_kinds[kind].words ? 1 + kind % record_kinds[kind].words : 0;
}

static void cut_words(byte_vec *record, unsigned count)
{
	while (count--) {
		record->len--;
		while (record->data[record->len - 1] & 0x80)
			record->len--;
	}
}

static void change_to_older(byte_vec *record, unsigned kind)
{
	cut_words(record, missing(kind));
}

static void older_table(byte_vec *table)
{
	put_number(table, WAFFLE_REC_KIND_COUNT - 1);
	for (unsigned kind = 1; kind < WAFFLE_REC_KIND_COUNT; kind++) {
		put_number(table, kind);
		put_number(table, record_kinds[kind].words - missing(kind));
	}
}

/* Reads the records without as many of their last words. Returns how many bytes that changed. */
static unsigned read_without(const char *path, unsigned kinds, unsigned (*words)(unsigned kind))
{
	struct record_source source = {.random = SEED, .ts = 5000000000ull, .kinds = kinds};
	struct store_reader *reader = open_reader(path);
	struct record_buffer buffer;
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;
	unsigned changed = 0;

	assert_false(store_reader_newer(reader));
	for (unsigned i = 0; i < RECORDS; i++) {
		char *at, *end;

		fixture_record(&source, &buffer);
		end = (char *)&buffer + record_kinds[buffer.rec.kind].bytes;
		for (at = end - words(buffer.rec.kind) * sizeof(uint64_t); at < end; at++) {
			changed += *at != 0;
			*at = 0;
		}
		must(store_reader_next(reader, &rec, &err), &err);
		assert_memory_equal(rec, &buffer, record_size(&buffer, sizeof(buffer)));
	}
	assert_at_end(reader);
	store_reader_close(reader);
	return changed;
}

static void test_words_that_an_older_file_does_not_have_are_zero(void **state)
{
	struct store_test *test = *state;
	byte_vec table = {0}, records = {0};
	struct chunk_header data = make_records(&records, 0, change_to_older);

	older_table(&table);
	make_file(test->path, FILE_VERSION, &table, data, &records);
	assert_true(read_without(test->path, 0, missing) > 0);
	vec_free(&table);
	vec_free(&records);
}

/* ---- no table, and bad ones ---- */

/* Words that came after version 1. */
static unsigned later(unsigned kind)
{
	return record_kinds[kind].words - record_lengths_version_1().words[kind];
}

static void change_to_version_1(byte_vec *record, unsigned kind)
{
	cut_words(record, later(kind));
}

static void test_file_of_version_1_needs_no_table(void **state)
{
	struct store_test *test = *state;
	byte_vec records = {0};
	struct chunk_header data = make_records(&records, KINDS_1, change_to_version_1);
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	make_file(test->path, 1, NULL, data, &records);
	read_without(test->path, KINDS_1, later);
	make_file(test->path, 2, NULL, data, &records);
	assert_int_equal(store_reader_open(&reader, test->path, &err), -EBADMSG);
	vec_free(&records);
}

/* Reads a file of one row of the table, (kind, words), and one record of that kind. */
static int read_row(const char *path, uint64_t rows, uint64_t kind, uint64_t words)
{
	struct waffle_rec_quota quota = {.rec.kind = WAFFLE_REC_QUOTA, .rec.ts = 1};
	struct encoder *encoder = encoder_new();
	byte_vec table = {0}, records = {0};
	struct error err = ERROR_INIT;
	struct store_reader *reader;
	const struct waffle_rec *rec;
	struct encoded chunk;
	int ret;

	assert_non_null(encoder);
	assert_true(encoder_append(encoder, &quota.rec));
	chunk = encoder_chunk(encoder);
	put(&records, chunk.data, chunk.bytes);
	put_number(&table, rows);
	for (uint64_t i = 0; i < rows && i < 2; i++) {
		put_number(&table, kind);
		put_number(&table, words);
	}
	make_file(path, FILE_VERSION, &table,
		  (struct chunk_header){.type = CHUNK_DATA, .records = 1, .min_ts = 1, .max_ts = 1},
		  &records);
	ret = store_reader_open(&reader, path, &err);
	if (!ret) {
		ret = store_reader_next(reader, &rec, &err);
		store_reader_close(reader);
	}
	encoder_free(encoder);
	vec_free(&table);
	vec_free(&records);
	return ret;
}

static void test_table_that_no_writer_makes_is_damage(void **state)
{
	const char *path = ((struct store_test *)*state)->path;
	const unsigned own = record_kinds[WAFFLE_REC_QUOTA].words;

	assert_int_equal(read_row(path, 1, WAFFLE_REC_QUOTA, own), 1);
	/* A kind twice, kinds that are none, lengths that no record has, more rows than kinds. */
	assert_int_equal(read_row(path, 2, WAFFLE_REC_QUOTA, own), -EBADMSG);
	assert_int_equal(read_row(path, 1, 0, 4), -EBADMSG);
	assert_int_equal(read_row(path, 1, 256, 4), -EBADMSG);
	assert_int_equal(read_row(path, 1, NEW_KIND, RECORD_LENGTHS_WORDS_MAX + 1), -EBADMSG);
	assert_int_equal(read_row(path, 1, NEW_KIND, UINT64_MAX), -EBADMSG);
	assert_int_equal(read_row(path, UINT64_MAX, WAFFLE_REC_QUOTA, own), -EBADMSG);
	assert_int_equal(read_row(path, 256, WAFFLE_REC_QUOTA, own), -EBADMSG);
}

static void test_records_that_are_not_as_the_table_says_are_damage(void **state)
{
	const char *path = ((struct store_test *)*state)->path;
	const unsigned own = record_kinds[WAFFLE_REC_QUOTA].words;

	assert_int_equal(read_row(path, 0, 0, 0), -EBADMSG);
	assert_int_equal(read_row(path, 1, WAFFLE_REC_IO, 4), -EBADMSG);
	assert_int_equal(read_row(path, 1, WAFFLE_REC_QUOTA, own + 1), -EBADMSG);
	assert_int_equal(read_row(path, 1, WAFFLE_REC_QUOTA, RECORD_LENGTHS_WORDS_MAX), -EBADMSG);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, store_setup, store_teardown)
		TEST(newer_file_is_read_without_the_kinds_and_words_that_are_new),
		TEST(words_that_an_older_file_does_not_have_are_zero),
		TEST(file_of_version_1_needs_no_table),
		TEST(table_that_no_writer_makes_is_damage),
		TEST(records_that_are_not_as_the_table_says_are_damage),
	};

	if (argc == 3 && !strcmp(argv[1], "write")) {
		make_newer_file(argv[2]);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
