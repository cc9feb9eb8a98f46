// SPDX-License-Identifier: Apache-2.0
/* The queue, the back-off and the spool of a sender, with a clock of the test's own. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "export/process/sender_internal.h"
#include "util/clock.h"

#define SECOND 1000000000ull

/* What the next deliveries answer, and what was delivered. */
struct server {
	const char *answers; /* a letter each: d done, a again, r refused; the last one for ever */
	uint64_t after_ns, refused;
	char taken[256]; /* the first byte of each parcel */
	char said[1024];
};

static enum sender_outcome deliver(void *arg, unsigned thread, const struct parcel *parcel,
				   struct sender_reply *reply)
{
	struct server *server = arg;
	char answer = *server->answers;

	(void)thread;
	if (server->answers[1])
		server->answers++;
	server->taken[strlen(server->taken)] = parcel->data[0];
	reply->after_ns = server->after_ns;
	reply->refused = server->refused;
	snprintf(reply->why, sizeof(reply->why), "it says %c", answer);
	return answer == 'd' ? SENDER_DONE : answer == 'a' ? SENDER_AGAIN : SENDER_REFUSED;
}

static void server_free(void *arg)
{
	(void)arg;
}

static const struct sender_type server_type = {.deliver = deliver, .free = server_free};

static void said(const char *line, void *arg)
{
	struct server *server = arg;

	strncat(server->said, line, sizeof(server->said) - strlen(server->said) - 2);
	strcat(server->said, "\n");
}

static struct sender *sender_of(struct server *server, struct spool *spool, size_t queue_bytes)
{
	static struct chain_host host;
	struct sender_options options = {.name = "test",
					 .host = &host,
					 .queue_bytes = queue_bytes,
					 .give_up_ns = 100 * SECOND,
					 .spool = spool};
	struct sender *sender;

	host = (struct chain_host){.origin = "test", .say = said, .arg = server};
	sender = sender_new(&options, &server_type, server);
	assert_non_null(sender);
	return sender;
}

static bool push(struct sender *sender, char c)
{
	return sender_push(sender, parcel_new(0, 10, &c, 1), 10);
}

static void test_parcels_are_delivered_in_order(void **state)
{
	struct server server = {.answers = "d"};
	struct sender *sender = sender_of(&server, NULL, 1000);
	struct sender_counts counts;

	(void)state;
	push(sender, 'a');
	push(sender, 'b');
	assert_int_equal(sender_step(sender, 1), 0);
	assert_int_equal(sender_step(sender, 2), 0);
	assert_int_equal(sender_step(sender, 3), UINT64_MAX);
	assert_string_equal(server.taken, "ab");
	counts = sender_close(sender, 0);
	assert_int_equal(counts.sent, 20);
	assert_int_equal(counts.dropped, 0);
	assert_string_equal(server.said, "");
}

static void test_a_full_queue_drops_what_is_new_and_counts_it(void **state)
{
	struct server server = {.answers = "d"};
	struct sender *sender = sender_of(&server, NULL, 3 * (sizeof(struct parcel) + 1));
	struct sender_counts counts;

	(void)state;
	for (int c = 'a'; c <= 'e'; c++)
		assert_int_equal(push(sender, (char)c), c <= 'c');
	assert_false(sender_push(sender, NULL, 5)); /* out of memory */
	while (sender_step(sender, 1) != UINT64_MAX)
		;
	assert_string_equal(server.taken, "abc");
	counts = sender_close(sender, 0);
	assert_int_equal(counts.sent, 30);
	assert_int_equal(counts.dropped, 25);
	assert_string_equal(server.said, "test: its queue is full; records are dropped\n"
					 "test: 25 records were dropped\n");
}

static void test_failures_are_tried_again_after_growing_times(void **state)
{
	struct server server = {.answers = "aaaaaaaaad"};
	struct sender *sender = sender_of(&server, NULL, 1000);
	uint64_t now = clock_monotonic_ns(), next, least = SECOND / 2;
	struct sender_counts counts;

	(void)state;
	push(sender, 'a');
	for (int i = 0; i < 9; i++) {
		next = sender_step(sender, now);
		assert_true(next >= now + least && next <= now + 2 * least + SECOND / 10);
		/* Too early: nothing is delivered. */
		assert_int_equal(sender_step(sender, next - 1), next);
		assert_int_equal(strlen(server.taken), i + 1);
		/* The parcel must not get too old. */
		if (least < 30 * SECOND)
			least *= 2;
		if (least > 30 * SECOND)
			least = 30 * SECOND;
		if (next - now > 20 * SECOND)
			break;
		now = next;
	}
	server.answers = "d";
	assert_int_equal(sender_step(sender, next), 0);
	counts = sender_close(sender, 0);
	assert_int_equal(counts.sent, 10);
	assert_true(counts.retries >= 5);
	assert_string_equal(server.said, "test: it says a; it is tried again\n");
}

static void test_parcels_that_fail_too_long_are_dropped(void **state)
{
	struct server server = {.answers = "a"};
	struct sender *sender = sender_of(&server, NULL, 1000);
	struct sender_counts counts;
	uint64_t now = clock_monotonic_ns();

	(void)state;
	push(sender, 'a');
	push(sender, 'b');
	sender_step(sender, now);
	sender_step(sender, now + 101 * SECOND);
	server.answers = "d";
	sender_step(sender, now + 300 * SECOND);
	assert_string_equal(server.taken, "aab");
	counts = sender_close(sender, 0);
	assert_int_equal(counts.dropped, 10);
	assert_int_equal(counts.sent, 10);
}

static void test_a_server_that_says_when_is_not_asked_before(void **state)
{
	struct server server = {.answers = "ad", .after_ns = 7 * SECOND};
	uint64_t next;
	struct sender *sender = sender_of(&server, NULL, 1000);
	struct sender_counts counts;

	(void)state;
	push(sender, 'a');
	next = sender_step(sender, 5);
	assert_in_range(next, 5 + 7 * SECOND, 5 + 8 * SECOND);
	assert_int_equal(sender_step(sender, next - 1), next);
	assert_string_equal(server.taken, "a");
	assert_int_equal(sender_step(sender, next), 0);
	counts = sender_close(sender, 0);
	assert_int_equal(counts.sent, 10);
}

static void test_refusals_are_not_tried_again(void **state)
{
	struct server server = {.answers = "rd"};
	struct sender *sender = sender_of(&server, NULL, 1000);
	struct sender_counts counts;

	(void)state;
	push(sender, 'a');
	push(sender, 'b');
	sender_step(sender, 1);
	server.refused = 4;
	sender_step(sender, 1);
	assert_string_equal(server.taken, "ab");
	counts = sender_close(sender, 0);
	assert_int_equal(counts.refused, 14);
	assert_int_equal(counts.sent, 6);
	assert_int_equal(counts.dropped, 0);
	assert_string_equal(server.said, "test: 10 records were not accepted: it says r\n"
					 "test: 14 records were not accepted in all: it says r\n");
}

static void test_the_thread_delivers_and_the_end_tries_each_once(void **state)
{
	struct server server = {.answers = "dda"};
	struct sender *sender = sender_of(&server, NULL, 1000);
	struct sender_counts counts;

	(void)state;
	for (int c = 'a'; c <= 'f'; c++)
		push(sender, (char)c);
	assert_int_equal(sender_start(sender, NULL), 0);
	counts = sender_close(sender, clock_monotonic_ns() + 60 * SECOND);
	assert_int_equal(counts.sent, 20);
	assert_int_equal(counts.dropped, 40);
	assert_true(!strncmp(server.taken, "abc", 3));
}

/* ---- several threads ---- */

/* A server with several requests under way. The first bytes of parcels say what it answers: d and a
 * as above, and "w" waits for `go` before it answers d. */
struct wide_server {
	struct server server; /* the sender's messages */
	atomic_uint inside, most, go, taken;
	atomic_uint wait_for; /* each request waits until so many are under way at once */
	unsigned stops_at;    /* later requests than this wait for `go`; 0: none */
	uint64_t after_ns;
	struct sender *sender;
};

static void wait_for(const atomic_uint *value, unsigned least)
{
	while (atomic_load(value) < least)
		sched_yield();
}

static enum sender_outcome deliver_wide(void *arg, unsigned thread, const struct parcel *parcel,
					struct sender_reply *reply)
{
	struct wide_server *server = arg;
	unsigned inside = atomic_fetch_add(&server->inside, 1) + 1, most = server->most;
	unsigned number;

	assert_true(thread < 4);
	while (inside > most && !atomic_compare_exchange_weak(&server->most, &most, inside))
		;
	number = atomic_fetch_add(&server->taken, 1) + 1;
	wait_for(&server->most, atomic_load(&server->wait_for));
	if (parcel->data[0] == 'w' || (server->stops_at && number > server->stops_at))
		wait_for(&server->go, 1);
	atomic_fetch_sub(&server->inside, 1);
	reply->after_ns = server->after_ns;
	return parcel->data[0] == 'a' ? SENDER_AGAIN : SENDER_DONE;
}

static const struct sender_type wide_type = {.deliver = deliver_wide, .free = server_free};

static void wide_start(struct wide_server *server, unsigned parallel)
{
	static struct chain_host host;
	struct sender_options options = {.name = "test",
					 .host = &host,
					 .queue_bytes = 1000,
					 .give_up_ns = 100 * SECOND,
					 .parallel = parallel};

	host = (struct chain_host){.origin = "test", .say = said, .arg = &server->server};
	server->sender = sender_new(&options, &wide_type, server);
	assert_non_null(server->sender);
	assert_int_equal(sender_start(server->sender, NULL), 0);
}

static uint64_t retries_wait(struct sender *sender, uint64_t least)
{
	while (sender_counts(sender).retries < least)
		sched_yield();
	return sender_counts(sender).retries;
}

static void test_parcels_are_delivered_at_the_same_time(void **state)
{
	struct wide_server server = {.wait_for = 4};
	struct sender_counts counts;

	(void)state;
	wide_start(&server, 4);
	for (int i = 0; i < 9; i++)
		assert_true(push(server.sender, 'd'));
	counts = sender_close(server.sender, clock_monotonic_ns() + 60 * SECOND);
	assert_int_equal(counts.sent, 90);
	assert_int_equal(counts.dropped, 0);
	assert_int_equal(server.most, 4);
}

static void test_a_success_that_began_before_a_failure_ends_no_back_off(void **state)
{
	struct wide_server server = {.wait_for = 2, .after_ns = 3600 * SECOND};
	struct sender_counts counts;

	(void)state;
	wide_start(&server, 2);
	push(server.sender, 'w');
	push(server.sender, 'a');
	retries_wait(server.sender, 1);
	atomic_store(&server.go, 1);
	while (sender_counts(server.sender).sent < 10)
		sched_yield();
	push(server.sender, 'd');
	/* The server has asked for an hour. */
	counts = sender_close(server.sender, clock_monotonic_ns() + 60 * SECOND);
	assert_int_equal(server.taken, 2);
	assert_int_equal(counts.sent, 10);
	assert_int_equal(counts.dropped, 20);
	assert_int_equal(counts.retries, 1);
}

static void test_failures_at_the_same_time_are_one(void **state)
{
	struct wide_server server = {.wait_for = 4, .after_ns = SECOND, .stops_at = 4};
	struct sender_counts counts;
	uint64_t next;

	(void)state;
	wide_start(&server, 4);
	for (int i = 0; i < 4; i++)
		push(server.sender, 'a');
	retries_wait(server.sender, 4);
	/* The fourth failure in a row would wait for four seconds at least. This step delivers
	 * nothing, since it is too early. */
	next = sender_step(server.sender, 1);
	assert_true(next <= clock_monotonic_ns() + SECOND);
	atomic_store(&server.go, 1);
	counts = sender_close(server.sender, clock_monotonic_ns() + 60 * SECOND);
	assert_int_equal(counts.dropped, 40);
}

static void test_after_a_failure_one_thread_goes_on(void **state)
{
	struct wide_server server = {.wait_for = 2};
	struct sender_counts counts;

	(void)state;
	wide_start(&server, 2);
	push(server.sender, 'a');
	push(server.sender, 'a');
	retries_wait(server.sender, 2);
	atomic_store(&server.most, 0);
	atomic_store(&server.wait_for, 0);
	retries_wait(server.sender, 3);
	counts = sender_close(server.sender, clock_monotonic_ns());
	assert_int_equal(server.most, 1);
	assert_int_equal(counts.dropped, 20);
}

static void test_end_settles_what_comes_back_from_several_threads(void **state)
{
	struct wide_server server = {.wait_for = 4};
	struct sender_counts counts;

	(void)state;
	wide_start(&server, 4);
	for (int i = 0; i < 4; i++)
		push(server.sender, i == 2 ? 'a' : 'w');
	retries_wait(server.sender, 1);
	atomic_store(&server.go, 1);
	counts = sender_close(server.sender, clock_monotonic_ns() + 60 * SECOND);
	assert_int_equal(counts.sent, 30);
	assert_int_equal(counts.dropped, 10);
}

static void test_end_waits_for_no_hanging_thread_and_says_drops(void **state)
{
	static struct wide_server server; /* the thread uses it until the program ends */
	struct sender_counts counts;

	(void)state;
	server.wait_for = 2;
	wide_start(&server, 2);
	push(server.sender, 'w');
	push(server.sender, 'd');
	wait_for(&server.most, 2);
	counts = sender_close(server.sender, clock_monotonic_ns());
	assert_int_equal(counts.sent + counts.dropped, 20);
	assert_true(counts.dropped >= 10);
	assert_non_null(strstr(server.server.said, "0 records were dropped"));
	atomic_store(&server.go, 1);
}

/* ---- the spool ---- */

struct folder {
	char path[64];
};

static struct folder folder_make(void)
{
	struct folder folder = {"/tmp/waffle-test-spool-XXXXXX"};

	assert_non_null(mkdtemp(folder.path));
	return folder;
}

static void folder_remove(const struct folder *folder)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", folder->path);
	assert_int_equal(system(command), 0);
}

static struct spool *spool_of(const struct folder *folder, uint64_t limit)
{
	struct error err = ERROR_INIT;
	struct spool *spool;

	assert_int_equal(spool_open(&spool, folder->path, limit, &err), 0);
	return spool;
}

static void test_a_spool_keeps_order_and_outlives_its_process(void **state)
{
	struct folder folder = folder_make();
	struct server server = {.answers = "a"};
	struct sender *sender = sender_of(&server, spool_of(&folder, 1000), 1000);
	struct sender_counts counts;
	uint64_t now = clock_monotonic_ns();

	(void)state;
	push(sender, 'a');
	push(sender, 'b');
	sender_step(sender, now);
	push(sender, 'c');
	sender_step(sender, now);
	counts = sender_close(sender, 0);
	assert_int_equal(counts.spooled, 30);
	assert_int_equal(counts.dropped, 0);

	server = (struct server){.answers = "d"};
	sender = sender_of(&server, spool_of(&folder, 1000), 1000);
	push(sender, 'd');
	for (int i = 0; i < 4; i++)
		assert_int_equal(sender_step(sender, now), 0);
	assert_true(sender_step(sender, now) > now);
	/* What is new comes first, then all that is old in its order. */
	assert_string_equal(server.taken, "dabc");
	counts = sender_close(sender, 0);
	assert_int_equal(counts.spooled, 0);
	folder_remove(&folder);
}

static void test_a_full_spool_drops_the_oldest(void **state)
{
	struct folder folder = folder_make();
	struct spool *spool = spool_of(&folder, 3);
	uint64_t dropped = 0;
	struct parcel *parcel;

	(void)state;
	for (int c = 'a'; c <= 'e'; c++) {
		parcel = parcel_new(3, 10, &(char){(char)c}, 1);
		assert_int_equal(spool_put(spool, parcel, &dropped), 0);
		free(parcel);
	}
	assert_int_equal(dropped, 20);
	for (int c = 'c'; c <= 'e'; c++) {
		parcel = spool_first(spool);
		assert_non_null(parcel);
		assert_int_equal(parcel->data[0], c);
		assert_int_equal(parcel->kind, 3);
		assert_int_equal(parcel->records, 10);
		free(parcel);
		spool_remove(spool);
	}
	assert_null(spool_first(spool));
	parcel = parcel_new(0, 1, "long", 4);
	assert_int_equal(spool_put(spool, parcel, &dropped), -ENOSPC);
	free(parcel);
	spool_close(spool);
	folder_remove(&folder);
}

static void test_only_one_process_delivers_a_spool(void **state)
{
	struct folder folder = folder_make();
	struct spool *first = spool_of(&folder, 100), *second = spool_of(&folder, 100);
	struct parcel *parcel = parcel_new(0, 1, "x", 1);
	uint64_t dropped = 0;

	(void)state;
	assert_null(spool_first(first)); /* takes the lock */
	assert_int_equal(spool_put(second, parcel, &dropped), 0);
	free(parcel);
	assert_null(spool_first(second));
	parcel = spool_first(first);
	assert_non_null(parcel);
	free(parcel);
	spool_close(first);
	parcel = spool_first(second);
	assert_non_null(parcel);
	free(parcel);
	spool_close(second);
	folder_remove(&folder);
}

static void test_strange_files_in_a_spool_are_left_alone(void **state)
{
	struct folder folder = folder_make();
	struct spool *spool;
	char name[128];
	FILE *file;

	(void)state;
	snprintf(name, sizeof(name), "%s/0000000000000001-00000001-00000000-1-1.parcel",
		 folder.path);
	assert_int_equal(symlink("/etc/passwd", name), 0);
	snprintf(name, sizeof(name), "%s/notes.txt", folder.path);
	file = fopen(name, "w");
	assert_non_null(file);
	fclose(file);
	spool = spool_of(&folder, 100);
	assert_null(spool_first(spool));
	spool_close(spool);
	assert_int_equal(access(name, F_OK), 0);
	folder_remove(&folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parcels_are_delivered_in_order),
		cmocka_unit_test(test_a_full_queue_drops_what_is_new_and_counts_it),
		cmocka_unit_test(test_failures_are_tried_again_after_growing_times),
		cmocka_unit_test(test_parcels_that_fail_too_long_are_dropped),
		cmocka_unit_test(test_a_server_that_says_when_is_not_asked_before),
		cmocka_unit_test(test_refusals_are_not_tried_again),
		cmocka_unit_test(test_the_thread_delivers_and_the_end_tries_each_once),
		cmocka_unit_test(test_parcels_are_delivered_at_the_same_time),
		cmocka_unit_test(test_a_success_that_began_before_a_failure_ends_no_back_off),
		cmocka_unit_test(test_failures_at_the_same_time_are_one),
		cmocka_unit_test(test_after_a_failure_one_thread_goes_on),
		cmocka_unit_test(test_end_settles_what_comes_back_from_several_threads),
		cmocka_unit_test(test_end_waits_for_no_hanging_thread_and_says_drops),
		cmocka_unit_test(test_a_spool_keeps_order_and_outlives_its_process),
		cmocka_unit_test(test_a_full_spool_drops_the_oldest),
		cmocka_unit_test(test_only_one_process_delivers_a_spool),
		cmocka_unit_test(test_strange_files_in_a_spool_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
