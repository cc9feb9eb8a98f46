// SPDX-License-Identifier: Apache-2.0
/* Names made at run time: what makes two of them one, who listens, and how values are laid out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "usdt/name/names.h"
#include "usdt/ring/rings.h"
#include "usdt/ring/tracer.h"
#include "usdt/name/values.h"

/* Who wants records: of rings.c, which this test does without. */
struct rings_gate rings_gate;

void tracer_announce(const void *memory, uint64_t map_bytes, uint32_t tid)
{
	assert_non_null(memory);
	assert_int_equal(map_bytes, NAME_CHUNK_BYTES);
	assert_int_equal(tid, 0);
}

static struct waffle_name_spec spec_of(const char *text)
{
	static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "a"}, {WAFFLE_KEY_STR, "b"}};

	return (struct waffle_name_spec){.size = sizeof(struct waffle_name_spec),
					 .kind = WAFFLE_SITE_SPAN,
					 .name = text,
					 .file = "file",
					 .line = 1,
					 .keys = keys,
					 .key_count = 2};
}

static void test_same_definition_is_the_same_name(void **state)
{
	static const waffle_key_t other_type[] = {{WAFFLE_KEY_U64, "a"}, {WAFFLE_KEY_STR, "b"}};
	static const waffle_key_t other_name[] = {{WAFFLE_KEY_I64, "a"}, {WAFFLE_KEY_STR, "bb"}};
	struct waffle_name_spec spec = spec_of("same"),
				others[] = {spec, spec, spec, spec, spec, spec, spec, spec, spec};
	char copy[] = "same";
	waffle_name_t *name = waffle_name(&spec);

	(void)state;
	spec.name = copy;
	assert_ptr_equal(waffle_name(&spec), name);
	others[0].name = "same\001";
	others[1].kind = WAFFLE_SITE_EVENT;
	others[2].category = "x";
	others[3].file = "fil";
	others[4].function = "e";
	others[5].line = 2;
	others[6].keys = other_type;
	others[7].keys = other_name;
	others[8].key_count = 1;
	for (unsigned i = 0; i < 9; i++) {
		assert_ptr_not_equal(waffle_name(&others[i]), name);
		assert_ptr_equal(waffle_name(&others[i]), waffle_name(&others[i]));
	}
}

static void test_shorter_spec_of_an_older_program_has_defaults(void **state)
{
	struct waffle_name_spec spec = spec_of("old");
	const struct name_site *name;

	(void)state;
	spec.size = offsetof(struct waffle_name_spec, keys);
	name = (const struct name_site *)waffle_name(&spec);
	assert_int_equal(name->site.key_count, 0);
	assert_string_equal(name->site.name, "old");
}

struct heard {
	unsigned count;
	bool wanted;
};

static bool hear(const struct name_site *name, void *arg)
{
	struct heard *heard = arg;

	if (!strncmp(name->site.name, "heard", 5))
		heard->count++;
	return heard->wanted;
}

static void test_listener_gets_each_name_once_and_arms_it(void **state)
{
	struct waffle_name_spec before = spec_of("heard before"), after = spec_of("heard after");
	struct heard heard = {.wanted = true};
	waffle_name_t *one = waffle_name(&before), *two;

	(void)state;
	assert_false(waffle_name_armed(one));
	names_listen(&(struct names_listener){hear, &heard});
	assert_true(waffle_name_armed(one));
	two = waffle_name(&after);
	assert_true(waffle_name_armed(two));
	waffle_name(&after);
	assert_int_equal(heard.count, 2);
	names_unlisten();
	assert_false(waffle_name_armed(one) || waffle_name_armed(two));
	heard.wanted = false;
	names_listen(&(struct names_listener){hear, &heard});
	assert_false(waffle_name_armed(one) || waffle_name_armed(two));
	names_unlisten();
}

/* The chunk that the newest name is in. */
static struct name_chunk *chunk_of(const waffle_name_t *name)
{
	uintptr_t page = (uintptr_t)name & ~(uintptr_t)4095;

	while (!name_chunk_is_valid((struct name_chunk *)page))
		page -= 4096;
	return (struct name_chunk *)page;
}

static void test_tracer_reads_all_names_and_arms_them(void **state)
{
	struct waffle_name_spec spec = spec_of("read by a tracer");
	waffle_name_t *last = waffle_name(&spec);
	struct name_chunk *chunk = chunk_of(last);
	struct name_definition definition;
	uint32_t at = NAME_CHUNK_FIRST;
	unsigned count = 0;

	(void)state;
	while (name_chunk_next(chunk, &at, &definition) == NAME_CHUNK_DEFINITION) {
		const struct name_site *name =
			(const struct name_site *)((char *)chunk + definition.at);

		count++;
		assert_string_equal(definition.site.name, name->site.name);
		assert_string_equal(definition.site.file, name->site.file);
		assert_string_equal(definition.site.category, name->site.category);
		assert_string_equal(definition.site.func, name->site.func);
		assert_int_equal(definition.site.line, name->site.line);
		assert_int_equal(definition.site.kind, name->site.kind);
		assert_int_equal(definition.site.key_count, name->site.key_count);
		for (unsigned i = 0; i < name->site.key_count; i++) {
			assert_int_equal(definition.site.keys[i].type, name->site.keys[i].type);
			assert_string_equal(definition.site.keys[i].name, name->site.keys[i].name);
		}
	}
	assert_true(count > 10);
	assert_int_equal(at, chunk->used);
	assert_string_equal(definition.site.name, "read by a tracer");
	name_chunk_arm(chunk, definition.at, true);
	assert_true(waffle_name_armed(last));
	name_chunk_arm(chunk, definition.at, false);
	assert_false(waffle_name_armed(last));
	/* While a tracer is there, new names are armed until it has decided. */
	rings_gate.ring = 1;
	spec.name = "read later";
	last = waffle_name(&spec);
	rings_gate.ring = 0;
	assert_true(waffle_name_armed(last));
	assert_int_equal(name_chunk_next(chunk, &at, &definition), NAME_CHUNK_DEFINITION);
	assert_string_equal(definition.site.name, "read later");
	assert_int_equal(definition.track, 0);
	names_add_track(7, "engine", "gpu 0");
	assert_int_equal(name_chunk_next(chunk, &at, &definition), NAME_CHUNK_DEFINITION);
	assert_int_equal(definition.track, 7);
	assert_string_equal(definition.site.name, "engine");
	assert_string_equal(definition.site.category, "gpu 0");
	assert_int_equal(name_chunk_next(chunk, &at, &definition), NAME_CHUNK_END);
}

/* Waits until the word of a name that is armed changes, or for 5 s. Returns NULL if it was woken.
 */
static void *wait_for_word(void *arg)
{
	const struct timespec most = {.tv_sec = 5};

	return syscall(SYS_futex, arg, FUTEX_WAIT, NAME_ARMED_TRACER, &most, NULL, 0) ? arg : NULL;
}

/* A tracer that was killed leaves names armed. */
static void test_a_name_that_is_armed_again_wakes_who_waits(void **state)
{
	static struct name_entry entries[2];
	uint32_t *word = &entries[1].armed;
	const struct timespec pause = {.tv_nsec = 100000000};
	pthread_t waits;
	void *result;

	(void)state;
	*word = NAME_ARMED_TRACER;
	assert_int_equal(pthread_create(&waits, NULL, wait_for_word, word), 0);
	nanosleep(&pause, NULL);
	name_chunk_arm((struct name_chunk *)entries, sizeof(entries[0]), true);
	pthread_join(waits, &result);
	assert_null(result);
}

static void test_long_names_fill_many_chunks(void **state)
{
	char text[WAFFLE_FILE_MAX + 1];
	struct waffle_name_spec spec = spec_of("in many chunks");
	waffle_name_t *first = NULL, *last = NULL;

	(void)state;
	memset(text, 'f', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	spec.file = text;
	for (unsigned i = 0; i < 200; i++) {
		spec.line = i;
		last = waffle_name(&spec);
		first = first ?: last;
	}
	assert_ptr_not_equal(chunk_of(first), chunk_of(last));
	spec.line = 0;
	assert_ptr_equal(waffle_name(&spec), first);
}

/* A site with keys of these types. */
static struct site_info site_of(const char *types)
{
	struct site_info site = {.name = "x", .kind = WAFFLE_SITE_EVENT};

	for (; *types; types++)
		site.keys[site.key_count++] = (struct site_key){*types, "key"};
	return site;
}

static void test_numbers_are_converted_to_the_nearest(void **state)
{
	static const struct {
		char type;
		waffle_value_t value;
		uint64_t word;
	} rows[] = {
		{'i', {.type = 'd', .f64 = 1e300}, INT64_MAX},
		{'i', {.type = 'd', .f64 = -1e300}, (uint64_t)INT64_MIN},
		{'i', {.type = 'u', .u64 = UINT64_MAX}, INT64_MAX},
		{'u', {.type = 'i', .i64 = -1}, 0},
		{'u', {.type = 'd', .f64 = 1e300}, UINT64_MAX},
		{'u', {.type = 'd', .f64 = -0.5}, 0},
		{'u', {.type = 'd', .f64 = 0.0 / 0.0}, 0},
		{'b', {.type = 'd', .f64 = 0.5}, 1},
		{'d', {.type = 'i', .i64 = -2}, 0xc000000000000000ull},
		{'p', {.type = 'i', .i64 = 7}, 0},
		{'S', {.type = 'E', .u64 = 7}, 0},
		{'E', {.type = 'E', .u64 = 7}, 7},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char types[] = {rows[i].type, '\0'};
		struct site_info site = site_of(types);
		struct values_layout layout = values_measure(&site, &rows[i].value, 1);
		unsigned long long word = 99;

		assert_int_equal(layout.bytes, 8);
		values_put(&word, &site, &rows[i].value, &layout);
		assert_int_equal(word, rows[i].word);
	}
}

static void test_a_number_has_the_type_of_its_value_or_is_not_there(void **state)
{
	struct site_info site = site_of("nnnn");
	const waffle_value_t values[] = {waffle_i64(-1), waffle_f64(0.5), waffle_str("x"),
					 waffle_bool(true)};
	struct values_layout layout = values_measure(&site, values, 4);
	const unsigned long long expected[] = {
		WAFFLE_NUMBER_I64,  ~0ull, WAFFLE_NUMBER_F64, 0x3fe0000000000000,
		WAFFLE_NUMBER_NONE, 0,     WAFFLE_NUMBER_U64, 1};
	unsigned long long words[8];

	(void)state;
	assert_int_equal(layout.bytes, sizeof(words));
	values_put(words, &site, values, &layout);
	assert_memory_equal(words, expected, sizeof(words));
}

/* What is put is what a walk of the frame reads, for values of any types and lengths. */
static void test_any_values_are_read_as_they_were_put(void **state)
{
	static const char types[] = "iudbpnsSE";
	char text[WAFFLE_STR_MAX + 40];

	(void)state;
	memset(text, 'x', sizeof(text));
	srandom(16);
	for (unsigned round = 0; round < 20000; round++) {
		struct site_info site = {.name = "x", .kind = WAFFLE_SITE_EVENT};
		waffle_value_t values[WAFFLE_KEYS_MAX] = {{.type = 0}};
		unsigned count = (unsigned)random() % (WAFFLE_KEYS_MAX + 1), read = 0;
		struct value_walk walk;
		struct value value;
		unsigned char *frame;
		struct values_layout layout;

		site.key_count = (uint16_t)(random() % (WAFFLE_KEYS_MAX + 1));
		for (unsigned i = 0; i < site.key_count; i++)
			site.keys[i] = (struct site_key){types[random() % 9], "key"};
		for (unsigned i = 0; i < count; i++) {
			values[i] = (waffle_value_t){.type = types[random() % 9],
						     .u64 = (unsigned)random()};
			if (values[i].type == WAFFLE_KEY_STR)
				values[i] = waffle_str_of(text, (size_t)random() % sizeof(text));
			/* The walk leaves out what is not there. */
			if (i < site.key_count && site.keys[i].type == WAFFLE_KEY_NUMBER)
				values[i] = waffle_f64(0.5);
		}
		layout = values_measure(&site, values, count);
		frame = calloc(1, sizeof(struct waffle_frame) + layout.bytes);
		values_put((unsigned long long *)(frame + sizeof(struct waffle_frame)), &site,
			   values, &layout);
		walk = value_walk_begin(&site, frame,
					(uint32_t)(sizeof(struct waffle_frame) + layout.bytes));
		for (; value_walk_next(&walk, &value); read++) {
			if (value.type != WAFFLE_KEY_STR || values[read].type != WAFFLE_KEY_STR)
				continue;
			assert_int_equal(value.cut, values[read].length > WAFFLE_STR_MAX);
			assert_int_equal(value.text_len,
					 value.cut ? WAFFLE_STR_MAX : values[read].length);
		}
		assert_int_equal(read, count < site.key_count ? count : site.key_count);
		free(frame);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_definition_is_the_same_name),
		cmocka_unit_test(test_shorter_spec_of_an_older_program_has_defaults),
		cmocka_unit_test(test_listener_gets_each_name_once_and_arms_it),
		cmocka_unit_test(test_tracer_reads_all_names_and_arms_them),
		cmocka_unit_test(test_a_name_that_is_armed_again_wakes_who_waits),
		cmocka_unit_test(test_long_names_fill_many_chunks),
		cmocka_unit_test(test_numbers_are_converted_to_the_nearest),
		cmocka_unit_test(test_a_number_has_the_type_of_its_value_or_is_not_there),
		cmocka_unit_test(test_any_values_are_read_as_they_were_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
