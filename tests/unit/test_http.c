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
#include "export/process/grpc_internal.h"
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
_Static_assert(CURLE_WRITE_ERROR == CURL_WRITE_ERROR, "as in curl/curl.h");
_Static_assert(CURLE_OUT_OF_MEMORY == CURL_OUT_OF_MEMORY, "as in curl/curl.h");
_Static_assert(CURL_HTTP_VERSION_2TLS == CURL_HTTP_2_TLS, "as in curl/curl.h");
_Static_assert(CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE == CURL_HTTP_2_PRIOR_KNOWLEDGE,
	       "as in curl/curl.h");
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

static void header(struct grpc_result *result, const char *line)
{
	grpc_header_take(result, line, strlen(line));
}

static void test_result_of_grpc_is_read_from_headers(void **state)
{
	struct grpc_result result = {0};
	struct sender_reply reply = {0};

	(void)state;
	header(&result, "HTTP/2 200\r\n");
	header(&result, "grpc-status-of-others: 3\r\n");
	/* These are no success. */
	header(&result, "grpc-status:\r\n");
	header(&result, "grpc-status: fine\r\n");
	assert_false(result.known);
	assert_int_equal(grpc_failed(&result, &reply), SENDER_REFUSED);
	header(&result, "Grpc-Status: 14\r\n");
	header(&result, "grpc-message: a%20b%\r\n");
	assert_true(result.known && !result.may_retry);
	assert_int_equal(grpc_failed(&result, &reply), SENDER_AGAIN);
	assert_string_equal(reply.why, "gRPC status 14 (UNAVAILABLE): a b%");
	header(&result, "grpc-status: 4294967296\r\n");
	assert_true(result.known && result.status);
}

/* A Status with a RetryInfo of 3 s and 7 ns (google/rpc/error_details.proto). */
static void test_retry_info_of_grpc_is_read(void **state)
{
	struct sender_reply reply = {0};
	struct grpc_result result = {.known = true, .status = 8};

	(void)state;
	assert_int_equal(grpc_failed(&result, &reply), SENDER_REFUSED);
	header(&result, "grpc-status-details-bin: CAgaMgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjL"
			"lJldHJ5SW5mbxIGCgQIAxAH\r\n");
	assert_true(result.may_retry);
	assert_int_equal(result.after_ns, 3000000007);
	assert_int_equal(grpc_failed(&result, &reply), SENDER_AGAIN);
	assert_int_equal(reply.after_ns, 3000000007);
	/* Cut off, no base64, of another type, empty. */
	result = (struct grpc_result){0};
	header(&result, "grpc-status-details-bin: CAgaMgoodHlwZS5nb29nbGVhcGlz");
	header(&result, "grpc-status-details-bin: \xff\xff");
	header(&result, "grpc-status-details-bin: GgMKAXg");
	header(&result, "grpc-status-details-bin:");
	assert_false(result.may_retry);
}

static void test_frames_of_grpc_are_whole(void **state)
{
	struct out_bytes out = {0};
	size_t len;

	(void)state;
	grpc_request(&out, "abc", 3);
	assert_int_equal(out.len, 8);
	assert_memory_equal(out.data, "\0\0\0\0\3abc", 8);
	assert_ptr_equal(grpc_answer(out.data, 8, &len), out.data + 5);
	assert_int_equal(len, 3);
	assert_null(grpc_answer(out.data, 7, &len));
	assert_null(grpc_answer(out.data, 4, &len));
	out.data[0] = 1; /* compressed, which we did not ask for */
	assert_null(grpc_answer(out.data, 8, &len));
	bytes_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_headers_of_the_variable_are_decoded),
		cmocka_unit_test(test_headers_cannot_add_lines_to_a_request),
		cmocka_unit_test(test_values_of_headers_are_redacted),
		cmocka_unit_test(test_partial_success_is_read_in_both_encodings),
		cmocka_unit_test(test_result_of_grpc_is_read_from_headers),
		cmocka_unit_test(test_retry_info_of_grpc_is_read),
		cmocka_unit_test(test_frames_of_grpc_are_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
