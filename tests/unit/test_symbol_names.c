// SPDX-License-Identifier: Apache-2.0
/* Build-ids of files, and demangled names of symbols. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "target/elf/buildid.h"
#include "target/elf/demangle.h"

static void test_demangler_refuses_what_unfolds_without_end(void **state)
{
	char name[1024] = "_Z1f1AIiiE", text[DEMANGLE_MAX];
	static const char numbers[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	(void)state;
	/* Each type is twice the one before it: A<A<…>, A<…>>. */
	for (unsigned i = 0; i < 34; i++)
		snprintf(name + strlen(name), 32, "S_IS%c_S%c_E", numbers[i], numbers[i]);
	assert_null(demangle(name, text));
	assert_string_equal(demangle("_ZNSt6vectorIiSaIiEE9push_backERKi", text),
			    "std::vector<int, std::allocator<int> >::push_back(int const&)");
	assert_string_equal(demangle("_ZN3foo3barEv.part.0", text), "foo::bar() [clone .part.0]");
	assert_null(demangle("main", text));
	assert_null(demangle("i", text));
	assert_null(demangle("_ZN3foo3ba", text));
	assert_null(demangle("", text));
}

static void test_many_names_at_once_are_those_of_each(void **state)
{
	static const char *const symbols[] = {"_ZN3foo3barEv", "main", "_ZN3foo3ba",
					      "_Z5saxpyifPfS_", ""};
	char *names[5];

	(void)state;
	demangle_batch(symbols, 5, names);
	assert_string_equal(names[0], "foo::bar()");
	assert_null(names[1]);
	assert_null(names[2]);
	assert_string_equal(names[3], "saxpy(int, float, float*, float*)");
	assert_null(names[4]);
	free(names[0]);
	free(names[3]);
}

static void test_build_id_of_notes_in_memory_is_found_behind_others(void **state)
{
	static const struct {
		uint32_t name_size, desc_size, type;
		char name[4];
		uint8_t desc[4];
		uint32_t id_name_size, id_size, id_type;
		char id_name[4];
		uint8_t id[6];
	} notes = {4, 3, 1, "GNU", {9, 9, 9}, 4, 6, 3, "GNU", {0xde, 0xad, 0xbe, 0xef, 0, 1}};
	const size_t size = offsetof(typeof(notes), id) + 6;
	struct build_id id, parsed;
	char text[BUILD_ID_TEXT];

	(void)state;
	assert_true(build_id_from_notes(&id, &notes, size));
	assert_string_equal(build_id_text(text, &id), "deadbeef0001");
	assert_true(build_id_parse(&parsed, "DEADbeef0001"));
	assert_true(build_id_equal(&id, &parsed));
	for (size_t cut = 0; cut < size; cut++) {
		assert_false(build_id_from_notes(&id, &notes, cut));
		assert_int_equal(id.size, 0);
	}
	assert_false(build_id_parse(&parsed, ""));
	assert_false(build_id_parse(&parsed, "abc"));
	assert_false(build_id_parse(&parsed, "zz"));
}

static void test_build_id_of_the_running_kernel_is_read(void **state)
{
	unsigned char notes[4096];
	FILE *file = fopen("/sys/kernel/notes", "re");
	struct build_id id;
	size_t size;

	(void)state;
	if (!file)
		skip();
	size = fread(notes, 1, sizeof(notes), file);
	fclose(file);
	assert_true(build_id_from_notes(&id, notes, size));
	assert_int_equal(id.size, 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_demangler_refuses_what_unfolds_without_end),
		cmocka_unit_test(test_many_names_at_once_are_those_of_each),
		cmocka_unit_test(test_build_id_of_notes_in_memory_is_found_behind_others),
		cmocka_unit_test(test_build_id_of_the_running_kernel_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
