// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "capture/request_head_internal.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void test_requests_are_read(void **state)
{
	static const struct {
		const char *bytes, *method, *path;
		enum request_protocol protocol;
		bool cut;
	} samples[] = {
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET", "/", REQUEST_HTTP, false},
		{"POST /a/b HTTP/1.0\r\n\r\nbody", "POST", "/a/b", REQUEST_HTTP, false},
		{"OPTIONS * HTTP/1.1\r\n", "OPTIONS", "*", REQUEST_HTTP, false},
		/* a query may be a secret */
		{"GET /login?token=1 HTTP/1.1\r\n", "GET", "/login", REQUEST_HTTP, false},
		/* the bytes end within the path, or within its query */
		{"GET /long/path", "GET", "/long/path", REQUEST_HTTP, true},
		{"GET /long?token=", "GET", "/long", REQUEST_HTTP, false},
		{"GET /\033[31m\x80 HTTP/1.1\r\n", "GET", "/?[31m?", REQUEST_HTTP, false},
		{"*1\r\n$4\r\nPING\r\n", "PING", "", REQUEST_RESP, false},
		{"*3\r\n$3\r\nset\r\n$3\r\nkey\r\n", "SET", "", REQUEST_RESP, false},
		{"*2\r\n$9\r\nJSON.MGET\r\n", "JSON.MGET", "", REQUEST_RESP, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		struct request_head head;

		assert_true(request_head_read(&head, samples[i].bytes, strlen(samples[i].bytes)));
		assert_int_equal(head.protocol, samples[i].protocol);
		assert_string_equal(head.method, samples[i].method);
		assert_string_equal(head.path, samples[i].path);
		assert_int_equal(head.path_cut, samples[i].cut);
	}
}

static void test_other_bytes_are_no_request(void **state)
{
	static const char *const samples[] = {
		"",
		"GET",
		"GET ",
		"GET \r\n",
		"GET / \r\n\r\n",
		"GET /\r\n",
		"GET / SPDY/3 and more",
		"PUTS the text away",
		"HTTP/1.1 200 OK\r\n",
		"HEADLINE of a text\r\n",
		"*",
		"*1",
		"*1\r\n",
		"*0\r\n$4\r\nPING\r\n",
		"*-1\r\n",
		"*1\r\n:4\r\n",
		"*1\r\n$0\r\n\r\n",
		"*1\r\n$4\r\nPI",
		"*1\r\n$4\r\n12.5\r\n",
		"*1\r\n$3\r\nPING\r\n",
		"*99999999999999999999\r\n$4\r\nPING\r\n",
		"*1\r\n$40\r\nABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMN\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++) {
		struct request_head head;

		assert_false(request_head_read(&head, samples[i], strlen(samples[i])));
	}
}

static void test_a_long_path_is_cut(void **state)
{
	struct request_head head;
	char bytes[1000];

	(void)state;
	memset(bytes, 'a', sizeof(bytes));
	memcpy(bytes, "GET /", 5);
	memcpy(bytes + 900, " HTTP/1.1\r\n", 11);
	assert_true(request_head_read(&head, bytes, sizeof(bytes)));
	assert_int_equal(strlen(head.path), REQUEST_PATH_MAX - 1);
	assert_true(head.path_cut);
}

static void test_the_next_request_begins_where_the_first_one_ends(void **state)
{
	static const struct {
		const char *bytes;
		size_t next;
	} samples[] = {
		{"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n", 14},
		{"*2\r\n$3\r\nGET\r\n$0\r\n\r\n*1", 19},
		{"*2\r\n$3\r\nGET\r\n$4\r\n*1\r\n\r\n*", 23},
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET", 27},
		{"GET / HTTP/1.0\r\n\r\nGET", 18},
		/* It is the last one, or its end is not there. */
		{"*1\r\n$4\r\nPING\r\n", 0},
		{"*2\r\n$4\r\nPING\r\n", 0},
		{"*1\r\n$9\r\nPING\r\n*1\r\n", 0},
		{"*1\r\n$18446744073709551615\r\nPING\r\n*1\r\n", 0},
		{"*1000000\r\n$0\r\n\r\n$0\r\n\r\n", 0},
		{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", 0},
		{"GET / HTTP/1.1\r\nHost: a\r\nGET / HTTP/1.1\r\n", 0},
		/* A body follows. */
		{"POST / HTTP/1.1\r\ncontent-length: 9\r\n\r\nGET / HTT", 0},
		{"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nGET", 0},
		{"", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(samples); i++)
		assert_int_equal(request_head_next(samples[i].bytes, strlen(samples[i].bytes)),
				 samples[i].next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_are_read),
		cmocka_unit_test(test_other_bytes_are_no_request),
		cmocka_unit_test(test_a_long_path_is_cut),
		cmocka_unit_test(test_the_next_request_begins_where_the_first_one_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
