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
#include "target/elf/demangle_rust_internal.h"

/* The first names are those that rustc 1.95 has made, as Rust shows them. */
static void test_names_of_rust_are_demangled(void **state)
{
	static const struct {
		const char *symbol, *name;
	} rows[] = {
		{"_RINvCs6xxl1lAjzDf_1a3genINtNtCsgEmfK2I1SDS_4core6marker11PhantomDataFG_KCRL0_"
		 "hEuEEB2_",
		 "a::gen::<core::marker::PhantomData<for<'a> extern \"C\" fn(&'a u8)>>"},
		{"_RINvCs6xxl1lAjzDf_1a3genINtNtCsgEmfK2I1SDS_4core6option6OptionFhEbEEB2_",
		 "a::gen::<core::option::Option<fn(u8) -> bool>>"},
		{"_RINvCs6xxl1lAjzDf_1a3genQDNtNtCsgEmfK2I1SDS_4core3fmt5DebugEL_EB2_",
		 "a::gen::<&mut dyn core::fmt::Debug>"},
		{"_RINvCs6xxl1lAjzDf_1a3genThReAaj2_nEEB2_", "a::gen::<(u8, &str, [i8; 2], i128)>"},
		{"_RINvCs6xxl1lAjzDf_1a3genuEB2_", "a::gen::<()>"},
		{"_RINvCs6xxl1lAjzDf_1a5applyNCNvB2_4main0EB2_",
		 "a::apply::<a::main::{closure#0}>"},
		{"_RINvMs_NtCs6xxl1lAjzDf_1a6shapesINtB5_2SqmE3getKj3_EB7_",
		 "<a::shapes::Sq<u32>>::get::<3>"},
		{"_RNvXNtCs6xxl1lAjzDf_1a6shapesINtB2_2SqmENtB2_4Area4area",
		 "<a::shapes::Sq<u32> as a::shapes::Area>::area"},
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
		{"_RNvCs1234_7mycrate3foo.llvm.123", "mycrate::foo"},
		{"_RNvCs1234_7mycrate3foo.cold", "mycrate::foo [clone .cold]"},
		{"_RINvC1a1fKj1f_Kb1_Kan5_E", "a::f::<31, true, -5>"},
		{"_RNvC1au9gre_jva7d", "a::punycode{gre_jva7d}"},
		{"_RINvC1a1fKc61_Kc27_Kca_Kc0_Kc2764_E",
		 "a::f::<'a', '\\'', '\\n', '\\0', '\\u{2764}'>"},
		{"_RINvC1a1fKo10000000000000000_E", "a::f::<0x10000000000000000>"},
		/* No characters, no sign of what has none, no digit. */
		{"_RINvC1a1fKc110000_E", NULL},
		{"_RINvC1a1fKcd800_E", NULL},
		{"_RINvC1a1fKcffffffffffffffff61_E", NULL},
		{"_RINvC1a1fKjn1_E", NULL},
		{"_RINvC1a1fKjF_E", NULL},
		/* A backward reference to itself, one without end, and a name that is cut. */
		{"_RNvB_3foo", NULL},
		{"_RINvC1a3fooTTTTTTTTB8_B8_EB7_B7_EB6_B6_EB5_B5_EB4_B4_EB3_B3_EB2_B2_EB1_B1_EE",
		 NULL},
		{"_RNvCs1234_7mycrate3fo", NULL},
		{"_RNvCs1234_7mycrate99999999999999999999foo", NULL},
		/* Older names; those of C++ are left as they are. */
		{"_ZN3std4sync4mpmc15Sender$LT$T$GT$4send17hc1fd25453578a941E",
		 "std::sync::mpmc::Sender<T>::send"},
		{"_ZN64_$LT$a..b..C$u20$as$u20$$RF$$u5b$u8$u5d$$u3b$$C$$BP$$LP$$RP$$GT$1f"
		 "17h0123456789abcdefE",
		 "<a::b::C as &[u8];,*()>::f"},
		{"_ZN1a10$u7f$$u1f$1f17h0123456789abcdefE", "a::$u7f$$u1f$::f"},
		{"_ZN1a1f17h0123456789abcdegE", "a::f::h0123456789abcdeg"},
		{"_ZN1a5_$x..1fEv", "a::_$x..::f()"},
		{"_R", NULL},
		{"_Rust", NULL},
	};
	char text[DEMANGLE_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *name = demangle(rows[i].symbol, text);

		if (!rows[i].name)
			assert_null(name);
		else
			assert_string_equal(name, rows[i].name);
	}
	/* Lists in lists in lists: each repeats the one before it twice. */
	assert_false(demangle_rust("_RINvC1a1fTTTTTTuuEB5_EB4_EB3_EB2_EB1_EE", text, 8));
}

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
		cmocka_unit_test(test_names_of_rust_are_demangled),
		cmocka_unit_test(test_demangler_refuses_what_unfolds_without_end),
		cmocka_unit_test(test_many_names_at_once_are_those_of_each),
		cmocka_unit_test(test_build_id_of_notes_in_memory_is_found_behind_others),
		cmocka_unit_test(test_build_id_of_the_running_kernel_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
