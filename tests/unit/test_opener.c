// SPDX-License-Identifier: Apache-2.0
/* Opens files in a separate process. A stopped process stands for a stuck one. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "target/process/mounts.h"
#include "target/process/opener.h"
#include "util/clock.h"

static int root;
static char folder[] = "/tmp/waffle-opener-XXXXXX";

/* How long the opener last waited for a reply, at most, and since when. Unlike the time that
 * passed, this does not depend on how busy the machine is. */
static struct {
	int ms;
	uint64_t at_ns;
} reply_wait;

/* Stands in for that of the C library. The opener waits for a reply and for the end of the capture,
 * hence for two descriptors. */
int poll(struct pollfd *fds, nfds_t count, int ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	if (count == 2) {
		reply_wait.at_ns = clock_monotonic_ns();
		reply_wait.ms = ms;
	}
	return ppoll(fds, count, ms < 0 ? NULL : &time, NULL);
}

static int start(void **state)
{
	char path[64];
	FILE *file;

	(void)state;
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	assert_non_null(mkdtemp(folder));
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s%d", folder, i ? "lib" : "other", i);
		file = fopen(path, "we");
		assert_non_null(file);
		fprintf(file, "%d", i);
		fclose(file);
	}
	root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(root >= 0);
	return 0;
}

static int stop(void **state)
{
	char command[64];

	(void)state;
	opener_stop();
	close(root);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void assert_text(int fd, char text)
{
	char got = 0;

	assert_true(fd >= 0);
	assert_int_equal(read(fd, &got, 1), 1);
	assert_int_equal(got, text);
	close(fd);
}

static int child(void)
{
	FILE *file = fopen("/proc/thread-self/children", "re");
	int pid = 0, last = 0;

	assert_non_null(file);
	while (fscanf(file, "%d", &pid) == 1)
		last = pid;
	fclose(file);
	assert_true(last > 0);
	return last;
}

static void test_files_are_opened_and_nothing_else(void **state)
{
	char real[PATH_MAX], path[64], *names;
	size_t bytes;

	(void)state;
	assert_text(opener_file(root, "/lib1"), '1');
	assert_text(opener_file(root, "/../../lib2"), '2'); /* no path leads out of the root */
	assert_int_equal(opener_file(root, "/none"), -ENOENT);
	assert_int_equal(opener_file(root, "/"), -EINVAL);
	assert_int_equal(opener_file(-1, "/dev/null"), -EINVAL);
	snprintf(path, sizeof(path), "%s/lib1", folder);
	assert_text(opener_file(-1, path), '1');
	assert_true(opener_follow(root, "/lib1", real));
	assert_string_equal(real, path);
	assert_false(opener_follow(root, "/none", real));
	names = opener_list(root, "/", "lib", &bytes);
	assert_int_equal(bytes, 10);
	assert_non_null(memmem(names, bytes, "lib1", 5));
	assert_non_null(memmem(names, bytes, "lib2", 5));
	free(names);
	assert_null(opener_list(root, "/none", "", &bytes));
}

static void test_a_process_that_was_killed_is_replaced(void **state)
{
	(void)state;
	assert_text(opener_file(root, "/lib1"), '1');
	kill(child(), SIGKILL);
	if (opener_file(root, "/lib1") == -EIO) /* it may have died before or behind the request */
		assert_text(opener_file(root, "/lib1"), '1');
}

static void test_what_is_stuck_is_left_behind(void **state)
{
	(void)state;
	assert_text(opener_file(root, "/lib1"), '1');
	kill(child(), SIGSTOP);
	assert_int_equal(opener_file(root, "/lib1"), -ETIMEDOUT);
	assert_text(opener_file(root, "/lib2"), '2'); /* by another process */
}

static void test_what_was_stuck_is_tried_again_when_it_is_no_more(void **state)
{
	int fd;

	(void)state;
	assert_text(opener_file(root, "/lib1"), '1');
	kill(child(), SIGSTOP);
	assert_int_equal(opener_file(root, "/lib1"), -ETIMEDOUT);
	/* A stopped process can be killed, so it is gone soon. */
	while ((fd = opener_file(root, "/lib1")) == -ETIMEDOUT)
		usleep(1000);
	assert_text(fd, '1');
}

static int memory_of(pid_t pid, const char *name)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void test_memory_of_a_process_is_read(void **state)
{
	static char large[160 << 10], got[160 << 10];
	int memory = memory_of(getpid(), "mem");
	uint64_t at = (uint64_t)(uintptr_t)large;
	ssize_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (char)(i * 7);
	assert_int_equal(opener_read(memory, got, 1000, at + 5), 1000);
	assert_memory_equal(got, large + 5, 1000);
	len = opener_read(memory, got, sizeof(got), at);
	assert_in_range(len, 64 << 10, sizeof(got));
	assert_memory_equal(got, large, (size_t)len);
	assert_true(opener_read(memory, got, 8, 16) <= 0); /* nothing is mapped there */
	assert_true(opener_read(root, got, 8, 0) < 0);
	close(memory);
}

/* While a process is stuck in one's memory, that of others is read. */
static void test_memory_that_is_stuck_is_left_behind(void **state)
{
	int memory = memory_of(getpid(), "mem"), other = memory_of(getppid(), "cmdline");
	char byte = 'x', got = 0;

	(void)state;
	assert_int_equal(opener_read(memory, &got, 1, (uint64_t)(uintptr_t)&byte), 1);
	kill(child(), SIGSTOP);
	assert_int_equal(opener_read(memory, &got, 1, (uint64_t)(uintptr_t)&byte), -ETIMEDOUT);
	assert_int_equal(opener_read(other, &got, 1, 0), 1);
	close(memory);
	close(other);
}

static void test_nothing_is_waited_for_when_the_capture_ends(void **state)
{
	int pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	opener_stop_at(pipes[0]);
	assert_text(opener_file(root, "/lib1"), '1');
	assert_int_equal(write(pipes[1], "", 1), 1);
	kill(child(), SIGSTOP);
	assert_int_equal(opener_file(root, "/lib1"), -ETIMEDOUT);
	opener_stop_at(-1);
	close(pipes[0]);
	close(pipes[1]);
}

/* A later request waits as always: what the capture needs at its end may take its time. */
static void test_a_request_is_not_waited_for_beyond_the_end(void **state)
{
	uint64_t end;

	(void)state;
	assert_text(opener_file(root, "/lib1"), '1');
	kill(child(), SIGSTOP);
	end = clock_monotonic_ns() + (OPENER_WAIT_MS - 50) * 1000000ull;
	opener_until(end);
	assert_int_equal(opener_file(root, "/lib1"), -ETIMEDOUT);
	/* A busy machine may make the request after the end. */
	if (reply_wait.at_ns < end)
		assert_in_range(reply_wait.ms, 1, OPENER_WAIT_MS - 50);
	assert_text(opener_file(root, "/lib2"), '2');
	kill(child(), SIGSTOP);
	assert_int_equal(opener_file(root, "/lib2"), -ETIMEDOUT);
	assert_int_equal(reply_wait.ms, OPENER_WAIT_MS);
	opener_until(0);
}

/* A request while the capture ends starts a process that is abandoned at once. A probe whose
 * descriptor it had inherited would stay in the program. */
static void test_no_descriptor_of_the_tracer_is_kept(void **state)
{
	int pipes[2], held[2];
	struct pollfd gone;

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(write(pipes[1], "", 1), 1);
	opener_stop_at(pipes[0]);
	for (int i = 0; i < 50; i++) {
		int fd;

		assert_int_equal(pipe2(held, O_CLOEXEC), 0);
		fd = opener_file(root, "/lib1");
		close(held[1]);
		gone = (struct pollfd){held[0], POLLIN, 0};
		assert_int_equal(poll(&gone, 1, 0), 1);
		assert_true(gone.revents & POLLHUP);
		close(held[0]);
		if (fd >= 0)
			close(fd);
		opener_stop();
	}
	opener_stop_at(-1);
	close(pipes[0]);
	close(pipes[1]);
}

static void test_types_that_wait_for_a_server(void **state)
{
	(void)state;
	assert_true(mounts_type_is_local("ext4"));
	assert_false(mounts_type_is_local("nfs4"));
	assert_false(mounts_type_is_local("fuse.sshfs"));
	assert_false(mounts_type_is_local("autofs"));
	assert_false(mounts_are_local(getpid(), 0xfffffffffffeull)); /* no such device */
	assert_false(mounts_are_local(-1, MOUNTS_ANY));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_files_are_opened_and_nothing_else),
		TEST(test_memory_of_a_process_is_read),
		TEST(test_memory_that_is_stuck_is_left_behind),
		TEST(test_a_process_that_was_killed_is_replaced),
		TEST(test_what_is_stuck_is_left_behind),
		TEST(test_what_was_stuck_is_tried_again_when_it_is_no_more),
		TEST(test_nothing_is_waited_for_when_the_capture_ends),
		TEST(test_a_request_is_not_waited_for_beyond_the_end),
		TEST(test_no_descriptor_of_the_tracer_is_kept),
		TEST(test_types_that_wait_for_a_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
