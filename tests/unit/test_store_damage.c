// SPDX-License-Identifier: Apache-2.0
/* Files that are cut, changed or foreign, and disks that are full. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "store/bytes_internal.h"
#include "store/decode_internal.h"
#include "store/encode_internal.h"
#include "store/format_internal.h"
#include "store_helpers.h"

#define SEED 42
#define CHUNKS 4
#define CHUNK_RECORDS 40

/* A file of four data chunks, and where each of them ends. */
struct sample {
	unsigned char *bytes;
	size_t size;
	size_t begin; /* end of header and meta */
	size_t ends[CHUNKS];
};

static struct sample make_sample(const char *path)
{
	struct record_source source = FIXTURE_SOURCE(SEED);
	struct sample sample = {0};
	struct store_writer *writer;
	struct error err = ERROR_INIT;

	must(store_writer_open(&writer, path, &fixture_meta, &err), &err);
	sample.begin = store_writer_bytes(writer);
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		must(store_writer_add_site(writer, &fixture_sites[i], &err), &err);
	for (unsigned i = 0; i < CHUNKS; i++) {
		append_random(writer, &source, CHUNK_RECORDS);
		/* The same counts each time: a flush ends with its data chunk. */
		flush_writer(writer, 0);
		sample.ends[i] = store_writer_bytes(writer);
	}
	close_writer(writer, source.ts);
	sample.bytes = read_file(path, &sample.size);
	return sample;
}

/* Reads a file of the sample's records: their number, or -1 after an error. Every record that comes
 * must be the one that was written. */
static int read_sample(const char *path, struct error *err)
{
	struct record_source source = FIXTURE_SOURCE(SEED);
	struct store_reader *reader;
	const struct waffle_rec *rec;
	struct record_buffer buffer;
	int count = 0, ret = store_reader_open(&reader, path, err);

	if (ret)
		return -1;
	while ((ret = store_reader_next(reader, &rec, err)) > 0) {
		fixture_record(&source, &buffer);
		assert_memory_equal(rec, &buffer, record_size(&buffer, sizeof(buffer)));
		count++;
	}
	if (ret < 0) {
		struct error again = ERROR_INIT;

		/* The error stays. */
		assert_int_equal(store_reader_next(reader, &rec, &again), ret);
	}
	store_reader_close(reader);
	return ret < 0 ? -1 : count;
}

static void assert_one_line(const struct error *err, const char *path)
{
	assert_ptr_equal(strstr(err->message, path), err->message);
	assert_null(strchr(err->message, '\n'));
}

static void test_file_cut_at_any_byte_reads_up_to_the_last_whole_chunk(void **state)
{
	struct store_test *test = *state;
	struct sample sample = make_sample(test->path);

	for (size_t size = 0; size <= sample.size; size++) {
		struct error err = ERROR_INIT;
		int expect = 0;

		write_file(test->path, sample.bytes, size);
		for (unsigned i = 0; i < CHUNKS; i++)
			expect += size >= sample.ends[i] ? CHUNK_RECORDS : 0;
		if (size < sample.begin)
			expect = -1;
		if (read_sample(test->path, &err) != expect)
			fail_msg("cut at %zu of %zu: %s", size, sample.size, err.message);
		if (expect < 0)
			assert_one_line(&err, test->path);
	}
	free(sample.bytes);
}

static void test_cut_file_tells_how_many_bytes_are_of_no_use(void **state)
{
	struct store_test *test = *state;
	struct sample sample = make_sample(test->path);
	struct store_reader *reader;
	uint64_t unused;

	write_file(test->path, sample.bytes, sample.ends[1] + 17);
	reader = open_reader(test->path);
	assert_true(store_reader_truncated(reader, &unused));
	assert_int_equal(unused, 17);
	assert_int_equal(store_reader_meta(reader)->end_ts, 0);
	store_reader_close(reader);

	write_file(test->path, sample.bytes, sample.size);
	reader = open_reader(test->path);
	assert_false(store_reader_truncated(reader, &unused));
	assert_int_equal(unused, 0);
	store_reader_close(reader);
	free(sample.bytes);
}

static void flip_every_byte(struct store_test *test, struct sample *sample, size_t size,
			    unsigned char mask)
{
	for (size_t i = 0; i < size; i++) {
		struct error err = ERROR_INIT;
		int count;

		sample->bytes[i] ^= mask;
		write_file(test->path, sample->bytes, size);
		count = read_sample(test->path, &err);
		if (count < 0)
			assert_one_line(&err, test->path);
		else
			assert_int_equal(count % CHUNK_RECORDS, 0);
		/* Damage in the middle is told, unless it is in what this walk does not need. */
		if (i < sample->ends[CHUNKS - 2] && count >= 0)
			assert_int_equal(count, CHUNKS * CHUNK_RECORDS);
		sample->bytes[i] ^= mask;
	}
}

static void test_any_byte_changed_gives_an_error_or_whole_chunks_of_true_records(void **state)
{
	struct store_test *test = *state;
	struct sample sample = make_sample(test->path);

	flip_every_byte(test, &sample, sample.size, 0xff);
	flip_every_byte(test, &sample, sample.size, 0x01);
	/* And without index and end. */
	flip_every_byte(test, &sample, sample.ends[CHUNKS - 1], 0x10);
	free(sample.bytes);
}

static void test_damaged_chunk_in_the_middle_is_named_by_its_offset(void **state)
{
	struct store_test *test = *state;
	struct sample sample = make_sample(test->path);
	struct error err = ERROR_INIT;
	unsigned long long offset;
	const char *at;

	sample.bytes[sample.ends[1] - 1] ^= 4;
	write_file(test->path, sample.bytes, sample.size);
	assert_int_equal(read_sample(test->path, &err), -1);
	at = strstr(err.message, "at byte ");
	assert_non_null(at);
	offset = strtoull(at + 8, NULL, 10);
	assert_in_range(offset, sample.ends[0], sample.ends[1] - CHUNK_HEADER_BYTES);
	assert_memory_equal(sample.bytes + offset, "CHNK", 4);
	free(sample.bytes);
}

static void test_garbage_behind_the_last_chunk_is_reported_not_read(void **state)
{
	struct store_test *test = *state;
	struct sample sample = make_sample(test->path);
	struct store_reader *reader;
	struct error err = ERROR_INIT;
	uint64_t unused;

	/* After a power loss, the file may have its length but not its bytes. */
	sample.bytes = realloc(sample.bytes, sample.ends[2] + 4096);
	assert_non_null(sample.bytes);
	memset(sample.bytes + sample.ends[2], 0, 4096);
	write_file(test->path, sample.bytes, sample.ends[2] + 4096);
	assert_int_equal(read_sample(test->path, &err), 3 * CHUNK_RECORDS);
	reader = open_reader(test->path);
	assert_true(store_reader_truncated(reader, &unused));
	assert_int_equal(unused, 4096);
	store_reader_close(reader);
	free(sample.bytes);
}

/* Sizes in a header that its checksum vouches for, but that no writer makes. */
static void test_sizes_that_a_hostile_header_claims_are_not_believed(void **state)
{
	struct store_test *test = *state;
	struct sample sample = make_sample(test->path);

	for (size_t at = 8; at < 20; at++) {
		unsigned char *header = sample.bytes + FILE_HEADER_BYTES;
		unsigned char old[CHUNK_HEADER_BYTES];
		struct error err = ERROR_INIT;

		memcpy(old, header, sizeof(old));
		header[at] = 0xfe;
		put_le(header + CHUNK_HEADER_BYTES - 4,
		       chunk_checksum(header, CHUNK_HEADER_BYTES - 4), 4);
		write_file(test->path, sample.bytes, sample.size);
		if (read_sample(test->path, &err) < 0)
			assert_one_line(&err, test->path);
		memcpy(header, old, sizeof(old));
	}
	free(sample.bytes);
}

static void assert_refused(const char *path, const void *bytes, size_t size, const char *why)
{
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	write_file(path, bytes, size);
	assert_true(store_reader_open(&reader, path, &err) < 0);
	assert_one_line(&err, path);
	if (!strstr(err.message, why))
		fail_msg("'%s' does not say '%s'", err.message, why);
}

static void test_foreign_and_newer_files_are_refused_by_a_line_that_says_why(void **state)
{
	struct store_test *test = *state;
	unsigned char header[FILE_HEADER_BYTES];
	struct store_reader *reader;
	struct error err = ERROR_INIT, missing = ERROR_INIT;

	assert_refused(test->path, "", 0, "is empty");
	assert_refused(test->path,
		       "\x7f"
		       "ELF...............",
		       16, "is not a .waffle file");
	assert_refused(test->path, "hello", 5, "is not a .waffle file");
	file_header_pack(header);
	assert_refused(test->path, header, 5, "cut off in its header");
	assert_refused(test->path, header, sizeof(header), "cut off in its header");
	header[8] = 7;
	assert_refused(test->path, header, sizeof(header), "damaged at byte 0");
	put_le(header + 12, chunk_checksum(header, 12), 4);
	assert_refused(test->path, header, sizeof(header), "has version 7");
	assert_int_equal(store_reader_open(&reader, test->folder, &err), -EISDIR);
	assert_non_null(strstr(err.message, "is a directory"));
	unlink(test->path);
	assert_int_equal(store_reader_open(&reader, test->path, &missing), -ENOENT);
	assert_one_line(&missing, test->path);
}

/* ---- writing ---- */

static void test_writer_refuses_places_where_no_file_can_be(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = NULL;
	struct error directory = ERROR_INIT, missing = ERROR_INIT, full = ERROR_INIT;

	assert_int_equal(store_writer_open(&writer, test->folder, &fixture_meta, &directory),
			 -EISDIR);
	assert_one_line(&directory, test->folder);
	assert_int_equal(store_writer_open(&writer, "/no/such/t.waffle", &fixture_meta, &missing),
			 -ENOENT);
	assert_one_line(&missing, "/no/such/t.waffle");
	assert_int_equal(store_writer_open(&writer, "/dev/full", &fixture_meta, &full), -ENOSPC);
	assert_one_line(&full, "/dev/full");
}

static void test_old_file_of_the_name_is_replaced_at_once(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer;
	struct error err = ERROR_INIT;

	write_file(test->path, "old", 3);
	writer = open_writer(test->path);
	assert_int_equal(read_sample(test->path, &err), 0);
	close_writer(writer, 1);
	/* store_teardown() finds it if a temporary file was left. */
}

static void test_record_that_is_none_is_refused_and_the_next_one_taken(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct record_buffer bad = {.hit.rec.kind = WAFFLE_REC_HIT, .hit.frame_bytes = 100000};
	struct record_source source = FIXTURE_SOURCE(SEED);
	struct error err = ERROR_INIT, other = ERROR_INIT;

	assert_int_equal(store_writer_append(writer, &bad.rec, &err), -EINVAL);
	bad.rec.kind = 77;
	assert_int_equal(store_writer_append(writer, &bad.rec, &other), -EINVAL);
	bad = (struct record_buffer){.rec.kind = WAFFLE_REC_EXIT, .rec.ts = RECORD_TS_MAX + 1ull};
	other = (struct error)ERROR_INIT;
	assert_int_equal(store_writer_append(writer, &bad.rec, &other), -EINVAL);
	append_random(writer, &source, 10);
	close_writer(writer, 1);
	other = (struct error)ERROR_INIT;
	assert_int_equal(read_sample(test->path, &other), 10);
}

/* The model's "never" is a time that no record can be of. */
static void test_record_of_a_time_that_cannot_be_is_damage(void **state)
{
	struct record_buffer late = {.rec.kind = WAFFLE_REC_EXIT, .rec.ts = RECORD_TS_MAX};
	struct encoder *encoder = encoder_new();
	struct decoder *decoder = decoder_new();
	const struct waffle_rec *rec;
	struct encoded chunk;

	(void)state;
	assert_true(encoder && decoder);
	assert_true(encoder_append(encoder, &late.rec));
	late.rec.ts++;
	assert_true(encoder_append(encoder, &late.rec));
	chunk = encoder_chunk(encoder);
	decoder_begin(decoder, chunk.data, chunk.bytes, chunk.records);
	assert_int_equal(decoder_next(decoder, &rec), 1);
	assert_int_equal(decoder_next(decoder, &rec), -EBADMSG);
	encoder_free(encoder);
	decoder_free(decoder);
}

/* Writes until there is no room; then the file has what the writer says it has. */
static void fill_up(const char *path, int code)
{
	struct record_source source = FIXTURE_SOURCE(SEED);
	struct store_writer *writer = open_writer(path);
	struct error err = ERROR_INIT, again = ERROR_INIT, last = ERROR_INIT, read = ERROR_INIT;
	struct record_buffer buffer;
	uint64_t persisted;
	char expect[64];
	struct stat st;
	int ret = 0;

	for (unsigned i = 0; i < 200000 && !ret; i++) {
		fixture_record(&source, &buffer);
		ret = store_writer_append(writer, &buffer.rec, &err);
	}
	assert_int_equal(ret, -code);
	persisted = store_writer_persisted(writer);
	assert_true(persisted > 0);
	snprintf(expect, sizeof(expect), "%s; the %llu records before it are kept", strerror(code),
		 (unsigned long long)persisted);
	assert_non_null(strstr(err.message, expect));
	assert_one_line(&err, path);
	assert_int_equal(store_writer_append(writer, &buffer.rec, &again), -code);
	assert_string_equal(again.message, err.message);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, store_writer_bytes(writer));
	assert_int_equal(store_writer_close(writer, 1, fixture_counts, &last), -code);
	assert_string_equal(last.message, err.message);
	assert_int_equal(read_sample(path, &read), persisted);
}

static struct store_writer *open_writer_apart(const char *path)
{
	struct error err = ERROR_INIT;
	struct store_writer *writer = NULL;

	must(store_writer_open_apart(&writer, path, false, -1, &fixture_meta, &err), &err);
	must(store_writer_publish(writer, &err), &err);
	for (unsigned i = 0; i < FIXTURE_SITES; i++)
		must(store_writer_add_site(writer, &fixture_sites[i], &err), &err);
	return writer;
}

/* Until the process that writes has failed; -code. */
static int fill_apart(struct store_writer *writer, struct error *err)
{
	struct record_source source = FIXTURE_SOURCE(SEED);
	struct record_buffer buffer;
	int ret = 0;

	for (unsigned i = 0; i < 2000000 && !ret; i++) {
		fixture_record(&source, &buffer);
		ret = store_writer_append(writer, &buffer.rec, err);
		while (store_writer_progress(writer).queued > 1 << 20)
			store_writer_wait(writer, -1, 1000);
	}
	return ret;
}

/* Its errors come later, and tell as exactly what is in the file. */
static void test_process_that_writes_keeps_what_was_written_before_a_failure(void **state)
{
	struct store_test *test = *state;
	struct error err = ERROR_INIT, last = ERROR_INIT, read = ERROR_INIT;
	struct rlimit old, limit;
	struct store_writer *writer;
	uint64_t persisted;
	char expect[64];
	struct stat st;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){.rlim_cur = 700000, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	writer = open_writer_apart(test->path);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(fill_apart(writer, &err), -EFBIG);
	persisted = store_writer_persisted(writer);
	assert_true(persisted > 0);
	snprintf(expect, sizeof(expect), "%s; the %llu records before it are kept", strerror(EFBIG),
		 (unsigned long long)persisted);
	assert_non_null(strstr(err.message, expect));
	while (store_writer_progress(writer).busy)
		store_writer_wait(writer, -1, 1000);
	assert_int_equal(stat(test->path, &st), 0);
	assert_int_equal(st.st_size, store_writer_progress(writer).kept);
	assert_int_equal(store_writer_close(writer, 1, fixture_counts, &last), -EFBIG);
	assert_int_equal(read_sample(test->path, &read), persisted);
}

static pid_t child_find(void)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	int pid = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%d", &pid), 1);
	fclose(file);
	return pid;
}

static void test_process_that_writes_may_be_killed(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer_apart(test->path);
	struct error err = ERROR_INIT, last = ERROR_INIT, read = ERROR_INIT;
	uint64_t persisted;

	while (store_writer_progress(writer).busy)
		store_writer_wait(writer, -1, 1000);
	kill(child_find(), SIGKILL);
	assert_int_equal(fill_apart(writer, &err), -EPIPE);
	assert_non_null(strstr(err.message, "the process that writes the file was killed"));
	persisted = store_writer_persisted(writer);
	assert_int_equal(store_writer_close(writer, 1, fixture_counts, &last), -EPIPE);
	assert_true((uint64_t)read_sample(test->path, &read) >= persisted);
}

static void test_process_that_writes_removes_a_file_that_is_discarded(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer;
	struct error err = ERROR_INIT;
	char command[300];

	must(store_writer_open_apart(&writer, test->path, false, -1, &fixture_meta, &err), &err);
	store_writer_discard(writer);
	snprintf(command, sizeof(command), "test -z \"$(ls -A %s)\"", test->folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(store_writer_open_apart(&writer, "/no/such/t.waffle", false, -1,
						 &fixture_meta, &err),
			 -ENOENT);
	assert_one_line(&err, "/no/such/t.waffle");
}

static void await(struct store_writer *writer)
{
	while (store_writer_progress(writer).busy)
		store_writer_wait(writer, -1, 1000);
}

/* A report of the file would be one of something else. */
static void test_process_that_writes_says_if_the_file_did_not_get_its_name(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer;
	struct error err = ERROR_INIT;
	char command[600];
	int code;

	must(store_writer_open_apart(&writer, test->path, false, -1, &fixture_meta, &err), &err);
	assert_false(store_writer_is_published(writer));
	assert_int_equal(mkdir(test->path, 0700), 0);
	code = store_writer_publish(writer, &err); /* the answer may be there, or come later */
	assert_true(!code || code == -EISDIR);
	await(writer);
	assert_false(store_writer_is_published(writer));
	store_writer_finish(writer, 1, fixture_counts);
	await(writer);
	assert_int_equal(store_writer_close(writer, 1, fixture_counts, &err), -EISDIR);
	assert_one_line(&err, test->path);
	assert_non_null(strstr(err.message, "nothing was written"));
	snprintf(command, sizeof(command), "test \"$(ls -A %s)\" = \"$(basename %s)\"",
		 test->folder, test->path);
	assert_int_equal(system(command), 0);
	assert_int_equal(rmdir(test->path), 0);

	must(store_writer_open_apart(&writer, test->path, false, -1, &fixture_meta, &err), &err);
	store_writer_finish(writer, 1, fixture_counts);
	await(writer);
	assert_true(store_writer_is_published(writer));
	must(store_writer_close(writer, 1, fixture_counts, &err), &err);
}

static void test_file_size_limit_keeps_what_was_written_before(void **state)
{
	struct store_test *test = *state;
	struct rlimit old, limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = (struct rlimit){.rlim_cur = 700000, .rlim_max = old.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	fill_up(test->path, EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	signal(SIGXFSZ, SIG_DFL);
}

static void test_full_disk_keeps_what_was_written_before(void **state)
{
	struct store_test *test = *state;

	if (mount("tmpfs", test->folder, "tmpfs", 0, "size=512k") != 0)
		skip();
	fill_up(test->path, ENOSPC);
	unlink(test->path);
	assert_int_equal(umount(test->folder), 0);
}

static void test_file_belongs_to_the_user_who_called_sudo(void **state)
{
	struct store_test *test = *state;
	struct stat st;

	if (geteuid() != 0)
		skip();
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "23456", 1);
	close_writer(open_writer(test->path), 1);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	assert_int_equal(stat(test->path, &st), 0);
	assert_int_equal(st.st_uid, 12345);
	assert_int_equal(st.st_gid, 23456);
	assert_int_equal(st.st_mode & 0777, 0600);
}

#define with_folder(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_folder(test_file_cut_at_any_byte_reads_up_to_the_last_whole_chunk),
		with_folder(test_cut_file_tells_how_many_bytes_are_of_no_use),
		with_folder(test_any_byte_changed_gives_an_error_or_whole_chunks_of_true_records),
		with_folder(test_damaged_chunk_in_the_middle_is_named_by_its_offset),
		with_folder(test_garbage_behind_the_last_chunk_is_reported_not_read),
		with_folder(test_sizes_that_a_hostile_header_claims_are_not_believed),
		with_folder(test_foreign_and_newer_files_are_refused_by_a_line_that_says_why),
		with_folder(test_writer_refuses_places_where_no_file_can_be),
		with_folder(test_old_file_of_the_name_is_replaced_at_once),
		with_folder(test_record_that_is_none_is_refused_and_the_next_one_taken),
		cmocka_unit_test(test_record_of_a_time_that_cannot_be_is_damage),
		with_folder(test_file_size_limit_keeps_what_was_written_before),
		with_folder(test_process_that_writes_keeps_what_was_written_before_a_failure),
		with_folder(test_process_that_writes_may_be_killed),
		with_folder(test_process_that_writes_removes_a_file_that_is_discarded),
		with_folder(test_full_disk_keeps_what_was_written_before),
		with_folder(test_process_that_writes_says_if_the_file_did_not_get_its_name),
		with_folder(test_file_belongs_to_the_user_who_called_sudo),
	};

	umask(022);
	return cmocka_run_group_tests_name("store_damage", tests, NULL, NULL);
}
