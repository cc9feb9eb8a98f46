// SPDX-License-Identifier: Apache-2.0
/* The sources that --sources selects, and the names of open files. */
#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "bpf/wait.h"
#include "capture/sources_internal.h"
#include "target/process/descriptors.h"
#include "target/process/epoll_files.h"
#include "target/process/file_lock.h"
#include "target/process/image.h"
#include "target/process/pipe_ends.h"
#include "target/process/process.h"
#include "target/process/terminal.h"
#include "util/clock.h"

static uint32_t parsed(const char *text)
{
	struct error err = ERROR_INIT;
	uint32_t sources = 0;

	assert_int_equal(sources_parse(&sources, text, &err), 0);
	return sources;
}

static void test_names_choose_and_signs_change_the_default(void **state)
{
	(void)state;
	assert_int_equal(parsed("spans"), CAPTURE_SPANS);
	assert_int_equal(parsed("io,sched"), CAPTURE_SCHED | CAPTURE_IO);
	assert_int_equal(parsed("-io,-stacks"), CAPTURE_DEFAULT & ~(CAPTURE_IO | CAPTURE_STACKS));
	assert_int_equal(parsed("+io"), CAPTURE_DEFAULT | CAPTURE_IO);
	assert_int_equal(parsed("-quota,+quota"), CAPTURE_DEFAULT | CAPTURE_QUOTA);
	/* All but spans and calls need the scheduler, so they go with it. */
	assert_int_equal(parsed("-sched"),
			 CAPTURE_SPANS | CAPTURE_CUDA | CAPTURE_NCCL | CAPTURE_FRAMEWORKS);
	assert_int_equal(parsed("cuda"), CAPTURE_CUDA);
}

static void test_what_is_not_understood_is_shown(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
		{"", "there is no ''"},
		{"spans,", "there is no ''"},
		{"spans,,io", "there is no ''"},
		{"fault", "did you mean faults?"},
		{"spans sched", "there is no 'spans sched'"},
		{"spans,-io", "mixes names"},
		{"-io,spans", "mixes names"},
		{"io", "all others need sched"},
		{"-sched,-spans,-cuda,-nccl,-frameworks", "records nothing"},
		{"nccl,io", "lacks sched"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct error err = ERROR_INIT;
		uint32_t sources = 77;

		assert_int_equal(sources_parse(&sources, rows[i].text, &err), -EINVAL);
		assert_non_null(strstr(err.message, rows[i].says));
		assert_int_equal(sources, 77);
	}
}

static void test_names_of_sources_read_back_as_the_same(void **state)
{
	char text[SOURCES_TEXT];

	(void)state;
	for (uint32_t set = 1; set <= CAPTURE_ALL; set++) {
		if (!(set & CAPTURE_SCHED) && set & ~CAPTURE_PROBES)
			continue;
		assert_int_equal(parsed(sources_text(text, set)), set);
		assert_int_equal(sources_of_waits(sources_to_waits(set)),
				 set & ~(CAPTURE_PROBES | CAPTURE_SCHED));
	}
	assert_int_equal(sources_to_waits(CAPTURE_STACKS | CAPTURE_QUOTA),
			 WAFFLE_WAIT_STACKS | WAFFLE_WAIT_QUOTA);
}

static struct file_key key_of(int fd)
{
	struct stat info;

	assert_int_equal(fstat(fd, &info), 0);
	return (struct file_key){.ino = info.st_ino, .dev = dev_of_kernel(info.st_dev)};
}

/* Looks up an own descriptor, with and without its number. */
static struct descriptor found_of(int fd)
{
	struct file_key key = key_of(fd);
	struct descriptor by_fd, by_inode;

	assert_int_equal(descriptor_find(&by_fd, getpid(), fd, &key), 0);
	assert_int_equal(descriptor_find(&by_inode, getpid(), -1, &key), 0);
	assert_string_equal(by_fd.name, by_inode.name);
	assert_string_equal(by_fd.detail, by_inode.detail);
	return by_fd;
}

static void test_file_has_its_path_and_file_system(void **state)
{
	char name[] = "/proc/self/exe", path[4096] = "";
	int fd = open(name, O_RDONLY);
	struct descriptor found;

	(void)state;
	assert_true(readlink(name, path, sizeof(path) - 1) > 0);
	found = found_of(fd);
	assert_string_equal(found.name, path);
	assert_true(strlen(found.detail) > 0);
	close(fd);
	fd = open("/dev/null", O_RDONLY);
	found = found_of(fd);
	assert_string_equal(found.name, "/dev/null");
	assert_string_equal(found.detail, "character device 1:3");
	close(fd);
}

/* A child that waits, with the terminal as its standard input. */
static pid_t child_at(int terminal)
{
	pid_t child = fork();

	if (!child) {
		dup2(terminal, STDIN_FILENO);
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	return child;
}

static void test_terminal_has_the_ancestor_at_its_other_end(void **state)
{
	int number = -1, master = open("/dev/ptmx", O_RDWR | O_NOCTTY), unlock = 0, terminal;
	char path[64], detail[64], comm[16];
	struct descriptor found;
	struct file_key key;
	pid_t child;

	(void)state;
	assert_int_equal(ioctl(master, TIOCGPTN, &number), 0);
	assert_int_equal(ioctl(master, TIOCSPTLCK, &unlock), 0);
	snprintf(path, sizeof(path), "/dev/pts/%d", number);
	terminal = open(path, O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	child = child_at(terminal);
	process_comm(getpid(), comm);
	snprintf(detail, sizeof(detail), "terminal of process %d, %s", getpid(), comm);
	key = key_of(terminal);
	assert_int_equal(descriptor_find(&found, child, -1, &key), 0);
	assert_string_equal(found.name, path);
	assert_string_equal(found.detail, detail);
	assert_int_equal(terminal_process(found.detail), getpid());
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* No ancestor has the other end. */
	found = found_of(terminal);
	assert_string_equal(found.detail, "terminal");
	assert_int_equal(terminal_process(found.detail), 0);
	close(terminal);
	close(master);
}

/* The text of the end opposite to an own descriptor. */
static void opposite_text(char text[128], int fd)
{
	struct pipe_end end;

	assert_true(pipe_end_opposite(&end, getpid(), fd));
	assert_int_equal(pipe_ends_find(&end, 1, clock_monotonic_ns() + 10000000000ull), 0);
	pipe_end_describe(text, 128, &end);
}

static void test_pipe_has_the_processes_that_hold_its_other_end(void **state)
{
	char text[128], expected[128], comm[16];
	int ends[2], again;
	pid_t child;

	(void)state;
	process_comm(getpid(), comm);
	assert_int_equal(pipe(ends), 0);
	again = dup(ends[1]); /* one process, though it has two descriptors */
	opposite_text(text, ends[0]);
	snprintf(expected, sizeof(expected), "write end of process %d, %s", getpid(), comm);
	assert_string_equal(text, expected);
	assert_int_equal(pipe_end_process(text), getpid());
	child = child_at(STDIN_FILENO);
	opposite_text(text, ends[1]);
	snprintf(expected, sizeof(expected), "read end of 2 processes: %s (%d), %s (%d)", comm,
		 child > getpid() ? getpid() : child, comm, child > getpid() ? child : getpid());
	assert_string_equal(text, expected);
	assert_int_equal(pipe_end_process(text), 0);
	close(ends[1]);
	close(again);
	opposite_text(text, ends[0]);
	snprintf(expected, sizeof(expected), "write end of process %d, %s", child, comm);
	assert_string_equal(text, expected);
	assert_false(pipe_end_is_stopped(text));
	kill(child, SIGSTOP);
	assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
	opposite_text(text, ends[0]);
	strcat(expected, ", which is stopped");
	assert_string_equal(text, expected);
	assert_true(pipe_end_is_stopped(text));
	assert_int_equal(pipe_end_process(text), child);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	opposite_text(text, ends[0]);
	assert_string_equal(text, "");
	close(ends[0]);
}

/* Not so in an emulator of system calls. */
static bool kernel_tells_of_sockets(void)
{
	int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);

	close(netlink);
	return netlink >= 0;
}

static void
test_unix_socket_has_the_process_at_its_other_end_and_what_that_has_not_read(void **state)
{
	char text[128], expected[128], comm[16];
	int ends[2], lone = socket(AF_UNIX, SOCK_STREAM, 0);
	struct pipe_end end;
	pid_t child;

	(void)state;
	if (!kernel_tells_of_sockets())
		return;
	process_comm(getpid(), comm);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	child = child_at(ends[1]);
	close(ends[1]);
	opposite_text(text, ends[0]);
	snprintf(expected, sizeof(expected), "other end of process %d, %s", child, comm);
	assert_string_equal(text, expected);
	assert_int_equal(pipe_end_process(text), child);
	assert_int_equal(pipe_end_unread(text), 0);
	assert_int_equal(write(ends[0], "twelve bytes", 12), 12);
	opposite_text(text, ends[0]);
	strcat(expected, ", with 12 bytes unread");
	assert_string_equal(text, expected);
	assert_int_equal(pipe_end_unread(text), 12);
	assert_false(pipe_end_opposite(&end, getpid(), lone));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
	close(lone);
}

/* In the queue of a datagram socket, anybody may have put what is there. */
static void test_what_a_datagram_socket_has_not_read_is_not_known(void **state)
{
	char text[128];
	int ends[2];

	(void)state;
	if (!kernel_tells_of_sockets())
		return;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends), 0);
	assert_int_equal(write(ends[0], "twelve bytes", 12), 12);
	opposite_text(text, ends[0]);
	assert_int_equal(pipe_end_process(text), getpid());
	assert_int_equal(pipe_end_unread(text), 0);
	close(ends[0]);
	close(ends[1]);
}

/* A child that has inherited an open file has its lock, too, also if its parent has closed it. */
static void test_the_lock_of_a_file_has_the_processes_with_that_open_file(void **state)
{
	const __u64 exclusive[3] = {0, LOCK_EX}, shared[3] = {0, LOCK_SH};
	char name[] = "/tmp/waffle-lock-XXXXXX", text[128], expected[128], comm[16], kind[64];
	int mine = mkstemp(name), other = open(name, O_RDWR);
	struct pipe_end end[2] = {{.count = 0}};
	pid_t child;

	(void)state;
	process_comm(getpid(), comm);
	assert_int_equal(flock(mine, LOCK_SH), 0);
	assert_true(file_lock_awaited(&end[0].lock, getpid(), SYS_flock, exclusive, NULL));
	assert_true(file_lock_awaited(&end[1].lock, getpid(), SYS_flock, shared, NULL));
	assert_true(descriptor_key(&end[0].key, kind, sizeof(kind), getpid(), other));
	end[1].key = end[0].key;
	child = child_at(mine);
	assert_int_equal(pipe_ends_find(end, 1, clock_monotonic_ns() + 10000000000ull), 0);
	pipe_end_describe(text, sizeof(text), &end[0]);
	snprintf(expected, sizeof(expected),
		 "locked by process %d, %s, and its descendants %s (%d)", getpid(), comm, comm,
		 child);
	assert_string_equal(text, expected);
	assert_int_equal(pipe_end_process(text), getpid());
	/* The next one to ask is a holder itself. */
	pipe_end_leave_out(&end[0], child, UINT64_MAX);
	pipe_end_describe(text, sizeof(text), &end[0]);
	snprintf(expected, sizeof(expected), "locked by process %d, %s", getpid(), comm);
	assert_string_equal(text, expected);
	pipe_end_leave_out(&end[0], child, UINT64_MAX);
	assert_int_equal(end[0].count, 1);
	end[0] = (struct pipe_end){.key = end[0].key, .lock = end[0].lock};
	close(mine);
	assert_int_equal(pipe_ends_find(end, 2, clock_monotonic_ns() + 10000000000ull), 0);
	pipe_end_describe(text, sizeof(text), &end[0]);
	snprintf(expected, sizeof(expected), "locked by process %d, %s", child, comm);
	assert_string_equal(text, expected);
	assert_int_equal(pipe_end_process(text), child);
	assert_int_equal(end[1].count, 0); /* readers don't wait for each other */
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	end[0].count = 0;
	assert_int_equal(pipe_ends_find(end, 1, clock_monotonic_ns() + 10000000000ull), 0);
	assert_int_equal(end[0].count, 0);
	close(other);
	unlink(name);
}

/* Gets the lock that an fcntl() of `size` bytes from `start` on waits for. */
static bool awaits(struct awaited_lock *lock, int fd, int command, off_t start, off_t size)
{
	struct flock range = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = size};
	const __u64 args[3] = {(__u64)fd, (__u64)command, (uintptr_t)&range};
	struct image image;
	bool whole;

	assert_int_equal(image_open(&image, getpid()), 0);
	whole = file_lock_awaited(lock, getpid(), SYS_fcntl, args, &image);
	image_close(&image);
	return whole;
}

static void test_the_lock_of_a_part_of_a_file_has_no_holder(void **state)
{
	struct awaited_lock lock;

	(void)state;
	assert_true(awaits(&lock, 0, F_SETLKW, 0, 0));
	assert_false(awaits(&lock, 0, F_SETLKW, 0, 1));
	assert_false(awaits(&lock, 0, F_SETLKW, 1, 0));
	assert_false(awaits(&lock, 0, F_GETFL, 0, 0));
}

/* Locks the whole file to read it. */
static void read_lock(int fd, int command)
{
	struct flock range = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	assert_int_equal(fcntl(fd, command, &range), 0);
}

/* The number of processes in the way of a lock to write; `own`: without what this process has
 * locked itself. */
static uint32_t holder_count(int fd, int command, bool own)
{
	struct pipe_end end = {.count = 0};
	char kind[64];

	assert_true(awaits(&end.lock, fd, command, 0, 0));
	assert_true(descriptor_key(&end.key, kind, sizeof(kind), getpid(), fd));
	assert_int_equal(pipe_ends_find(&end, 1, clock_monotonic_ns() + 10000000000ull), 0);
	if (own)
		pipe_end_leave_out(&end, getpid(), UINT64_MAX);
	return end.count;
}

/* A process may wait for a lock that one of its own open files has. */
static void test_a_lock_of_an_open_file_is_in_the_way_of_its_process(void **state)
{
	char name[] = "/tmp/waffle-lock-XXXXXX";
	int mine = mkstemp(name), other = open(name, O_RDWR);
	struct awaited_lock lock;

	(void)state;
	read_lock(mine, F_SETLK);
	assert_int_equal(holder_count(other, F_SETLKW, true), 0);
	assert_int_equal(holder_count(other, F_OFD_SETLKW, false), 1);
	read_lock(mine, F_OFD_SETLK);
	assert_int_equal(holder_count(other, F_SETLKW, true), 1);
	assert_int_equal(holder_count(other, F_OFD_SETLKW, false), 1);
	/* Its own lock would look like that of another one. */
	assert_false(awaits(&lock, mine, F_OFD_SETLKW, 0, 0));
	close(mine);
	assert_int_equal(holder_count(other, F_SETLKW, true), 0);
	close(other);
	unlink(name);
}

/* Under strace, it is in such a stop at each system call. */
static void test_a_holder_that_its_tracer_has_stopped_is_not_said_to_be_stopped(void **state)
{
	enum { NO_PTRACE = 77 };
	char text[128];
	int ends[2], status;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		if (!ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			raise(SIGUSR1);
		_exit(errno == ENOSYS ? NO_PTRACE : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_PTRACE)
		return; /* an emulator */
	close(ends[1]);
	assert_true(process_is_stopped(child));
	opposite_text(text, ends[0]);
	assert_int_equal(pipe_end_process(text), child);
	assert_false(pipe_end_is_stopped(text));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0]);
}

static void test_pipes_that_are_polled_have_the_processes_that_hold_all_other_ends(void **state)
{
	char text[256], expected[256], comm[16];
	struct pipe_end found[2];
	int ends[2][2];
	pid_t child;

	(void)state;
	process_comm(getpid(), comm);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pipe(ends[i]), 0);
		assert_true(pipe_end_opposite(&found[i], getpid(), ends[i][i]));
	}
	child = child_at(STDIN_FILENO);
	close(ends[0][1]);
	close(ends[1][0]);
	assert_int_equal(pipe_ends_find(found, 2, clock_monotonic_ns() + 10000000000ull), 0);
	pipe_ends_describe(text, sizeof(text), found, 2, true);
	snprintf(expected, sizeof(expected), "other ends of process %d, %s", child, comm);
	assert_string_equal(text, expected);
	assert_int_equal(pipe_end_process(text), child);
	assert_true(pipe_end_is_described(text));
	pipe_ends_describe(text, sizeof(text), found, 2, false);
	snprintf(
		expected, sizeof(expected),
		"pipe:[%llu]: write end of process %d, %s; pipe:[%llu]: read end of process %d, %s",
		(unsigned long long)found[0].key.ino, child, comm,
		(unsigned long long)found[1].key.ino, child, comm);
	assert_string_equal(text, expected);
	assert_int_equal(pipe_end_process(text), 0);
	assert_false(pipe_end_is_described(text));
	pipe_ends_describe(text, sizeof(text), found, 1, true);
	snprintf(expected, sizeof(expected), "write end of process %d, %s", child, comm);
	assert_string_equal(text, expected);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(ends[0][0]);
	close(ends[1][1]);
}

static void test_ends_that_are_unclear_have_no_holders(void **state)
{
	char name[] = "/tmp/waffle-fifo-XXXXXX", path[64];
	struct pipe_end end;
	int ends[2], both;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	assert_true(pipe_end_opposite(&end, getpid(), ends[0]));
	assert_int_equal(pipe_ends_find(&end, 1, 0), -ETIME);
	close(ends[0]);
	close(ends[1]);
	assert_false(pipe_end_opposite(&end, getpid(), ends[0]));
	assert_non_null(mkdtemp(name));
	snprintf(path, sizeof(path), "%s/fifo", name);
	assert_int_equal(mkfifo(path, 0600), 0);
	both = open(path, O_RDWR);
	assert_true(both >= 0);
	assert_false(pipe_end_opposite(&end, getpid(), both));
	close(both);
	unlink(path);
	rmdir(name);
	assert_int_equal(pipe_end_process("fifo, read end of process 12, sh"), 12);
	assert_int_equal(pipe_end_process("ext4, locked by process 12, sh"), 12);
	assert_int_equal(pipe_end_process("unix /read end of process 12, sh"), 0);
	assert_int_equal(pipe_end_process("unix /x, locked by process 12, sh"), 0);
	assert_false(pipe_end_is_stopped("unix /x, which is stopped"));
	assert_true(pipe_end_is_stopped(
		"fifo, write end of 2 processes: sh (12), sh (13), which are stopped"));
}

static void test_pipe_is_known_by_its_inode_alone(void **state)
{
	struct descriptor found;
	struct file_key key;
	char name[64];
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	key = key_of(ends[0]);
	snprintf(name, sizeof(name), "pipe:[%llu]", (unsigned long long)key.ino);
	found = found_of(ends[0]);
	assert_string_equal(found.name, name);
	close(ends[0]);
	close(ends[1]);
	assert_int_equal(descriptor_find(&found, getpid(), ends[0], &key), -ENOENT);
	assert_true(descriptor_of_inode(&found, &key));
	assert_string_equal(found.name, name);
	key.dev = 0xfffff;
	assert_false(descriptor_of_inode(&found, &key));
}

static void test_socket_has_both_its_ends(void **state)
{
	struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in6 there;
	int listener = socket(AF_INET6, SOCK_STREAM, 0), fd = socket(AF_INET6, SOCK_STREAM, 0);
	socklen_t size = sizeof(here);
	char detail[128];

	(void)state;
	assert_int_equal(bind(listener, (struct sockaddr *)&here, size), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&here, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&there, &size), 0);
	snprintf(detail, sizeof(detail), "tcp [::1]:%u <-> [::1]:%u", ntohs(there.sin6_port),
		 ntohs(here.sin6_port));
	assert_string_equal(found_of(fd).detail, detail);
	snprintf(detail, sizeof(detail), "tcp [::1]:%u", ntohs(here.sin6_port));
	assert_string_equal(found_of(listener).detail, detail);
	close(fd);
	close(listener);
}

/* The path of another socket ends like a line of the table, of this socket. */
static void test_socket_that_a_forged_line_is_about_has_no_detail(void **state)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX}, forged = name;
	int victim = socket(AF_UNIX, SOCK_STREAM, 0), forger = socket(AF_UNIX, SOCK_STREAM, 0);
	int other = socket(AF_INET6, SOCK_DGRAM, 0);
	struct sockaddr_in6 here = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	size_t room = sizeof(name.sun_path) - 1;
	char detail[200];

	(void)state;
	snprintf(name.sun_path + 1, room, "test_sources-%d", getpid());
	assert_int_equal(bind(victim, (struct sockaddr *)&name, sizeof(name)), 0);
	snprintf(detail, sizeof(detail), "unix @test_sources-%d", getpid());
	assert_memory_equal(found_of(victim).detail, detail, strlen(detail));
	snprintf(forged.sun_path + 1, room, "\n0: 2 0 10000 1 1 %llu /run/trusted",
		 (unsigned long long)key_of(victim).ino);
	assert_int_equal(bind(forger, (struct sockaddr *)&forged, sizeof(forged)), 0);
	assert_string_equal(found_of(victim).detail, "");
	close(forger);
	assert_memory_equal(found_of(victim).detail, detail, strlen(detail));
	/* The table of the socket's own kind is read first. */
	forger = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(other, (struct sockaddr *)&here, sizeof(here)), 0);
	memset(forged.sun_path, 0, sizeof(forged.sun_path));
	snprintf(forged.sun_path + 1, room, "\n0: 2 0 10000 1 1 %llu /run/trusted",
		 (unsigned long long)key_of(other).ino);
	assert_int_equal(bind(forger, (struct sockaddr *)&forged, sizeof(forged)), 0);
	assert_memory_equal(found_of(other).detail, "udp [::1]:", 10);
	close(forger);
	close(other);
	close(victim);
}

/* A socket that is being connected to a listener whose queue is full: nobody answers its SYN. */
static int connecting_to(const struct sockaddr_in *server)
{
	for (unsigned i = 0; i < 8; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		struct pollfd polled = {.fd = fd, .events = POLLOUT};

		assert_true(fd >= 0);
		(void)connect(fd, (const struct sockaddr *)server, sizeof(*server));
		if (!poll(&polled, 1, 50))
			return fd;
		/* It stays in the queue. */
	}
	fail_msg("the queue of the listener does not fill up");
	return -1;
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	assert_int_equal(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
}

static int listener_with_room_for_none(struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = sizeof(*address);

	*address = (struct sockaddr_in){.sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(fd, (struct sockaddr *)address, size), 0);
	assert_int_equal(listen(fd, 0), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, &size), 0);
	return fd;
}

static void test_an_epoll_has_a_socket_that_is_being_connected(void **state)
{
	struct epoll_networks networks = {0};
	int epoll = epoll_create1(0), event = eventfd(0, 0);
	struct epoll_connecting found;
	struct sockaddr_in server;
	int listener = listener_with_room_for_none(&server), fd = connecting_to(&server);

	(void)state;
	watch(epoll, event);
	assert_false(epoll_connecting(&found, &networks, getpid(), epoll));
	watch(epoll, fd);
	assert_true(epoll_connecting(&found, &networks, getpid(), epoll));
	assert_int_equal(found.descriptor, fd);
	assert_int_equal(found.key.ino, key_of(fd).ino);
	assert_int_equal(found.key.dev, key_of(fd).dev);
	assert_false(found.among);
	watch(epoll, listener);
	assert_true(epoll_connecting(&found, &networks, getpid(), epoll));
	assert_true(found.among);
	epoll_networks_free(&networks);
	close(fd);
	close(listener);
	close(event);
	close(epoll);
}

/* Whoever waits for a name server or a peer of QUIC may wait for that. */
static void test_a_socket_of_udp_is_another_one(void **state)
{
	struct epoll_networks networks = {0};
	int epoll = epoll_create1(0), other = socket(AF_INET, SOCK_DGRAM, 0);
	struct epoll_connecting found;
	struct sockaddr_in server;
	int listener = listener_with_room_for_none(&server), fd = connecting_to(&server);

	(void)state;
	server.sin_port = 0;
	assert_int_equal(bind(other, (struct sockaddr *)&server, sizeof(server)), 0);
	watch(epoll, other);
	watch(epoll, fd);
	assert_true(epoll_connecting(&found, &networks, getpid(), epoll));
	assert_true(found.among);
	epoll_networks_free(&networks);
	close(other);
	close(fd);
	close(listener);
	close(epoll);
}

/* The file that the epoll watches is open by another number, and its own has another socket now. */
static void test_a_number_that_has_another_file_now_is_not_the_watched_one(void **state)
{
	struct epoll_networks networks = {0};
	int epoll = epoll_create1(0), watched[2], kept;
	struct epoll_connecting found;
	struct sockaddr_in server;
	int listener = listener_with_room_for_none(&server), fd = connecting_to(&server);
	char text[256];

	(void)state;
	assert_int_equal(pipe(watched), 0);
	watch(epoll, watched[0]);
	epoll_watched(text, sizeof(text), getpid(), epoll);
	assert_non_null(strstr(text, "pipe:["));
	kept = dup(watched[0]);
	assert_int_equal(dup2(fd, watched[0]), watched[0]);
	epoll_watched(text, sizeof(text), getpid(), epoll);
	assert_string_equal(text, "");
	assert_false(epoll_connecting(&found, &networks, getpid(), epoll));
	epoll_networks_free(&networks);
	close(kept);
	close(watched[0]);
	close(watched[1]);
	close(fd);
	close(listener);
	close(epoll);
}

static void *trace(void *arg)
{
	pid_t *child = arg;

	if (ptrace(PTRACE_ATTACH, *child, NULL, NULL))
		return (void *)(intptr_t)errno;
	if (waitpid(*child, NULL, __WALL) != *child)
		return (void *)-1;
	*child = process_tracer(*child);
	return NULL;
}

static void test_the_tracer_of_a_thread_is_a_process(void **state)
{
	pid_t child = fork(), tracer;
	pthread_t thread;
	void *failed;

	(void)state;
	if (!child) {
		for (;;)
			pause();
	}
	tracer = child;
	assert_int_equal(process_tracer(child), 0);
	assert_int_equal(pthread_create(&thread, NULL, trace, &tracer), 0);
	assert_int_equal(pthread_join(thread, &failed), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if ((intptr_t)failed == ENOSYS)
		return; /* an emulator, in which nobody can trace */
	assert_null(failed);
	assert_int_equal(tracer, getpid());
}

/* The root of a process is a folder and no mount, as in a build's chroot. */
static void test_file_below_a_root_that_is_no_mount_has_its_file_system(void **state)
{
	char folder[] = "/tmp/test_sources.XXXXXX", path[64];
	struct descriptor outside, inside;
	struct file_key key;
	int fd, ends[2];
	pid_t child;
	char byte;

	(void)state;
	if (geteuid())
		skip();
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/file", folder);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	outside = found_of(fd);
	assert_true(strlen(outside.detail) > 0);
	key = key_of(fd);
	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		if (chroot(folder) || write(ends[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(descriptor_find(&inside, child, fd, &key), 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_string_equal(inside.detail, outside.detail);
	close(ends[0]);
	close(ends[1]);
	close(fd);
	unlink(path);
	rmdir(folder);
}

static void test_files_that_share_an_inode_are_known_by_their_descriptor_only(void **state)
{
	int event = eventfd(0, 0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct file_key key = key_of(event);
	struct descriptor found;

	(void)state;
	assert_int_equal(key_of(timer).ino, key.ino);
	assert_int_equal(descriptor_find(&found, getpid(), event, &key), 0);
	assert_string_equal(found.name, "anon_inode:[eventfd]");
	assert_int_equal(descriptor_find(&found, getpid(), timer, &key), 0);
	assert_string_equal(found.name, "anon_inode:[timerfd]");
	assert_int_equal(descriptor_find(&found, getpid(), -1, &key), -ENOENT);
	close(event);
	close(timer);
}

static void test_process_that_is_gone_has_no_files(void **state)
{
	struct file_key key = {.ino = 1, .dev = 1};
	struct descriptor found;

	(void)state;
	assert_int_equal(descriptor_find(&found, 4194304, 0, &key), -ESRCH);
}

static void test_a_process_has_a_file_open_until_it_closes_it(void **state)
{
	uint64_t until = clock_monotonic_ns() + 10000000000ull;
	struct file_key key;
	FILE *file = tmpfile();

	(void)state;
	assert_non_null(file);
	key = key_of(fileno(file));
	assert_int_equal(descriptor_is_open(getpid(), &key, until), 1);
	fclose(file);
	assert_int_equal(descriptor_is_open(getpid(), &key, until), 0);
	assert_int_equal(descriptor_is_open(getpid(), &key, 0), -ETIME);
	assert_int_equal(descriptor_is_open(PROCESS_PID_MAX + 1, &key, until), 0);
}

static void test_a_list_is_known_by_the_begin_of_its_name(void **state)
{
	(void)state;
	assert_string_equal(descriptor_list("2 descriptors: pipe:[1], tcp 127.0.0.1:80"),
			    "pipe:[1], tcp 127.0.0.1:80");
	assert_string_equal(descriptor_list("many descriptors: pipe:[1]"), "pipe:[1]");
	assert_null(descriptor_list("/tmp/1 descriptors: tcp 127.0.0.1:5 <-> 127.0.0.1:80"));
	assert_null(descriptor_list(" descriptors: pipe:[1]"));
}

static void file_write(const char *folder, const char *name, const char *text)
{
	char path[160];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static bool becomes_frozen(pid_t pid)
{
	for (int i = 0; i < 2000 && !process_is_frozen(pid); i++)
		usleep(1000);
	return process_is_frozen(pid);
}

static void test_a_process_in_a_frozen_cgroup_is_frozen(void **state)
{
	static const struct {
		const char *root, *file, *frozen, *thawed;
	} versions[] = {{"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN", "THAWED"},
			{"/sys/fs/cgroup", "cgroup.freeze", "1", "0"}};
	bool old = !access(versions[0].root, F_OK), frozen;
	const char *file = versions[!old].file;
	char folder[100], number[16];
	pid_t pid;

	(void)state;
	snprintf(folder, sizeof(folder), "%s/waffle-test-%d", versions[!old].root, getpid());
	assert_int_equal(mkdir(folder, 0755), 0);
	pid = fork();
	if (!pid)
		while (true)
			pause();
	snprintf(number, sizeof(number), "%d", pid);
	file_write(folder, "cgroup.procs", number);
	assert_false(process_is_frozen(pid));
	file_write(folder, file, versions[!old].frozen);
	frozen = becomes_frozen(pid);
	file_write(folder, file, versions[!old].thawed);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	while (rmdir(folder))
		usleep(1000);
	assert_true(frozen);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_list_is_known_by_the_begin_of_its_name),
		cmocka_unit_test(test_a_process_has_a_file_open_until_it_closes_it),
		cmocka_unit_test(test_names_choose_and_signs_change_the_default),
		cmocka_unit_test(test_what_is_not_understood_is_shown),
		cmocka_unit_test(test_names_of_sources_read_back_as_the_same),
		cmocka_unit_test(test_file_has_its_path_and_file_system),
		cmocka_unit_test(test_terminal_has_the_ancestor_at_its_other_end),
		cmocka_unit_test(test_pipe_has_the_processes_that_hold_its_other_end),
		cmocka_unit_test(
			test_unix_socket_has_the_process_at_its_other_end_and_what_that_has_not_read),
		cmocka_unit_test(test_what_a_datagram_socket_has_not_read_is_not_known),
		cmocka_unit_test(
			test_pipes_that_are_polled_have_the_processes_that_hold_all_other_ends),
		cmocka_unit_test(test_the_lock_of_a_file_has_the_processes_with_that_open_file),
		cmocka_unit_test(test_the_lock_of_a_part_of_a_file_has_no_holder),
		cmocka_unit_test(test_a_lock_of_an_open_file_is_in_the_way_of_its_process),
		cmocka_unit_test(
			test_a_holder_that_its_tracer_has_stopped_is_not_said_to_be_stopped),
		cmocka_unit_test(test_ends_that_are_unclear_have_no_holders),
		cmocka_unit_test(test_pipe_is_known_by_its_inode_alone),
		cmocka_unit_test(test_socket_has_both_its_ends),
		cmocka_unit_test(test_socket_that_a_forged_line_is_about_has_no_detail),
		cmocka_unit_test(test_an_epoll_has_a_socket_that_is_being_connected),
		cmocka_unit_test(test_a_socket_of_udp_is_another_one),
		cmocka_unit_test(test_a_number_that_has_another_file_now_is_not_the_watched_one),
		cmocka_unit_test(test_the_tracer_of_a_thread_is_a_process),
		cmocka_unit_test(test_file_below_a_root_that_is_no_mount_has_its_file_system),
		cmocka_unit_test(test_files_that_share_an_inode_are_known_by_their_descriptor_only),
		cmocka_unit_test(test_process_that_is_gone_has_no_files),
		cmocka_unit_test(test_a_process_in_a_frozen_cgroup_is_frozen),
	};

	return cmocka_run_group_tests_name("sources", tests, NULL, NULL);
}
