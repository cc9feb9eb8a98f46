// SPDX-License-Identifier: Apache-2.0
/* Parts of the HTTP exporter: the ABI of libcurl, headers that stay secret, answers of servers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/process/curl_internal.h"
#include "export/process/http_headers_internal.h"
#include "export/process/http_sender.h"

#if __has_include(<curl/curl.h>)
#undef CURL_HTTP
#include <curl/curl.h>
#define CHECK(name, number) _Static_assert(CURLOPT_##name == (number), "as in curl/curl.h");
_Pragma("GCC diagnostic ignored \"-Wdeprecated-declarations\"")
	CURL_OPTIONS(CHECK) _Static_assert(CURLINFO_RESPONSE_CODE == CURL_INFO_RESPONSE_CODE,
					   "as in curl/curl.h");
_Static_assert(CURLINFO_RETRY_AFTER == CURL_INFO_RETRY_AFTER, "as in curl/curl.h");
_Static_assert(CURLE_UNSUPPORTED_PROTOCOL == CURL_UNSUPPORTED_PROTOCOL, "as in curl/curl.h");
_Static_assert(CURLE_URL_MALFORMAT == CURL_URL_MALFORMAT, "as in curl/curl.h");
#endif

static void test_headers_of_the_variable_are_decoded(void **state)
{
	struct http_headers headers = {0};
	struct error err = ERROR_INIT;

	(void)state;
	assert_int_equal(http_headers_variable(&headers, "a=b, X-Key = one%20two%2C ,,c=d=e", &err),
			 0);
	assert_int_equal(headers.lines.len, 3);
	assert_string_equal(headers.lines.data[0], "a: b");
	assert_string_equal(headers.lines.data[1], "X-Key: one two,");
	assert_string_equal(headers.lines.data[2], "c: d=e");
	http_headers_free(&headers);
}

static void rejects(const char *text)
{
	struct http_headers headers = {0};
	struct error err = ERROR_INIT;

	assert_int_equal(http_headers_variable(&headers, text, &err), -EINVAL);
	assert_null(strstr(err.message, "secret"));
	http_headers_free(&headers);
}

static void test_headers_cannot_add_lines_to_a_request(void **state)
{
	(void)state;
	rejects("a=secret%0d%0aX: y");
	rejects("a b=secret");
	rejects("secret");
	rejects("=secret");
	rejects("a:b=secret");
}

static void test_values_of_headers_are_redacted(void **state)
{
	struct http_headers headers = {0};
	char answer[] = "no secret1 and no \0secret2, secret1!";

	(void)state;
	assert_int_equal(http_headers_variable(&headers, "a=secret1,b=secret2,c=x", NULL), 0);
	http_headers_redact(&headers, answer, sizeof(answer) - 1);
	assert_memory_equal(answer, "no ******* and no \0*******, *******!", sizeof(answer));
	http_headers_free(&headers);
}

static void test_partial_success_is_read_in_both_encodings(void **state)
{
	static const char json[] =
		"{ \"partialSuccess\" : {\"rejectedDataPoints\" : 12, \"errorMessage\": \"no\"} }";
	struct http_partial partial;

	(void)state;
	partial = http_partial_read("\x0a\x0b\x08\x83\x01\x12\x06too ol", 13, false);
	assert_int_equal(partial.rejected, 131);
	assert_string_equal(partial.why, "too ol");
	partial = http_partial_read(json, sizeof(json) - 1, true);
	assert_int_equal(partial.rejected, 12);
	assert_string_equal(partial.why, "no");
	/* Cut off, unknown fields, nothing. */
	assert_int_equal(http_partial_read("\x0a\x0b\x08", 3, false).rejected, 0);
	assert_int_equal(http_partial_read("\x10\x05\x0a\x02\x08\x07", 6, false).rejected, 7);
	assert_int_equal(http_partial_read("", 0, true).rejected, 0);
	assert_int_equal(http_partial_read("\"rejectedSpans\"", 15, true).rejected, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers_of_the_variable_are_decoded),
		cmocka_unit_test(test_headers_cannot_add_lines_to_a_request),
		cmocka_unit_test(test_values_of_headers_are_redacted),
		cmocka_unit_test(test_partial_success_is_read_in_both_encodings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
