// SPDX-License-Identifier: Apache-2.0
/*
 * The table of the records' fields, against the structs of bpf/record.h.
 *
 * test_record_schema print: the table for people, which is docs/records.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "docs_page.h"
#include "store/predict_internal.h"
#include "store/record_schema.h"

/* A kind that can be in a file, and none that is only in a ring. */
static bool is_stored(unsigned kind)
{
	return kind && kind < WAFFLE_REC_KIND_COUNT;
}

static void test_every_kind_has_a_row(void **state)
{
	(void)state;
	for (unsigned kind = 0; kind < WAFFLE_REC_RING_COUNT; kind++) {
		const struct record_kind *row = &record_kinds[kind];

		assert_int_equal(row->name != NULL, kind > 0);
		assert_int_equal(row->fields != NULL, is_stored(kind));
		assert_int_equal(row->bytes % 8 | row->packed % 8, 0);
		assert_int_equal(row->packed + row->words * 8, row->bytes);
		assert_in_range(row->words, 0, PREDICT_WORDS_MAX);
	}
}

/* A field of a struct without a row would be neither exported nor documented. */
static void test_rows_of_a_kind_cover_its_struct_without_a_gap(void **state)
{
	(void)state;
	for (unsigned kind = 1; kind < WAFFLE_REC_KIND_COUNT; kind++) {
		const struct record_kind *row = &record_kinds[kind];
		size_t at = sizeof(struct waffle_rec);

		for (unsigned i = 0; i < row->field_count; i++) {
			const struct record_field *field = &row->fields[i];

			if (field->offset != at)
				fail_msg("%s.%s does not follow its predecessor", row->name,
					 field->name);
			at += field->bytes;
		}
		assert_int_equal(at, row->bytes);
	}
}

/* Reads them as the exporter does. */
static void test_fields_have_the_sizes_of_their_forms(void **state)
{
	(void)state;
	for (unsigned kind = 1; kind < WAFFLE_REC_KIND_COUNT; kind++) {
		for (unsigned i = 0; i < record_kinds[kind].field_count; i++) {
			const struct record_field *field = &record_kinds[kind].fields[i];

			if (field->form == RECORD_SIGNED || field->form == RECORD_PID ||
			    field->form == RECORD_SITE || field->form == RECORD_STACK ||
			    field->form == RECORD_OBJECT)
				assert_int_equal(field->bytes, 4);
			else if (field->form == RECORD_ID || field->form == RECORD_TIME ||
				 field->form == RECORD_INODE)
				assert_int_equal(field->bytes, 8);
			else if (field->form != RECORD_TEXT && field->exported)
				assert_true(field->bytes == 1 || field->bytes == 2 ||
					    field->bytes == 4 || field->bytes == 8);
		}
	}
}

/* ---- docs/records.md ---- */

static const char *const form_texts[RECORD_FORM_COUNT] = {
	[RECORD_NUMBER] = "number",   [RECORD_TIME] = "time, ns", [RECORD_DURATION] = "ns",
	[RECORD_BYTES] = "bytes",     [RECORD_FLAGS] = "flags",   [RECORD_SIGNED] = "signed",
	[RECORD_ADDRESS] = "address", [RECORD_ID] = "id",         [RECORD_TEXT] = "text",
	[RECORD_PID] = "number",      [RECORD_SITE] = "number",   [RECORD_STACK] = "number",
	[RECORD_OBJECT] = "number",   [RECORD_INODE] = "number",
};

/* The position of the field in the file: its word behind the packed form. */
static void print_place(FILE *out, const struct record_kind *row, const struct record_field *field)
{
	unsigned at = field->offset - row->packed;

	if (field->offset < row->packed)
		fputs("packed", out);
	else if (field->bytes % 8 == 0)
		fprintf(out, "%u", at / 8);
	else
		fprintf(out, "%u, bits %u to %u", at / 8, at % 8 * 8,
			(at % 8 + field->bytes) * 8 - 1);
}

static void print_kind(FILE *out, unsigned kind)
{
	const struct record_kind *row = &record_kinds[kind];

	fprintf(out, "\n## %u %s\n\n%s\n\n| field | word | what | meaning |\n|---|---|---|---|\n",
		kind, row->name, row->help);
	for (unsigned i = 0; i < row->field_count; i++) {
		const struct record_field *field = &row->fields[i];

		fprintf(out, field->exported ? "| `%s` | " : "| *%s* | ", field->name);
		print_place(out, row, field);
		fprintf(out, " | %s | %s |\n", form_texts[field->form], field->help);
	}
}

static void print_page(FILE *out)
{
	fputs("# Records\n\n"
	      "You want to know what a field of a record means: in the output of `waffle-bpf "
	      "export "
	      "--format records`, or in a\n`.waffle` file that you read yourself "
	      "([file-format.md](file-format.md)).\n\n"
	      "    $ waffle-bpf export run.waffle --format records -o - | head -1\n"
	      "    "
	      "{\"record\":1,\"kind\":\"task\",\"ts\":81230947,\"cpu\":0,\"tid\":4711,\"tgid\":"
	      "4711,"
	      "\"flags\":1,\"comm\":\"train\"}\n\n"
	      "Every record has these fields:\n\n"
	      "| field | meaning |\n|---|---|\n"
	      "| `record` | its number in the file, from 1 on; `why --evidence` has the same "
	      "numbers |\n"
	      "| `kind` | the name of its kind |\n"
	      "| `ts` | its time, in ns of CLOCK_MONOTONIC |\n"
	      "| `cpu` | its CPU |\n"
	      "| `tid` | its thread, in the initial pid namespace, as all numbers of threads and "
	      "processes |\n\n"
	      "The others depend on the kind. Those in *italics* are not exported. In the "
	      "export an address is a string such as\n\"0x7f01\", and an id is one of sixteen "
	      "hexadecimal digits. Numbers of sites, stacks and objects are those of the file's "
	      "tables.\n\n"
	      "The column *word* says where a reader of the file finds the field: in the kind's "
	      "packed form, or in which of the\n64-bit words behind it. 0 is the first word, and "
	      "bit 0 the lowest of a word.\n\n"
	      "This page is made from userspace/store/record_schema.c by `make docs`.\n",
	      out);
	for (unsigned kind = 1; kind < WAFFLE_REC_KIND_COUNT; kind++)
		print_kind(out, kind);
}

static void test_documented_fields_are_those_of_the_code(void **state)
{
	(void)state;
	assert_page("docs/records.md", print_page);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_kind_has_a_row),
		cmocka_unit_test(test_rows_of_a_kind_cover_its_struct_without_a_gap),
		cmocka_unit_test(test_fields_have_the_sizes_of_their_forms),
		cmocka_unit_test(test_documented_fields_are_those_of_the_code),
	};

	if (argc > 1 && !strcmp(argv[1], "print")) {
		print_page(stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
