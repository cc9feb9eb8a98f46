// SPDX-License-Identifier: Apache-2.0
/* Who holds the other end of a connection: a child of the test, and perhaps the test itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/process/tcp_peer.h"
#include "util/clock.h"

#define LONG_NS 60000000000ull

static uint64_t soon(void)
{
	return clock_monotonic_ns() + LONG_NS;
}

/* Connects two sockets over the loopback device. Returns the one that listens at the port of the
 * second one. */
static int connect_pair(int ends[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_return_code(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_return_code(listen(listener, 1), 0);
	assert_return_code(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	assert_return_code(connect(ends[0], (struct sockaddr *)&address, len), 0);
	ends[1] = accept(listener, NULL, NULL);
	assert_return_code(ends[1], 0);
	return listener;
}

/* A child that has all descriptors but this one. */
static pid_t child_without(int fd)
{
	pid_t child = fork();

	assert_return_code(child, 0);
	if (!child) {
		close(fd);
		pause();
		_exit(0);
	}
	return child;
}

static void test_the_only_process_with_the_other_end_is_found(void **state)
{
	int ends[2], pipe_ends[2];
	pid_t child;

	(void)state;
	close(connect_pair(ends));
	assert_return_code(pipe(pipe_ends), 0);
	child = child_without(ends[0]);
	assert_int_equal(tcp_peer_process(getpid(), ends[0], true, soon()), 0); /* there are two */
	close(ends[1]);
	assert_int_equal(tcp_peer_process(getpid(), ends[0], true, soon()), child);
	assert_int_equal(tcp_peer_process(getpid(), ends[0], true, clock_monotonic_ns()), 0);
	/* Nobody listens any more, so it is not known which end is the server's. */
	assert_int_equal(tcp_peer_process(getpid(), ends[0], false, soon()), 0);
	assert_int_equal(tcp_peer_process(getpid(), ends[1], true, soon()), 0); /* closed */
	assert_int_equal(tcp_peer_process(getpid(), pipe_ends[0], true, soon()), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(tcp_peer_process(getpid(), ends[0], true, soon()), 0);
	close(ends[0]);
}

/* The second end is the server's. */
static void test_who_reads_waits_for_the_process_at_the_servers_end(void **state)
{
	int ends[2], listener;
	pid_t child;

	(void)state;
	for (int own = 0; own < 2; own++) {
		listener = connect_pair(ends);
		child = child_without(ends[own]);
		close(ends[!own]);
		assert_int_equal(tcp_peer_process(getpid(), ends[own], false, soon()),
				 own ? 0 : child);
		assert_int_equal(tcp_peer_process(getpid(), ends[own], true, soon()), child);
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		close(ends[own]);
		close(listener);
	}
}

static void test_a_connection_is_turned_unless_it_is_none(void **state)
{
	const char *detail = "tcp 127.0.0.1:1 <-> 127.0.0.1:2";
	char turned[64];

	(void)state;
	assert_true(tcp_connection_turn(turned, sizeof(turned), detail));
	assert_string_equal(turned, "tcp 127.0.0.1:2 <-> 127.0.0.1:1");
	assert_false(tcp_connection_turn(turned, 31, detail));
	assert_false(tcp_connection_turn(turned, sizeof(turned), "tcp 127.0.0.1:1"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_only_process_with_the_other_end_is_found),
		cmocka_unit_test(test_who_reads_waits_for_the_process_at_the_servers_end),
		cmocka_unit_test(test_a_connection_is_turned_unless_it_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
