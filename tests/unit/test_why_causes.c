// SPDX-License-Identifier: Apache-2.0
/* The table of causes in the documentation is that of the code. With "print", this program prints
 * it: `make docs` replaces the one in docs/why.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/why/why.h"

#define DOCS "docs/why.md"

static void print_table(FILE *out)
{
	fputs("| Cause | What the time was spent on | Culprit | Source besides `sched` |\n"
	      "|---|---|---|---|\n",
	      out);
	for (unsigned i = 0; i < WHY_CAUSE_COUNT; i++) {
		const struct why_cause_row *row = &why_causes[i];

		const char *tick = *row->source ? "`" : "";

		fprintf(out, "| `%s` | %s | %s%s| %s%s%s%s|\n", row->name, row->spent, row->culprit,
			*row->culprit ? " " : "", tick, row->source, tick, *row->source ? " " : "");
	}
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

static void test_documented_causes_are_those_of_the_code(void **state)
{
	char *have = text_of(DOCS), *want = NULL;
	size_t len;
	FILE *out;

	(void)state;
	if (!have) {
		skip();
		return;
	}
	out = open_memstream(&want, &len);
	assert_non_null(out);
	print_table(out);
	fclose(out);
	if (!strstr(have, want))
		fail_msg("%s is old: make docs", DOCS);
	free(want);
	free(have);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_documented_causes_are_those_of_the_code),
	};

	if (argc > 1 && !strcmp(argv[1], "print")) {
		print_table(stdout);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
