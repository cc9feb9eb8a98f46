// SPDX-License-Identifier: Apache-2.0
/* Which connections are said to have no other end any more, from tables of a network that are made
 * by hand. 127.0.0.1:5000 is the client's end of the only known one. */
#include <inttypes.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/record.h"
#include "capture/enrich/object_names_internal.h"
#include "store/store.h"

#define CLIENT 4711
#define SERVER 4712
#define NEAR "tcp 127.0.0.1:5000 <-> 10.0.0.5:80"

/* A walk through the tables: what passes, and whether that is all. */
struct walk {
	struct inet_socket sockets[2];
	bool all;
};

static struct {
	struct walk walks[2];
	unsigned walk;
	uint32_t objects;
	char detail[256]; /* the text of the last object */
} fake;

bool __wrap_tcp_sockets_each(pid_t pid, inet_socket_fn found, void *arg);
bool __wrap_tcp_sockets_each(pid_t pid, inet_socket_fn found, void *arg)
{
	const struct walk *walk = &fake.walks[fake.walk++];

	(void)pid;
	assert_true(fake.walk <= 2);
	for (size_t i = 0; i < 2; i++)
		if (walk->sockets[i].detail)
			assert_true(found(&walk->sockets[i], arg));
	return walk->all;
}

uint32_t __wrap_store_writer_next(const struct store_writer *writer, enum store_numbered what);
uint32_t __wrap_store_writer_next(const struct store_writer *writer, enum store_numbered what)
{
	(void)writer;
	(void)what;
	return fake.objects + 1;
}

bool __wrap_store_writer_has_room(struct store_writer *writer);
bool __wrap_store_writer_has_room(struct store_writer *writer)
{
	(void)writer;
	return true;
}

int __wrap_store_writer_add_object(struct store_writer *writer, const struct store_object *object,
				   struct error *err);
int __wrap_store_writer_add_object(struct store_writer *writer, const struct store_object *object,
				   struct error *err)
{
	(void)writer;
	(void)err;
	fake.objects++;
	snprintf(fake.detail, sizeof(fake.detail), "%s", object->detail);
	return 0;
}

/* Returns what is written of the other end of the connection NEAR; "": nothing. */
static const char *end_of(struct walk first, struct walk second)
{
	const struct waffle_rec_endpoints endpoints = {.rec = {.kind = WAFFLE_REC_ENDPOINTS},
						       .ino = CLIENT,
						       .dev = 8,
						       .local = {127, 0, 0, 1},
						       .remote = {10, 0, 0, 5},
						       .local_port = 5000,
						       .remote_port = 80,
						       .version = 4,
						       .protocol = IPPROTO_TCP};
	struct error err = ERROR_INIT;
	struct object_names *names;
	pid_t pid = getpid();

	memset(&fake, 0, sizeof(fake));
	fake.walks[0] = first;
	fake.walks[1] = second;
	assert_int_equal(object_names_open(&names, NULL, &err), 0);
	assert_int_equal(object_names_endpoints(names, &endpoints, &err), 1);
	assert_string_equal(fake.detail, NEAR);
	assert_int_equal(object_names_far_ends(names, &pid, 1, &err), 0);
	object_names_close(names);
	assert_true(fake.objects <= 2);
	return fake.objects == 2 ? fake.detail : "";
}

static const struct inet_socket near = {.ino = CLIENT, .detail = NEAR, .established = true};
static const struct inet_socket far = {
	.ino = SERVER, .detail = "tcp 10.0.0.5:80 <-> 127.0.0.1:5000", .established = true};

static void test_an_end_that_neither_walk_shows_is_gone(void **state)
{
	(void)state;
	assert_string_equal(end_of((struct walk){{near}, true}, (struct walk){{near}, true}),
			    "tcp 10.0.0.5:80 <-> 127.0.0.1:5000, which is gone");
}

static void test_a_server_at_another_address_of_the_machine_is_the_other_end(void **state)
{
	(void)state;
	assert_string_equal(
		end_of((struct walk){{near, far}, true}, (struct walk){{near, far}, true}), "");
}

/* While a table is read, sockets come and go, so one may be passed over. */
static void test_an_end_that_one_walk_shows_is_not_gone(void **state)
{
	(void)state;
	assert_string_equal(end_of((struct walk){{near}, true}, (struct walk){{near, far}, true}),
			    "");
	assert_string_equal(end_of((struct walk){{near, far}, true}, (struct walk){{near}, true}),
			    "");
}

static void test_a_connection_that_is_not_there_all_the_time_says_nothing(void **state)
{
	struct inet_socket closed = near;

	(void)state;
	closed.established = false;
	assert_string_equal(end_of((struct walk){{closed}, true}, (struct walk){{near}, true}), "");
	assert_string_equal(end_of((struct walk){{near}, true}, (struct walk){{closed}, true}), "");
	assert_string_equal(end_of((struct walk){{near}, true}, (struct walk){.all = true}), "");
}

static void test_a_table_that_is_not_complete_says_nothing(void **state)
{
	(void)state;
	assert_string_equal(end_of((struct walk){{near}, false}, (struct walk){{near}, true}), "");
	assert_string_equal(end_of((struct walk){{near}, true}, (struct walk){{near}, false}), "");
}

static void test_what_is_unread_at_the_other_end_is_said(void **state)
{
	struct inet_socket unread = far;

	(void)state;
	unread.unread = 12;
	assert_string_equal(
		end_of((struct walk){{near, unread}, true}, (struct walk){{near, far}, true}),
		"tcp 10.0.0.5:80 <-> 127.0.0.1:5000, with 12 bytes unread");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_end_that_neither_walk_shows_is_gone),
		cmocka_unit_test(test_a_server_at_another_address_of_the_machine_is_the_other_end),
		cmocka_unit_test(test_an_end_that_one_walk_shows_is_not_gone),
		cmocka_unit_test(test_a_connection_that_is_not_there_all_the_time_says_nothing),
		cmocka_unit_test(test_a_table_that_is_not_complete_says_nothing),
		cmocka_unit_test(test_what_is_unread_at_the_other_end_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
