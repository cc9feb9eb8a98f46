// SPDX-License-Identifier: Apache-2.0
/* Requests of clients that send many at once. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "capture/arming/arming_internal.h"
#include "capture/requests_internal.h"
#include "fake_sites.h"

static int deliver(struct waffle_rec *rec, void *arg)
{
	unsigned *hits = arg;

	*hits += rec->kind == WAFFLE_REC_HIT;
	return 0;
}

static const char command[] = "*1\r\n$1\r\nA\r\n";
#define COMMAND (sizeof(command) - 1)
#define COMMANDS (WAFFLE_SOCKET_BATCH_BYTES / COMMAND)

/* A connection receives as many commands as the kernel's programs read at once. */
static int received(struct requests *requests, uint64_t cookie)
{
	static struct {
		struct waffle_rec_socket socket;
		char bytes[WAFFLE_SOCKET_BATCH_BYTES];
	} rec;

	rec.socket = (struct waffle_rec_socket){
		.rec = {.ts = 1000 + cookie, .tid = 7, .kind = WAFFLE_REC_SOCKET},
		.cookie = cookie,
		.tgid = 7,
		.event = WAFFLE_SOCKET_RECEIVED,
		.flags = WAFFLE_SOCKET_SERVER,
		.frame_bytes = COMMANDS * COMMAND,
	};
	for (size_t i = 0; i < COMMANDS; i++)
		memcpy(rec.bytes + i * COMMAND, command, COMMAND);
	return requests_pass(requests, &rec.socket);
}

/* The second and further requests of a packet are pending in the tracer's memory, up to a limit for
 * all clients together. requests_pass() returns -EINVAL if it drops any beyond that limit. Once the
 * pending ones are written, there is room again. */
static void test_requests_that_come_together_take_limited_memory(void **state)
{
	enum { CONNECTIONS = 2000, ROOM = 1 << 18 };
	static const struct session_options options;
	struct arming arming = {.options = &options};
	struct error err = ERROR_INIT;
	struct requests *requests;
	unsigned hits = 0, rejected = 0;
	const struct requests_options how = {.arming = &arming, .deliver = deliver, .arg = &hits};

	(void)state;
	assert_int_equal(requests_open(&requests, &how, &err), 0);
	assert_int_equal(received(requests, 1), 0);
	assert_int_equal(requests_finish(requests), 0);
	assert_int_equal(hits, COMMANDS);
	hits = 0;
	for (uint64_t i = 0; i < CONNECTIONS; i++)
		rejected += received(requests, 2 + i) == -EINVAL;
	assert_int_equal(rejected, CONNECTIONS - ROOM / (COMMANDS - 1));
	assert_int_equal(requests_finish(requests), 0);
	assert_int_equal(hits, CONNECTIONS + ROOM);
	assert_int_equal(received(requests, 1), 0);
	requests_close(requests);
	vec_free(&arming.sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_requests_that_come_together_take_limited_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
