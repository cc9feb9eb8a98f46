// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "util/secret.h"

static void test_secrets_are_masked_and_all_else_stays(void **state)
{
	static const struct {
		const char *text, *masked;
	} rows[] = {
		{"export(otlp=http://user:pass@host:4318)",
		 "export(otlp=http://*********@host:4318)"},
		{"export(otlp=http://u:p@s/w@host)", "export(otlp=http://*******@host)"},
		{"export(otlp=http://host/a?token=t,ca=f)",
		 "export(otlp=http://host/a?*******,ca=f)"},
		{"export(headers=Authorization: Basic abc=)",
		 "export(headers=Authorization:***********)"},
		{"export(headers=\"X-Other: abc\",ca=f)", "export(headers=\"X-Other:****\",ca=f)"},
		{"export(headers=folder/file)", "export(headers=folder/file)"},
		{"Bearer abc.def and Basic YWJj", "Bearer ******* and Basic ****"},
		{"x(X-API-KEY=abc,other=def)", "x(X-API-KEY=***,other=def)"},
		{"authorization: a b", "authorization:****"},
		{"password='it is'", "password='*****'"},
		{"filter(kv.token == \"abc\")", "filter(kv.token == \"abc\")"},
		{"metrics(by=kv.key,file=a)", "metrics(by=kv.key,file=a)"},
		{"http://host:4318/v1", "http://host:4318/v1"},
		{"://", "://"},
		{"=", "="},
		{"key=", "key="},
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char *masked = secret_masked(rows[i].text);

		assert_string_equal(masked, rows[i].masked);
		free(masked);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secrets_are_masked_and_all_else_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
