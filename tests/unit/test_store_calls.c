// SPDX-License-Identifier: Apache-2.0
/* Calls in a .waffle file: their sites, hits, returns, stacks and names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/dictionary_internal.h"
#include "store_helpers.h"

static void test_names_of_values_come_back(void **state)
{
	struct store_name name = {.value = 0x55550000abcd, .pid = 7, .name = "saxpy(float*, int)"};
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct error err = ERROR_INIT;
	struct store_reader *reader;

	must(store_writer_add_name(writer, &name, &err), &err);
	flush_writer(writer, 0);
	name = (struct store_name){
		.value = ~0ull, .pid = UINT32_MAX, .name = "gemm", .since = ~0ull};
	must(store_writer_add_name(writer, &name, &err), &err);
	close_writer(writer, 1);
	reader = open_reader(test->path);
	assert_int_equal(store_reader_name_count(reader), 2);
	assert_int_equal(store_reader_name(reader, 0)->value, 0x55550000abcd);
	assert_int_equal(store_reader_name(reader, 0)->pid, 7);
	assert_string_equal(store_reader_name(reader, 0)->name, "saxpy(float*, int)");
	assert_int_equal(store_reader_name(reader, 1)->value, ~0ull);
	assert_int_equal(store_reader_name(reader, 1)->pid, UINT32_MAX);
	assert_string_equal(store_reader_name(reader, 1)->name, "gemm");
	assert_int_equal(store_reader_name(reader, 0)->since, 0);
	assert_int_equal(store_reader_name(reader, 1)->since, ~0ull);
	assert_null(store_reader_name(reader, 2));
	store_reader_close(reader);
}

/* A site's bytes: this first number, no line, no names, a key of a type. */
static int read_site(struct dictionary *dictionary, const char *bytes, size_t size)
{
	struct cursor cursor = {.at = (const unsigned char *)bytes,
				.end = (const unsigned char *)bytes + size};

	return dictionary_get_sites(dictionary, &cursor, 1);
}

static void test_role_that_is_not_known_is_none_and_a_type_of_the_model_is_refused(void **state)
{
	struct dictionary dictionary;

	(void)state;
	assert_true(dictionary_init(&dictionary));
	/* A span, a call, role 100: 2 | 256 | 100 << 9 as a varint. */
	assert_int_equal(read_site(&dictionary,
				   "\x82\x92\x03\0\0\0\0\0\0\1"
				   "c\0",
				   12),
			 0);
	assert_int_equal(dictionary.sites.data[0].kind, 2);
	assert_true(dictionary.sites.data[0].call);
	assert_int_equal(dictionary.sites.data[0].role, SITE_ROLE_NONE);
	/* A site as files without calls have it. */
	assert_int_equal(read_site(&dictionary,
				   "\x01\0\0\0\0\0\0\1"
				   "i\0",
				   10),
			 0);
	assert_int_equal(dictionary.sites.data[1].kind, WAFFLE_SITE_SPAN);
	assert_false(dictionary.sites.data[1].call);
	assert_int_equal(read_site(&dictionary,
				   "\x01\0\0\0\0\0\0\1"
				   "T\0",
				   10),
			 -EBADMSG);
	dictionary_free(&dictionary);
}

static void test_return_that_does_not_fit_is_refused(void **state)
{
	struct record_buffer buffer = {.ret.rec.kind = WAFFLE_REC_RETURN, .ret.frame_bytes = 33};

	(void)state;
	assert_int_equal(record_size(&buffer, sizeof(buffer)), 40 + 40);
	assert_int_equal(record_size(&buffer, 79), 0);
	buffer.ret.frame_bytes = WAFFLE_FRAME_MAX + 1;
	assert_int_equal(record_size(&buffer, sizeof(buffer)), 0);
	buffer.ret.frame_bytes = UINT32_MAX;
	assert_int_equal(record_size(&buffer, sizeof(buffer)), 0);
}

static void test_call_that_was_left_comes_back_so_and_spoils_no_return(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct record_buffer hit = {.hit = {.rec = {.tid = 9, .kind = WAFFLE_REC_HIT},
					    .site = FIXTURE_MALLOC,
					    .frame_bytes = 40}};
	struct record_buffer ret = {
		.ret = {.rec = {.tid = 9, .kind = WAFFLE_REC_RETURN}, .site = FIXTURE_MALLOC}};
	uint64_t *frame = (uint64_t *)(&hit.hit + 1);
	const struct waffle_rec_return *end;
	const struct waffle_rec *rec;
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < 1000; i++) {
		hit.rec.ts = ret.rec.ts = i * 100;
		frame[0] = ret.ret.span_id = 1000 + i;
		ret.ret.flags = i % 3 ? 0 : WAFFLE_RETURN_LEFT;
		ret.ret.frame_bytes = i % 3 ? 16 : 0;
		append(writer, &hit.rec);
		append(writer, &ret.rec);
	}
	flush_writer(writer, 0);
	assert_in_range(store_writer_bytes(writer), 100, 2000);
	close_writer(writer, 100000);
	reader = open_reader(test->path);
	for (unsigned i = 0; i < 1000; i++) {
		must(store_reader_next(reader, &rec, &err), &err);
		must(store_reader_next(reader, &rec, &err), &err);
		assert_int_equal(rec->kind, WAFFLE_REC_RETURN);
		end = (const struct waffle_rec_return *)rec;
		assert_int_equal(end->span_id, 1000 + i);
		assert_int_equal(end->site, FIXTURE_MALLOC);
		assert_int_equal(end->flags, i % 3 ? 0 : WAFFLE_RETURN_LEFT);
		assert_int_equal(end->frame_bytes, i % 3 ? 16 : 0);
	}
	store_reader_close(reader);
}

/* A span of a macro with a call in it, 20,000 times: its ids are not mixed up with the call's. */
static void test_calls_inside_spans_cost_less_than_six_bytes_a_record(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct record_buffer hit = {.hit = {.rec = {.tid = 9, .kind = WAFFLE_REC_HIT}, .tgid = 9}};
	struct record_buffer ret = {.ret = {.rec = {.tid = 9, .kind = WAFFLE_REC_RETURN},
					    .tgid = 9,
					    .site = FIXTURE_MALLOC,
					    .frame_bytes = 16}};
	struct waffle_rec_span_end end = {
		.rec = {.tid = 9, .kind = WAFFLE_REC_SPAN_END}, .tgid = 9, .site = 1};
	uint64_t *frame = (uint64_t *)(&hit.hit + 1), *values = (uint64_t *)(&ret.ret + 1);
	uint64_t random = 3, ts = 1000;

	for (unsigned i = 0; i < 20000; i++) {
		memcpy(frame, (uint64_t[4]){0x123456789abcdef0ull + i, 0, 7, 8}, 32);
		hit.hit.site = 1;
		hit.hit.frame_bytes = 32;
		hit.rec.ts = ts += fixture_random(&random) % 5000;
		append(writer, &hit.rec);
		end.span_id = frame[0];
		memcpy(frame, (uint64_t[5]){0x9000000000000000ull + i, 0, 0, 0, 4096}, 40);
		hit.hit.site = FIXTURE_MALLOC;
		hit.hit.frame_bytes = 40;
		hit.rec.ts = ts += fixture_random(&random) % 5000;
		append(writer, &hit.rec);
		ret.rec.ts = ts += fixture_random(&random) % 5000;
		ret.ret.span_id = frame[0];
		values[0] = 0x7f0000001000 + i * 4096ull;
		append(writer, &ret.rec);
		end.rec.ts = ts += fixture_random(&random) % 5000;
		append(writer, &end.rec);
	}
	flush_writer(writer, 0);
	assert_in_range(store_writer_bytes(writer), 80000, 80000 * 6);
	close_writer(writer, ts);
}

/* Ids as bpf/call.bpf.c makes them, which look like random numbers. */
static uint64_t kernel_id(const struct waffle_rec *rec, uint64_t seed)
{
	return (rec->ts << 22 | rec->tid) * 0x9e3779b97f4a7c15ull ^ seed;
}

static void test_ids_of_the_kernel_cost_nothing_but_the_first(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct record_buffer hit = {
		.hit = {.rec.kind = WAFFLE_REC_HIT, .site = FIXTURE_MALLOC, .frame_bytes = 40}};
	uint64_t *frame = (uint64_t *)(&hit.hit + 1), random = 3;
	const struct waffle_rec *rec;
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < 20000; i++) {
		hit.rec.ts += fixture_random(&random) % 5000;
		hit.rec.tid = 7 + i % 3;
		frame[0] = kernel_id(&hit.rec, 0x1234567890abcdef);
		append(writer, &hit.rec);
	}
	flush_writer(writer, 0);
	assert_in_range(store_writer_bytes(writer), 20000, 20000 * 4);
	close_writer(writer, hit.rec.ts);
	reader = open_reader(test->path);
	for (unsigned i = 0; i < 20000; i++) {
		must(store_reader_next(reader, &rec, &err), &err);
		assert_true(*(const uint64_t *)((const struct waffle_rec_hit *)rec + 1) ==
			    kernel_id(rec, 0x1234567890abcdef));
	}
	store_reader_close(reader);
}

/* More calls that never return than a thread's stack holds: those that do are still predicted. */
static void test_lost_returns_do_not_spoil_what_follows(void **state)
{
	struct store_test *test = *state;
	struct store_writer *writer = open_writer(test->path);
	struct record_buffer hit = {.hit = {.rec = {.tid = 9, .kind = WAFFLE_REC_HIT},
					    .site = FIXTURE_MALLOC,
					    .frame_bytes = 40}};
	struct record_buffer ret = {.ret = {.rec = {.tid = 9, .kind = WAFFLE_REC_RETURN},
					    .site = FIXTURE_MALLOC,
					    .frame_bytes = 16}};
	uint64_t *frame = (uint64_t *)(&hit.hit + 1);
	const struct waffle_rec *rec;
	struct store_reader *reader;
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < 20000; i++) {
		hit.rec.ts = ret.rec.ts = i * 100;
		frame[0] = ret.ret.span_id = 1000 + i;
		append(writer, &hit.rec);
		if (i >= 100)
			append(writer, &ret.rec);
	}
	flush_writer(writer, 0);
	assert_in_range(store_writer_bytes(writer), 100, 2000);
	close_writer(writer, 2000000);
	reader = open_reader(test->path);
	for (unsigned i = 0; i < 20000; i++) {
		must(store_reader_next(reader, &rec, &err), &err);
		assert_int_equal(rec->kind, WAFFLE_REC_HIT);
		if (i < 100)
			continue;
		must(store_reader_next(reader, &rec, &err), &err);
		assert_int_equal(rec->kind, WAFFLE_REC_RETURN);
		assert_int_equal(((const struct waffle_rec_return *)rec)->span_id, 1000 + i);
		assert_int_equal(((const struct waffle_rec_return *)rec)->frame_bytes, 16);
	}
	assert_at_end(reader);
	store_reader_close(reader);
}

#define with_folder(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_folder(test_names_of_values_come_back),
		cmocka_unit_test(
			test_role_that_is_not_known_is_none_and_a_type_of_the_model_is_refused),
		cmocka_unit_test(test_return_that_does_not_fit_is_refused),
		with_folder(test_call_that_was_left_comes_back_so_and_spoils_no_return),
		with_folder(test_calls_inside_spans_cost_less_than_six_bytes_a_record),
		with_folder(test_ids_of_the_kernel_cost_nothing_but_the_first),
		with_folder(test_lost_returns_do_not_spoil_what_follows),
	};

	return cmocka_run_group_tests_name("store_calls", tests, NULL, NULL);
}
