/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers shared by the tests of the store. Include it after cmocka. */
#ifndef WAFFLE_TEST_STORE_HELPERS_H
#define WAFFLE_TEST_STORE_HELPERS_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store_fixture.h"

/* A directory of the test's own, and a path in it. */
struct store_test {
	char folder[64];
	char path[96];
};

static inline int store_setup(void **state)
{
	struct store_test *test = calloc(1, sizeof(*test));

	assert_non_null(test);
	strcpy(test->folder, "/tmp/waffle-store-XXXXXX");
	assert_non_null(mkdtemp(test->folder));
	snprintf(test->path, sizeof(test->path), "%s/t.waffle", test->folder);
	*state = test;
	return 0;
}

static inline int store_teardown(void **state)
{
	struct store_test *test = *state;
	int ret;

	unlink(test->path);
	ret = rmdir(test->folder); /* fails if a file was left behind */
	free(test);
	return ret;
}

#define must(call, err)                                                                            \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s", (err)->message);                                            \
	} while (0)

static inline struct store_writer *open_writer(const char *path)
{
	struct error err = ERROR_INIT;
	struct store_writer *writer = NULL;

	must(store_writer_open(&writer, path, &fixture_meta, &err), &err);
	must(store_writer_publish(writer, &err), &err);
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		must(store_writer_add_site(writer, &fixture_sites[i], &err), &err);
	return writer;
}

static inline struct store_reader *open_reader(const char *path)
{
	struct error err = ERROR_INIT;
	struct store_reader *reader = NULL;

	must(store_reader_open(&reader, path, &err), &err);
	return reader;
}

static inline void append(struct store_writer *writer, const struct waffle_rec *rec)
{
	struct error err = ERROR_INIT;

	must(store_writer_append(writer, rec, &err), &err);
}

static inline void append_random(struct store_writer *writer, struct record_source *source,
				 unsigned count)
{
	struct record_buffer buffer;

	for (unsigned i = 0; i < count; i++) {
		fixture_record(source, &buffer);
		append(writer, &buffer.rec);
	}
}

/* Compares the sequence of records that a seed makes with the records of a reader. */
static inline void assert_next_is_random(struct store_reader *reader, struct record_source *source)
{
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;
	struct record_buffer buffer;
	size_t size;

	fixture_record(source, &buffer);
	size = record_size(&buffer, sizeof(buffer));
	assert_true(size > 0);
	if (store_reader_next(reader, &rec, &err) != 1)
		fail_msg("%s", err.message);
	assert_memory_equal(rec, &buffer, size);
}

static inline void assert_at_end(struct store_reader *reader)
{
	const struct waffle_rec *rec;
	struct error err = ERROR_INIT;

	assert_int_equal(store_reader_next(reader, &rec, &err), 0);
}

static const struct store_counts fixture_counts[WAFFLE_SOURCE_COUNT] = {{1007, 1000, 7},
									{50, 50, 0}};

static inline void close_writer(struct store_writer *writer, uint64_t end_ts)
{
	struct error err = ERROR_INIT;

	must(store_writer_close(writer, end_ts, fixture_counts, &err), &err);
}

static inline void flush_writer(struct store_writer *writer, uint64_t produced)
{
	const struct store_counts counts[WAFFLE_SOURCE_COUNT] = {{produced, produced, 0}};
	struct error err = ERROR_INIT;

	must(store_writer_flush(writer, counts, &err), &err);
}

static inline unsigned char *read_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY);
	unsigned char *bytes;
	struct stat st;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	*size = (size_t)st.st_size;
	bytes = malloc(*size + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, *size), *size);
	close(fd);
	return bytes;
}

static inline void write_file(const char *path, const void *bytes, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
	close(fd);
}

#endif
