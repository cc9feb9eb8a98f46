/* SPDX-License-Identifier: Apache-2.0 */
/* A page of docs/ that a test prints from a table of the code, for `make docs`. Include it after
 * cmocka. */
#ifndef WAFFLE_TEST_DOCS_PAGE_H
#define WAFFLE_TEST_DOCS_PAGE_H

#include <stdio.h>
#include <stdlib.h>

/* The page is as `print` prints it. It is not there where the tests run elsewhere than in the
 * sources. */
static inline void assert_page(const char *path, void (*print)(FILE *out))
{
	char *want = NULL, *have;
	size_t len, got;
	FILE *out = open_memstream(&want, &len), *docs = fopen(path, "r");

	assert_non_null(out);
	print(out);
	fclose(out);
	if (!docs) {
		free(want);
		skip();
		return;
	}
	have = calloc(1, len + 2);
	assert_non_null(have);
	got = fread(have, 1, len + 1, docs);
	fclose(docs);
	if (got != len || memcmp(have, want, len))
		print_message("%s is old: make docs\n", path);
	assert_int_equal(got, len);
	assert_memory_equal(have, want, len);
	free(have);
	free(want);
}

#endif
