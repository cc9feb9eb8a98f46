// SPDX-License-Identifier: Apache-2.0
/*
 * libFuzzer target for several .waffle files as one job. The input has two files: four bytes of the
 * first one's length, then both. Their checksums are corrected, so that damage gets past them. A
 * third file is of the store's fixture. What can be opened is read with another clock, in windows,
 * and written to one file, which has to have the same records.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit/store_fixture.h"
#include "checksums.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILES 3

static void no_warning(const char *line, void *arg)
{
	(void)arg;
	require(*line && !strchr(line, '\n'));
}

/* All records must be valid, whatever the files say. Returns their number; UINT64_MAX: a file is
 * damaged, and how many records precede the damage depends on the clocks. */
static uint64_t walk(struct store_reader *reader, struct store_window window)
{
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;
	uint64_t count = 0;
	int ret;

	if (store_reader_seek(reader, window, &err))
		return UINT64_MAX;
	while ((ret = store_reader_next(reader, &rec, &err)) > 0) {
		require(record_size(rec, RECORD_BYTES_MAX));
		require(rec->ts <= RECORD_TS_MAX);
		count++;
	}
	return ret ? UINT64_MAX : count;
}

static void look_up(const struct store_reader *reader)
{
	for (uint32_t i = 0; i < store_reader_capture_count(reader); i++)
		require(store_reader_capture(reader, i)->host < store_reader_host_count(reader));
	for (uint32_t i = 0; i < store_reader_rank_count(reader); i++)
		require(store_reader_rank(reader, i)->job);
	for (uint32_t i = 0; i < store_reader_mapping_count(reader); i++)
		require(store_reader_mapping(reader, i)->path);
	for (uint32_t i = 1; store_reader_stack(reader, i); i++)
		require(store_reader_stack(reader, i)->count <= STORE_STACK_MAX);
}

static void write_again(struct store_reader *reader, uint64_t records)
{
	char path[] = "/tmp/waffle-fuzz-job-XXXXXX";
	struct store_reader *again = NULL;
	struct store_written written;
	struct error err = ERROR_INIT;
	int fd = mkstemp(path);

	require(fd >= 0);
	close(fd);
	if (!store_reader_write(reader, path, &written, &err)) {
		require(!store_reader_open(&again, path, &err));
		require(walk(again, STORE_ALL) == records);
		store_reader_close(again);
	}
	unlink(path);
}

static void try_job(const char *const *paths)
{
	const struct store_clock clock = {.offset_ns = -12345, .drift = 1e-4, .at_ts = 5000000000};
	const struct store_open_options options = {no_warning, NULL};
	struct store_reader *reader = NULL;
	struct error err = ERROR_INIT;
	uint64_t records;

	if (store_reader_open_files(&reader, paths, FILES, &options, &err)) {
		require(*err.message && !strchr(err.message, '\n'));
		return;
	}
	look_up(reader);
	records = walk(reader, STORE_ALL);
	walk(reader, (struct store_window){5000100000, 5000200000});
	if (store_reader_host_count(reader) > 1)
		require(!store_reader_set_clock(reader, 1, &clock));
	look_up(reader);
	require(walk(reader, STORE_ALL) == records);
	write_again(reader, records);
	store_reader_close(reader);
}

/* The file that is not damaged. */
static void fixture_write(const char *path)
{
	struct record_source source = FIXTURE_SOURCE(3);
	static const struct store_counts counts[WAFFLE_SOURCE_COUNT];
	struct store_meta meta = fixture_meta;
	struct store_writer *writer;
	struct record_buffer buffer;
	struct error err = ERROR_INIT;

	meta.boot_id = "another";
	meta.hostname = "node-8";
	require(!store_writer_open(&writer, path, &meta, &err));
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		require(!store_writer_add_site(writer, &fixture_sites[i], &err));
	for (unsigned i = 0; i < 50; i++) {
		fixture_record(&source, &buffer);
		require(!store_writer_append(writer, &buffer.rec, &err));
	}
	require(!store_writer_close(writer, 1, counts, &err));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char fixture[] = "/tmp/waffle-fuzz-fixture-XXXXXX";
	char paths[2][64];
	const char *list[FILES] = {paths[0], paths[1], fixture};
	uint32_t first;
	int fds[2];

	if (strstr(fixture, "XXXXXX")) {
		close(mkstemp(fixture));
		fixture_write(fixture);
	}
	if (size < sizeof(first))
		return 0;
	memcpy(&first, data, sizeof(first));
	data += sizeof(first);
	size -= sizeof(first);
	first = first < size ? first : (uint32_t)size;
	fds[0] = damaged_file(data, first, paths[0]);
	fds[1] = damaged_file(data + first, size - first, paths[1]);
	try_job(list);
	close(fds[0]);
	close(fds[1]);
	return 0;
}
