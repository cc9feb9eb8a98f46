// SPDX-License-Identifier: Apache-2.0
/* Writes the seeds of fuzz_store: "make_store_corpus FOLDER". */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../unit/store_fixture.h"
#include "store/encode_internal.h"
#include "store/lengths_internal.h"

static void check(int ret, const struct error *err)
{
	if (ret < 0) {
		fprintf(stderr, "make_store_corpus: %s\n", err->message);
		exit(1);
	}
}

static void check_file(const void *file, const char *path)
{
	if (!file) {
		perror(path);
		exit(1);
	}
}

/* Writes a byte that selects the reader, and then its input. With `lengths`, the table of lengths
 * comes first. */
static void write_seed(const char *path, int way, bool lengths, const void *bytes, size_t size)
{
	unsigned char table[RECORD_LENGTHS_BYTES_MAX];
	FILE *file = fopen(path, "w");

	check_file(file, path);
	fputc(way, file);
	if (lengths)
		fwrite(table, 1, (size_t)(record_lengths_put(table) - table), file);
	fwrite(bytes, 1, size, file);
	if (fclose(file))
		check_file(NULL, path);
}

static void add_tables(struct store_writer *writer)
{
	static const uint64_t addresses[] = {0x7f0000001000, 0x7f0000000800};
	static const struct store_segment segments[] = {{0x1000, 0x401000, 0x800}};
	struct store_stack stack = {.addresses = addresses, .count = 2, .pid = 7};
	struct store_object object = {.ino = 9, .dev = 0x800001, .pid = 7, .name = "/data/x"};
	struct store_mapping mapping = {.ts = 5,
					.start = 0x7f0000000000,
					.end = 0x7f0000002000,
					.offset = 0x1000,
					.pid = 7,
					.path = "/lib/libx.so",
					.build_id = {1, 2, 3},
					.build_id_bytes = 20,
					.segments = segments,
					.segment_count = 1};
	struct store_symbol symbol = {.address = ~0ull, .offset = 16, .name = "ext4_read [ext4]"};
	struct store_name name = {.value = 0x401000, .pid = 7, .name = "saxpy(float*, int)"};
	struct error err = ERROR_INIT;

	check(store_writer_add_stack(writer, &stack, &err), &err);
	check(store_writer_add_object(writer, &object, &err), &err);
	check(store_writer_add_mapping(writer, &mapping, &err), &err);
	check(store_writer_add_symbol(writer, &symbol, &err), &err);
	check(store_writer_add_name(writer, &name, &err), &err);
	name.since = 1500;
	check(store_writer_add_name(writer, &name, &err), &err);
}

static void make_file_seed(const char *folder, unsigned seed, bool finished)
{
	static const struct store_counts counts[WAFFLE_SOURCE_COUNT] = {{9, 8, 1}};
	struct record_source source = FIXTURE_SOURCE(seed);
	struct store_process process = {.pid = 7, .ppid = 1, .ts = 9, .cmdline = "train"};
	struct store_writer *writer;
	struct error err = ERROR_INIT;
	static unsigned char bytes[1 << 16];
	char path[4096];
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/file-%u", folder, seed);
	check(store_writer_open(&writer, path, &fixture_meta, &err), &err);
	check(store_writer_publish(writer, &err), &err);
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		check(store_writer_add_site(writer, &fixture_sites[i], &err), &err);
	check(store_writer_add_process(writer, &process, &err), &err);
	add_tables(writer);
	for (unsigned i = 0; i < 40; i++) {
		struct record_buffer buffer;

		fixture_record(&source, &buffer);
		check(store_writer_append(writer, &buffer.rec, &err), &err);
		if (i % 20 == 19)
			check(store_writer_flush(writer, counts, &err), &err);
	}
	if (finished)
		check(store_writer_close(writer, source.ts, counts, &err), &err);
	file = fopen(path, "r");
	check_file(file, path);
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	if (!finished)
		check(store_writer_close(writer, source.ts, counts, &err), &err);
	write_seed(path, 'F' & ~1, false, bytes, size);
}

static void make_decoder_seed(const char *folder, unsigned seed)
{
	struct record_source source = FIXTURE_SOURCE(seed);
	struct encoder *encoder = encoder_new();
	struct encoded chunk;
	char path[4096];

	check_file(encoder, "encoder");
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		encoder_add_site(encoder, &fixture_sites[i]);
	for (unsigned i = 0; i < 30; i++) {
		struct record_buffer buffer;

		fixture_record(&source, &buffer);
		if (!encoder_append(encoder, &buffer.rec))
			exit(1);
	}
	chunk = encoder_chunk(encoder);
	snprintf(path, sizeof(path), "%s/chunk-%u", folder, seed);
	write_seed(path, 'C', false, chunk.data, chunk.bytes);
	snprintf(path, sizeof(path), "%s/lengths-%u", folder, seed);
	write_seed(path, 'A', true, chunk.data, chunk.bytes);
	encoder_free(encoder);
}

int main(int argc, char **argv)
{
	if (argc != 2) {
		fprintf(stderr, "usage: make_store_corpus FOLDER\n");
		return 2;
	}
	for (unsigned seed = 1; seed <= 4; seed++) {
		make_file_seed(argv[1], seed, seed % 2 == 0);
		make_decoder_seed(argv[1], seed);
	}
	return 0;
}
