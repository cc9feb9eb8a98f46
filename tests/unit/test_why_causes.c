// SPDX-License-Identifier: Apache-2.0
/*
 * The table of causes is that of the documentation and of the JSON schema.
 *
 * test_why_causes print: the table for docs/why.md.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/why.h"

#define DOCS "docs/why.md"
#define SCHEMA "docs/why.schema.json"

static void print_table(FILE *out)
{
	fputs("| Cause | What the time was spent on | Culprit |\n|---|---|---|\n", out);
	for (unsigned i = 0; i < WHY_CAUSE_COUNT; i++) {
		const struct why_cause_row *row = &why_causes[i];

		fprintf(out, "| `%s` | %s | %s%s|\n", row->name, row->spent, row->culprit,
			*row->culprit ? " " : "");
	}
}

/* As in the schema, but with one blank in place of each run of white space. */
static void print_enum(FILE *out)
{
	fputs("\"cause\": { \"enum\": [", out);
	for (unsigned i = 0; i < WHY_CAUSE_COUNT; i++)
		fprintf(out, "%s\"%s\"", i ? ", " : "", why_causes[i].name);
	fputs("] }", out);
}

/* The text of a file; NULL where the tests run elsewhere than in the sources. */
static char *text_of(const char *path)
{
	size_t size = 1 << 20;
	FILE *file = fopen(path, "r");
	char *text;

	if (!file)
		return NULL;
	text = calloc(1, size);
	assert_non_null(text);
	assert_in_range(fread(text, 1, size - 1, file), 1, size - 2);
	fclose(file);
	return text;
}

static void merge_white_space(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++)
		if (!isspace((unsigned char)*from))
			*to++ = *from;
		else if (to == text || to[-1] != ' ')
			*to++ = ' ';
	*to = '\0';
}

static void check_contains(char *have, const char *path, void (*print)(FILE *out))
{
	char *want = NULL;
	size_t len;
	FILE *out = open_memstream(&want, &len);
	bool contained;

	assert_non_null(out);
	print(out);
	fclose(out);
	contained = strstr(have, want);
	if (!contained)
		print_message("%s needs this:\n%s\n", path, want);
	free(want);
	free(have);
	assert_true(contained);
}

static void test_documented_causes_are_those_of_the_code(void **state)
{
	char *have = text_of(DOCS);

	(void)state;
	if (!have)
		skip();
	else
		check_contains(have, DOCS, print_table);
}

static void test_schema_lists_the_causes_of_the_code(void **state)
{
	char *have = text_of(SCHEMA);

	(void)state;
	if (!have) {
		skip();
		return;
	}
	merge_white_space(have);
	check_contains(have, SCHEMA, print_enum);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documented_causes_are_those_of_the_code),
		cmocka_unit_test(test_schema_lists_the_causes_of_the_code),
	};

	if (argc > 1 && !strcmp(argv[1], "print")) {
		print_table(stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
