// SPDX-License-Identifier: Apache-2.0
/* The processes that parse files: what they may do, what becomes of those that die, and that they
 * find what is found without them. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "capture/enrich/handles.h"
#include "target/dwarf/cfi_remote.h"
#include "target/elf/demangle.h"
#include "target/elf/object_read.h"
#include "target/elf/object_remote.h"
#include "target/process/program_facts.h"
#include "target/worker/sandbox.h"
#include "target/elf/symbols.h"
#include "target/elf/symbols_remote.h"
#include "target/worker/worker.h"
#include "target/worker/worker_queue.h"
#include "target/worker/worker_message_internal.h"
#include "waffle.h"

#define SELF "/proc/self/exe"

/* ---- requests that do what they are told ---- */

enum deed {
	DEED_NONE,
	DEED_TRY,
	DEED_CRASH,
	DEED_MEMORY,
	DEED_LIE,
	DEED_END,
	DEED_LONG,
	DEED_FILES,
	DEED_ASK,
	DEED_ASK_OFTEN,
	DEED_FLOOD,
	DEED_SLEEP,
	DEED_OPEN,
	DEED_OPEN_AND_CRASH
};

static void put_try(struct wire_out *reply, long result)
{
	wire_put_u32(reply, result < 0 ? (uint32_t)errno : 0);
}

/* A core file, which is ELF: what a program had in its memory. */
static const char core_file[] = "/tmp/waffle-worker-test-core";

/* All of what it must not be able to do. */
static void try_all(struct wire_out *reply)
{
	char *const none[] = {NULL};

	put_try(reply, open("/etc/passwd", O_RDONLY | O_CLOEXEC));
	put_try(reply, open("/dev/null", O_RDWR | O_CLOEXEC));
	put_try(reply, open("/no/such/file", O_RDONLY | O_CLOEXEC));
	put_try(reply, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	put_try(reply, fork());
	put_try(reply, execve("/bin/true", none, none));
	put_try(reply, kill(getppid(), 0));
	put_try(reply, unlink("/tmp/waffle-worker-test"));
	put_try(reply, syscall(SYS_ptrace, 0, 0, 0, 0));
	put_try(reply, syscall(SYS_process_vm_readv, getpid(), NULL, 0, NULL, 0, 0));
	put_try(reply, mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			    0) == MAP_FAILED
			       ? -1
			       : 0);
	put_try(reply, syscall(SYS_bpf, 0, NULL, 0));
	put_try(reply, open(core_file, O_RDONLY | O_CLOEXEC));
}
#define TRIES 13

/* 64 GiB of it, which stay when it can't be had. */
static bool take_memory(void)
{
	for (size_t i = 0; i < 1u << 16; i++)
		if (mmap(NULL, 1u << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) == MAP_FAILED)
			return false;
	return true;
}

/* A message that answers nothing, with two descriptors, more than any message has. */
static int send_two_files(int fd)
{
	struct message message = {.kind = MESSAGE_OPENED};
	struct iovec part = {&message, sizeof(message)};
	char control[CMSG_SPACE(2 * sizeof(int))] = {0};
	struct msghdr all = {.msg_iov = &part,
			     .msg_iovlen = 1,
			     .msg_control = control,
			     .msg_controllen = sizeof(control)};
	const struct cmsghdr header = {.cmsg_level = SOL_SOCKET,
				       .cmsg_type = SCM_RIGHTS,
				       .cmsg_len = CMSG_LEN(2 * sizeof(int))};
	const int files[2] = {fd, fd};

	memcpy(control, &header, sizeof(header));
	memcpy(CMSG_DATA((struct cmsghdr *)(uintptr_t)control), files, sizeof(files));
	return sendmsg(SANDBOX_SOCKET, &all, 0) < 0 ? -errno : 0;
}

static void crash(void)
{
	raise(SIGSEGV); /* which is denied, too */
	*(volatile int *)0 = 1;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Without a system call: a worker may not sleep. */
static void pass_a_second(void)
{
	uint64_t end = now_ns() + 1000000000;

	while (now_ns() < end)
		;
}

static int deed_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	uint32_t what = wire_get_u32(request);
	struct stat status;

	(void)arg;
	switch (what) {
	case DEED_TRY:
		try_all(reply);
		/* A file could change while it is mapped. */
		put_try(reply,
			fd >= 0 && mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED
				? 0
				: -1);
		put_try(reply, fstat(fd, &status));
		return 0;
	case DEED_CRASH:
		crash();
		return 0;
	case DEED_OPEN:
	case DEED_OPEN_AND_CRASH:
		if (open(wire_get_text(request), O_RDONLY | O_CLOEXEC) < 0)
			return -errno;
		if (what == DEED_OPEN_AND_CRASH)
			crash();
		return 0;
	case DEED_SLEEP:
		pass_a_second();
		wire_put_u32(reply, 43);
		return 0;
	case DEED_MEMORY:
		return take_memory() ? 0 : -ENOMEM;
	case DEED_LIE:
		for (unsigned i = 0; i < 1000; i++)
			wire_put_u32(reply, UINT32_MAX);
		return 0;
	case DEED_END:
		_exit(3);
	case DEED_FILES:
		return send_two_files(fd);
	case DEED_ASK:
		for (;;)
			(void)!open("/no/such/file", O_RDONLY | O_CLOEXEC);
	case DEED_ASK_OFTEN:
		for (unsigned i = 0; i < 5000; i++)
			(void)!open("/no/such/file", O_RDONLY | O_CLOEXEC);
		wire_put_u32(reply, 42);
		return 0;
	case DEED_FLOOD:
		for (;;)
			message_send(SANDBOX_SOCKET,
				     &(struct message){.kind = MESSAGE_OPEN, .size = 1, .part = 1},
				     "x", -1);
	case DEED_LONG:
		for (uint32_t i = 0; i < 1u << 20; i++)
			wire_put_u32(reply, i);
		return 0;
	default:
		wire_put_u32(reply, 42);
		return 0;
	}
}

static int deed(enum deed what, const char *name, struct wire_out *reply, struct error *err)
{
	struct wire_out request = {0};
	int fd = open(SELF, O_RDONLY | O_CLOEXEC), result;

	*err = (struct error)ERROR_INIT;
	wire_put_u32(&request, what);
	result = worker_call(WORKER_FOR_ARMING, WORKER_CALLS, &request, fd, name, reply, err);
	wire_out_free(&request);
	close(fd);
	return result;
}

#define CRASHING_NAME "_Z5crashv"

/* demangle_serve() with an error that one name triggers. */
static int names_serve(struct wire_in *request, int fd, struct wire_out *reply, void *arg)
{
	struct wire_in names = *request;

	while (!wire_in_done(&names)) {
		const char *name = wire_get_text(&names);

		if (name && !strcmp(name, CRASHING_NAME))
			crash();
	}
	return demangle_serve(request, fd, reply, arg);
}

/* Apart from names_serve(), as in cmd/workers.c. */
static int start(void **state)
{
	static struct symbols_service service;
	static const struct worker_table table = {
		.handlers =
			{
				[WORKER_OBJECT] = {object_serve, NULL},
				[WORKER_FRAMES] = {symbols_serve_frames, &service},
				[WORKER_BEFORE] = {symbols_serve_before, &service},
				[WORKER_VARIABLE] = {symbols_serve_variable, &service},
				[WORKER_MODULE] = {symbols_serve_module, &service},
				[WORKER_GO] = {symbols_serve_go, &service},
				[WORKER_UNWIND] = {cfi_serve, NULL},
				[WORKER_PROGRAM] = {program_facts_serve, NULL},
				[WORKER_HANDLES] = {handles_serve, NULL},
				[WORKER_NAME] = {names_serve, NULL},
				[WORKER_CALLS] = {deed_serve, NULL},
			},
	};
	struct error err = ERROR_INIT;

	(void)state;
	WAFFLE_EVENT("of the test");
	return worker_start(&table, &err);
}

static int stop(void **state)
{
	(void)state;
	worker_stop();
	assert_false(worker_is_there());
	return 0;
}

static void works(void)
{
	struct wire_out reply;
	struct error err;

	assert_int_equal(deed(DEED_NONE, "good", &reply, &err), 0);
	assert_int_equal(reply.bytes.len, 4);
	wire_out_free(&reply);
}

/* ---- what a worker is ---- */

/* The number behind a name in a file of /proc; of a base. */
static unsigned long proc_number(int pid, const char *file, const char *name, int base)
{
	char path[64], line[256];
	unsigned long number = 0;
	bool found = false;
	FILE *stream;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	stream = fopen(path, "re");
	assert_non_null(stream);
	while (!found && fgets(line, sizeof(line), stream))
		if (!strncmp(line, name, strlen(name))) {
			number = strtoul(line + strlen(name), NULL, base);
			found = true;
		}
	fclose(stream);
	assert_true(found);
	return number;
}

static unsigned proc_files(int pid)
{
	char path[64];
	unsigned count = 0;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	assert_non_null(folder);
	for (struct dirent *entry; (entry = readdir(folder));)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

static int worker_pid(enum worker_use use)
{
	char path[64];
	int helper = worker_helper(use);

	assert_true(helper > 0);
	snprintf(path, sizeof(path), "task/%d/children", helper);
	return (int)proc_number(helper, path, "", 10);
}

/* Sends a signal to a process as an unprivileged user. Returns the errno; 0: it arrives. */
static int signalled_by_nobody(int pid)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) ||
		    setresuid(65534, 65534, 65534))
			_exit(255);
		_exit(kill(pid, 0) ? errno : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void test_worker_has_no_privileges(void **state)
{
	static const char *const none[] = {"CapInh:", "CapPrm:", "CapEff:", "CapAmb:"};
	int pid;

	(void)state;
	works();
	pid = worker_pid(WORKER_FOR_ARMING);
	assert_int_equal(proc_number(pid, "status", "Seccomp:", 10), 2);
	assert_int_equal(proc_number(pid, "status", "NoNewPrivs:", 10), 1);
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(proc_number(pid, "status", none[i], 16), 0);
	if (geteuid() == 0) {
		assert_int_equal(proc_number(pid, "status", "CapBnd:", 16), 0);
		/* Numbers that no user has: nobody's processes could stop it. */
		assert_true(proc_number(pid, "status", "Uid:", 10) > 0xf0000000u);
		assert_true(proc_number(pid, "status", "Gid:", 10) > 0xf0000000u);
		assert_int_equal(signalled_by_nobody(pid), EPERM);
		assert_int_equal(signalled_by_nobody(worker_helper(WORKER_FOR_ARMING)), EPERM);
		/* /dev/null three times, and the socket. Only root may look. */
		assert_int_equal(proc_files(pid), 4);
	}
	if (sandbox_memory())
		assert_int_equal(proc_number(pid, "limits", "Max address space", 10),
				 sandbox_memory());
	assert_int_equal(proc_number(pid, "limits", "Max core file size", 10), 0);
	/* The helper has one more socket, and parses nothing. */
	assert_int_equal(proc_number(worker_helper(WORKER_FOR_ARMING), "status", "CapEff:", 16), 0);
}

static void core_file_make(void)
{
	Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT},
			     .e_type = ET_CORE,
			     .e_version = EV_CURRENT};
	int fd;

	unlink(core_file);
	fd = open(core_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	close(fd);
}

static void test_worker_opens_nothing_and_runs_nothing(void **state)
{
	static const uint32_t expected[TRIES] = {ENOEXEC, ENOEXEC, ENOENT, EPERM, EPERM,
						 EPERM,   EPERM,   EPERM,  EPERM, EPERM,
						 EPERM,   EPERM,   ENOEXEC};
	struct wire_out reply;
	struct wire_in in;
	struct error err;

	(void)state;
	core_file_make();
	assert_int_equal(deed(DEED_TRY, "tries", &reply, &err), 0);
	unlink(core_file);
	in = wire_in(reply.bytes.data, reply.bytes.len);
	for (unsigned i = 0; i < TRIES; i++)
		assert_int_equal(wire_get_u32(&in), expected[i]);
	assert_int_equal(wire_get_u32(&in), EPERM); /* mmap of the file */
	assert_int_equal(wire_get_u32(&in), 0);     /* fstat of it */
	assert_true(wire_in_done(&in));
	wire_out_free(&reply);
}

/* ---- those that die ---- */

static unsigned lines;

static void see_line(const char *line, void *arg)
{
	assert_non_null(strstr(line, arg));
	lines++;
}

static void test_worker_that_dies_is_an_error_of_its_file(void **state)
{
	struct wire_out reply;
	struct error err;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(deed(DEED_CRASH, "/its/file", &reply, &err), -EPROTO);
		assert_non_null(strstr(err.message, "/its/file: the process that parsed it "));
		assert_non_null(strstr(err.message, "ended"));
		works();
		assert_int_equal(deed(DEED_END, "/its/file", &reply, &err), -EPROTO);
		assert_non_null(strstr(err.message, "/its/file: the process that parsed it ended"));
		works();
	}
	worker_notices(see_line, (void *)(uintptr_t) "/its/file: ");
	assert_int_equal(lines, 6);
}

#ifndef __SANITIZE_ADDRESS__ /* whose shadow memory allows no limit */
static void test_worker_without_memory_is_an_error_of_its_file(void **state)
{
	struct wire_out reply;
	struct error err;

	(void)state;
	assert_int_not_equal(sandbox_memory(), 0);
	assert_int_equal(deed(DEED_MEMORY, "/its/file", &reply, &err), -EPROTO);
	assert_non_null(strstr(err.message, "/its/file: parsing it takes more memory"));
	works();
}
#endif

/* About a file of that owner. */
static int deed_of(enum deed what, uid_t owner, mode_t mode)
{
	int fd = memfd_create("owned", MFD_CLOEXEC), result;
	struct wire_out request = {0}, reply;
	struct error err = ERROR_INIT;

	assert_true(fd >= 0 && !fchmod(fd, mode) && !fchown(fd, owner, 0));
	wire_put_u32(&request, what);
	result = worker_call(WORKER_FOR_ARMING, WORKER_CALLS, &request, fd, "owned", &reply, &err);
	if (strstr(err.message, "it is not parsed"))
		result = -EPERM;
	wire_out_free(&request);
	wire_out_free(&reply);
	close(fd);
	return result;
}

static void test_workers_that_always_die_end_the_parsing_of_their_owners_files_only(void **state)
{
	unsigned i;

	(void)state;
	if (geteuid() != 0)
		skip();
	for (i = 0; i < 100 && deed_of(DEED_CRASH, 1001, 0644) == -EPROTO; i++)
		assert_int_equal(deed_of(DEED_NONE, 1002, 0644), 0);
	assert_true(i > 10 && i < 40);
	assert_int_equal(deed_of(DEED_NONE, 1001, 0644), -EPERM);
	assert_int_equal(deed_of(DEED_NONE, 1002, 0644), 0);
	assert_int_equal(deed_of(DEED_NONE, 0, 0644), 0);
	/* An owner is not blamed for a file that others may write to. */
	for (i = 0; i < 100 && deed_of(DEED_CRASH, 0, 0666) == -EPROTO; i++)
		;
	assert_true(i > 10 && i < 40);
	assert_int_equal(deed_of(DEED_NONE, 0, 0644), 0);
}

/* A file that the worker asks for by its name has an owner, too. */
static int deed_by_name(enum deed what, const char *path)
{
	struct wire_out request = {0}, reply;
	struct error err = ERROR_INIT;
	int result;

	wire_put_u32(&request, what);
	wire_put_text(&request, path);
	result = worker_call(WORKER_FOR_NAMES, WORKER_CALLS, &request, -1, path, &reply, &err);
	wire_out_free(&request);
	wire_out_free(&reply);
	return result;
}

static void test_files_that_are_named_are_not_opened_for_workers_that_would_die(void **state)
{
	char paths[2][64] = {"/tmp/waffle-worker-1001-XXXXXX", "/tmp/waffle-worker-1002-XXXXXX"};
	int self = open(SELF, O_RDONLY | O_CLOEXEC);
	char head[64];
	unsigned i;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(read(self, head, sizeof(head)), sizeof(head));
	close(self);
	for (i = 0; i < 2; i++) {
		int fd = mkostemp(paths[i], O_CLOEXEC);

		assert_true(fd >= 0 && !fchown(fd, 1001 + i, 0));
		assert_int_equal(write(fd, head, sizeof(head)), sizeof(head));
		close(fd);
	}
	for (i = 0; i < 100 && deed_by_name(DEED_OPEN_AND_CRASH, paths[0]) == -EPROTO; i++)
		;
	assert_true(i > 10 && i < 40);
	assert_int_equal(deed_by_name(DEED_OPEN, paths[0]), -EACCES);
	assert_int_equal(deed_by_name(DEED_OPEN, paths[1]), 0);
	assert_int_equal(deed_by_name(DEED_OPEN, SELF), 0);
	unlink(paths[0]);
	unlink(paths[1]);
}

static void test_worker_that_never_answers_is_given_up(void **state)
{
	struct wire_out reply;
	struct error err;

	(void)state;
	worker_patience(1);
	assert_int_equal(deed(DEED_ASK, "/its/file", &reply, &err), -EPROTO);
	assert_non_null(
		strstr(err.message, "/its/file: the process that parsed it did not answer"));
	worker_patience(120);
	works();
}

/* A malicious file may take minutes to parse: neither a
 * signal nor the end of the capture waits for that. */
static void test_end_of_a_capture_waits_for_no_worker(void **state)
{
	struct wire_out reply;
	struct error err;
	int ends[2];

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	worker_stop_at(ends[0]);
	works();
	assert_int_equal(write(ends[1], "", 1), 1);
	assert_int_equal(deed(DEED_ASK, "/its/file", &reply, &err), -EPROTO);
	assert_non_null(strstr(err.message, "/its/file: it was given up"));
	worker_stop_at(-1);
	works();
	close(ends[0]);
	close(ends[1]);
}

static void test_what_nobody_wants_any_more_is_given_up(void **state)
{
	struct wire_out reply;
	struct error err;

	(void)state;
	worker_give_up(WORKER_FOR_ARMING, true);
	assert_int_equal(deed(DEED_ASK, "/its/file", &reply, &err), -EPROTO);
	assert_non_null(strstr(err.message, "/its/file: it was given up"));
	worker_give_up(WORKER_FOR_ARMING, false);
	works();
}

/* It takes no answers, so that these would fill the socket. */
static void test_worker_that_asks_without_end_is_given_up(void **state)
{
	struct wire_out reply;
	struct error err;

	(void)state;
	alarm(60);
	assert_int_equal(deed(DEED_FLOOD, "/its/file", &reply, &err), -EPROTO);
	works();
	alarm(0);
}

static struct worker_opens opens_of(enum deed what)
{
	struct wire_out request = {0}, reply;
	struct worker_opens opens = {0};
	struct error err = ERROR_INIT;

	wire_put_u32(&request, what);
	assert_int_equal(worker_call_watched(WORKER_FOR_ARMING, WORKER_CALLS, &request, -1,
					     "/its/file", &opens, &reply, &err),
			 0);
	wire_out_free(&request);
	wire_out_free(&reply);
	wire_out_free(&opens.missing);
	return opens;
}

/* The names are kept with the reply, and looked for again by each later capture. */
static void test_worker_that_asks_often_leaves_few_names(void **state)
{
	struct worker_opens opens = opens_of(DEED_NONE);

	(void)state;
	assert_int_equal(opens.count, 0);
	assert_false(opens.other);
	opens = opens_of(DEED_ASK_OFTEN);
	assert_int_equal(opens.count, WORKER_OPENS_MAX);
	assert_true(opens.other);
}

/* ---- requests that nobody waits for ---- */

/* The result of the request, or -EAGAIN. */
static int ask(enum deed what, int fd, struct error *err)
{
	struct wire_out request = {0}, reply;
	struct wire_in in;
	int result;

	*err = (struct error)ERROR_INIT;
	wire_put_u32(&request, what);
	result = worker_ask(WORKER_CALLS, &request, fd, "/its/file", &reply, err);
	in = wire_in(reply.bytes.data, reply.bytes.len);
	result = result ?: (int)wire_get_u32(&in);
	wire_out_free(&request);
	wire_out_free(&reply);
	return result;
}

static void await(void)
{
	struct pollfd ready = {worker_queue_fd(), POLLIN, 0};

	assert_int_equal(poll(&ready, 1, 20000), 1);
	assert_true(worker_queue_answered());
}

/* The result of a request once its answer is there. Answers to others may come before it: the queue
 * chooses the next request by the size of its file. */
static int result_at_last(enum deed deed, int fd, struct error *err)
{
	int result;

	while ((result = ask(deed, fd, err)) == -EAGAIN)
		await();
	return result;
}

static void test_answer_that_takes_long_is_not_waited_for(void **state)
{
	int fd = open(SELF, O_RDONLY | O_CLOEXEC), other = memfd_create("other", MFD_CLOEXEC);
	struct error err;

	(void)state;
	assert_int_equal(ask(DEED_SLEEP, fd, &err), 43); /* without a queue it is */
	assert_int_equal(worker_queue_open(&err), 0);
	assert_int_equal(ask(DEED_SLEEP, fd, &err), -EAGAIN);
	assert_non_null(strstr(err.message, "/its/file: it is still being parsed"));
	assert_int_equal(ask(DEED_SLEEP, fd, &err), -EAGAIN);
	assert_int_equal(ask(DEED_NONE, other, &err), -EAGAIN); /* it waits for its turn */
	assert_int_equal(result_at_last(DEED_SLEEP, fd, &err), 43);
	assert_int_equal(ask(DEED_SLEEP, fd, &err), 43); /* it is kept until nobody wants it */
	worker_queue_forget(fd);
	assert_int_equal(ask(DEED_SLEEP, fd, &err), -EAGAIN);
	/* An answer that comes soon is awaited. */
	worker_queue_wait_until(now_ns() + 20000000000ull);
	assert_int_equal(ask(DEED_NONE, other, &err), 42);
	assert_int_equal(ask(DEED_SLEEP, fd, &err), 43);
	/* An error is an answer, too; and a file that has changed is another one. */
	assert_int_equal(ask(DEED_CRASH, fd, &err), -EPROTO);
	assert_non_null(strstr(err.message, "/its/file: the process that parsed it"));
	worker_queue_wait_until(0);
	assert_int_equal(write(other, "x", 1), 1);
	assert_int_equal(ask(DEED_NONE, other, &err), -EAGAIN);
	worker_queue_close();
	close(fd);
	close(other);
}

static void test_requests_of_one_owner_do_not_delay_all_others(void **state)
{
	int fds[6];
	struct error err;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(worker_queue_open(&err), 0);
	worker_patience(1);
	for (unsigned i = 0; i < 6; i++) {
		fds[i] = memfd_create("owned", MFD_CLOEXEC);
		assert_true(fds[i] >= 0 && !fchmod(fds[i], 0644) &&
			    !fchown(fds[i], i < 5 ? 1001 : 1002, 0));
		assert_int_equal(ask(i < 5 ? DEED_ASK : DEED_NONE, fds[i], &err), -EAGAIN);
	}
	/* Five of one user take a second each: the other's comes after the first of them. */
	worker_queue_wait_until(now_ns() + 20000000000ull);
	assert_int_equal(ask(DEED_NONE, fds[5], &err), 42);
	worker_queue_wait_until(0);
	assert_int_equal(ask(DEED_ASK, fds[4], &err), -EAGAIN);
	worker_queue_close();
	worker_patience(120);
	for (unsigned i = 0; i < 6; i++)
		close(fds[i]);
}

static void test_end_of_the_queue_waits_for_no_worker(void **state)
{
	int fd = open(SELF, O_RDONLY | O_CLOEXEC);
	struct error err;
	uint64_t begin;

	(void)state;
	assert_int_equal(worker_queue_open(&err), 0);
	assert_int_equal(ask(DEED_ASK, fd, &err), -EAGAIN); /* it would take 120 s */
	begin = now_ns();
	worker_queue_close();
	assert_true(now_ns() - begin < 20000000000ull);
	lines = 0;
	worker_notices(see_line,
		       (void *)(uintptr_t) "/its/file: the capture ended while it was parsed");
	assert_int_equal(lines, 1);
	works();
	close(fd);
}

/* Stands for a worker that the kernel can't end, because a file system does not answer it. */
static void test_end_of_the_queue_waits_for_no_worker_that_does_not_end(void **state)
{
	int fd = open(SELF, O_RDONLY | O_CLOEXEC), helper = worker_helper(WORKER_FOR_ARMING);
	struct error err;

	(void)state;
	assert_int_equal(worker_queue_open(&err), 0);
	assert_int_equal(ask(DEED_ASK, fd, &err), -EAGAIN);
	usleep(300000); /* now the worker has the request */
	assert_int_equal(kill(helper, SIGSTOP), 0);
	alarm(60); /* it would take 120 s */
	worker_queue_close();
	alarm(0);
	assert_int_equal(ask(DEED_NONE, fd, &err), -EPROTO);
	close(fd);
}

static void test_file_without_a_descriptor_for_it_is_an_error(void **state)
{
	int fd = open(SELF, O_RDONLY | O_CLOEXEC);
	struct rlimit old, limit;
	struct error err;

	(void)state;
	assert_int_equal(worker_queue_open(&err), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	limit = (struct rlimit){.rlim_cur = 3, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(ask(DEED_NONE, fd, &err), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_non_null(strstr(err.message, "/its/file: "));
	assert_int_equal(result_at_last(DEED_NONE, fd, &err), 42);
	worker_queue_close();
	close(fd);
}

static void test_descriptors_of_a_worker_do_not_stay_open(void **state)
{
	struct wire_out reply;
	struct error err;
	unsigned before;

	(void)state;
	works();
	before = proc_files(getpid());
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(deed(DEED_FILES, "/its/file", &reply, &err), -EPROTO);
	assert_int_equal(proc_files(getpid()), before);
	works();
}

static void test_reply_of_many_messages_is_whole(void **state)
{
	struct wire_out reply;
	struct wire_in in;
	struct error err;

	(void)state;
	assert_int_equal(deed(DEED_LONG, "long", &reply, &err), 0);
	in = wire_in(reply.bytes.data, reply.bytes.len);
	for (uint32_t i = 0; i < 1u << 20; i++)
		if (wire_get_u32(&in) != i)
			fail_msg("word %u is another", i);
	assert_true(wire_in_done(&in));
	wire_out_free(&reply);
}

/* The id of the worker that gets a file, whose descriptor this closes. */
static int pid_for(int fd)
{
	struct error err = ERROR_INIT;
	struct wire_out request = {0}, reply;

	assert_true(fd >= 0);
	wire_put_u32(&request, DEED_NONE);
	assert_int_equal(
		worker_call(WORKER_FOR_ARMING, WORKER_CALLS, &request, fd, "owned", &reply, &err),
		0);
	wire_out_free(&request);
	wire_out_free(&reply);
	close(fd);
	return worker_pid(WORKER_FOR_ARMING);
}

static int file_of(uid_t owner)
{
	int fd = memfd_create("owned", MFD_CLOEXEC);

	assert_true(fd >= 0 && !fchmod(fd, 0644) && !fchown(fd, owner, 0));
	return fd;
}

/* A worker that has read a file of one user gets no file of another user. */
static void test_worker_sees_files_of_one_owner(void **state)
{
	int first, second;

	(void)state;
	if (geteuid() != 0)
		skip();
	works();
	first = pid_for(open(SELF, O_RDONLY | O_CLOEXEC));
	assert_int_equal(pid_for(file_of(1001)), first); /* root's come first */
	assert_int_equal(pid_for(file_of(1001)), first);
	second = pid_for(file_of(1002));
	assert_int_not_equal(second, first);
	assert_int_not_equal(pid_for(open(SELF, O_RDONLY | O_CLOEXEC)), second);
}

/* The root of a container is not ours, nor is who made an image that says that root owns a file.
 * Here the file is on a file system that this process does not see. */
static void test_roots_of_other_file_systems_are_other_owners(void **state)
{
	int other;

	(void)state;
	if (geteuid() != 0)
		skip();
	works();
	pid_for(open(SELF, O_RDONLY | O_CLOEXEC));
	other = pid_for(file_of(0));
	assert_int_equal(pid_for(file_of(0)), other);
	assert_int_not_equal(pid_for(open(SELF, O_RDONLY | O_CLOEXEC)), other);
}

/* ---- what they find ---- */

static void test_worker_finds_the_sites(void **state)
{
	struct error err = ERROR_INIT;
	struct object *here, *there;
	int fd = open(SELF, O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(object_read(&there, fd, "self", &err), 0);
	worker_stop();
	assert_int_equal(object_read(&here, fd, "self", &err), 0);
	close(fd);
	assert_int_equal(there->sites.len, here->sites.len);
	assert_int_equal(there->probes.len, here->probes.len);
	assert_true(here->sites.len > 0);
	assert_int_equal(there->ino, here->ino);
	assert_int_equal(there->dev, here->dev);
	assert_int_equal(there->machine, here->machine);
	for (size_t i = 0; i < here->sites.len; i++) {
		assert_string_equal(there->sites.data[i].name, here->sites.data[i].name);
		assert_string_equal(there->sites.data[i].func, here->sites.data[i].func);
		assert_int_equal(there->sites.data[i].line, here->sites.data[i].line);
	}
	for (size_t i = 0; i < here->probes.len; i++) {
		assert_int_equal(there->probes.data[i].offset, here->probes.data[i].offset);
		assert_int_equal(there->probes.data[i].semaphore_offset,
				 here->probes.data[i].semaphore_offset);
	}
	object_free(here);
	object_free(there);
}

static struct symbolizer *self_open(uint32_t *number)
{
	struct symbol_module module = {.path = SELF};
	struct symbolizer *symbolizer;

	assert_int_equal(symbolizer_open(&symbolizer, &(struct symbolizer_options){0}), 0);
	assert_int_equal(symbolizer_add(symbolizer, &module, number), 0);
	return symbolizer;
}

static struct elf_segment code_of_self(void)
{
	struct elf_segments segments;
	struct cfi_table table;

	assert_int_equal(
		cfi_file_read(&table, &segments, open(SELF, O_RDONLY | O_CLOEXEC), SELF, NULL), 0);
	cfi_table_free(&table);
	assert_true(segments.count);
	return segments.list[0];
}

__attribute__((section(".go.buildinfo"), used)) static const char go_mark[16] = "go";

static void test_worker_finds_the_names(void **state)
{
	struct symbol_module_state far_state, near_state;
	struct symbolizer *far_one, *near_one;
	uint32_t there, here, found = 0;
	struct elf_segment code;

	(void)state;
	far_one = self_open(&there);
	worker_stop();
	near_one = self_open(&here);
	assert_int_equal(start(NULL), 0);
	assert_int_equal(symbolizer_module(far_one, there, &far_state), 0);
	assert_int_equal(symbolizer_module(near_one, here, &near_state), 0);
	assert_int_equal(far_state.file, near_state.file);
	assert_int_equal(far_state.source, near_state.source);
	assert_true(build_id_equal(&far_state.build_id, &near_state.build_id));
	code = code_of_self();
	for (uint64_t step = 0; step < 200; step++) {
		uint64_t at = code.offset + code.size / 200 * step;
		struct symbol_frames far, near;

		assert_int_equal(symbolizer_offset(far_one, there, at, &far), 0);
		assert_int_equal(symbolizer_offset(near_one, here, at, &near), 0);
		assert_int_equal(far.count, near.count);
		assert_int_equal(far.address, near.address);
		assert_int_equal(far.source, near.source);
		for (uint32_t i = 0; i < far.count; i++, found++) {
			assert_string_equal(far.list[i].function ?: "?",
					    near.list[i].function ?: "?");
			assert_string_equal(far.list[i].file ?: "?", near.list[i].file ?: "?");
			assert_int_equal(far.list[i].line, near.list[i].line);
			assert_int_equal(far.list[i].offset, near.list[i].offset);
		}
		assert_int_equal(symbolizer_before(far_one, there, at),
				 symbolizer_before(near_one, here, at));
	}
	assert_true(found > 10);
	assert_true(symbolizer_has_variable(far_one, there, "lines"));
	assert_false(symbolizer_has_variable(far_one, there, "no_such_variable"));
	assert_true(symbolizer_is_go(far_one, there));
	assert_true(symbolizer_is_go(near_one, here));
	assert_false(symbolizer_is_go(far_one, there + 1));
	symbolizer_close(far_one);
	symbolizer_close(near_one);
}

static void test_worker_makes_the_unwinding_table(void **state)
{
	struct elf_segments far_segments, near_segments;
	struct cfi_table far, near;

	(void)state;
	assert_int_equal(
		cfi_file_read(&far, &far_segments, open(SELF, O_RDONLY | O_CLOEXEC), SELF, NULL),
		0);
	worker_stop();
	assert_int_equal(
		cfi_file_read(&near, &near_segments, open(SELF, O_RDONLY | O_CLOEXEC), SELF, NULL),
		0);
	assert_int_equal(far.count, near.count);
	assert_true(far.count > 100);
	assert_int_equal(far.base, near.base);
	assert_memory_equal(far.rows, near.rows, far.count * sizeof(far.rows[0]));
	assert_int_equal(far_segments.count, near_segments.count);
	assert_memory_equal(far_segments.list, near_segments.list,
			    far_segments.count * sizeof(far_segments.list[0]));
	cfi_table_free(&far);
	cfi_table_free(&near);
}

static void test_worker_tells_the_facts_of_a_program(void **state)
{
	struct program_facts far, near;

	(void)state;
	assert_int_equal(program_facts_read(&far, open(SELF, O_RDONLY | O_CLOEXEC), SELF), 0);
	assert_int_equal(program_facts_read(&near, open("/etc/passwd", O_RDONLY | O_CLOEXEC), "-"),
			 -ENOEXEC);
	worker_stop();
	assert_int_equal(program_facts_read(&near, open(SELF, O_RDONLY | O_CLOEXEC), SELF), 0);
	assert_true(near.segments.count > 0);
	assert_true(build_id_equal(&far.build_id, &near.build_id));
	assert_memory_equal(&far.segments, &near.segments, sizeof(far.segments));
	assert_int_equal(far.python_runtime, 0);
}

static void test_worker_demangles(void **state)
{
	char text[DEMANGLE_MAX];

	(void)state;
	assert_string_equal(demangle("_ZN3foo3barEi", text), "foo::bar(int)");
	assert_null(demangle("_ZN3foo", text));
	assert_null(demangle("main", text));
}

/* The parts of a parameter pack are looked for in both types that each type is made of, and these
 * are the same one: 2^34 times. */
static void test_worker_gives_up_a_name_that_takes_for_ever(void **state)
{
	static const char numbers[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[256] = "_Z1fDp", text[DEMANGLE_MAX], *names[DEMANGLE_BATCH];
	const char *symbols[DEMANGLE_BATCH];
	int worker;

	(void)state;
	assert_non_null(demangle("_ZN3foo3barEi", text));
	worker = worker_pid(WORKER_FOR_NAMES);
	memset(name + strlen(name), 'F', 34);
	strcat(name, "1AS_E");
	for (unsigned i = 0; i < 33; i++)
		snprintf(name + strlen(name), 8, "S%c_E", numbers[i]);
	for (unsigned i = 0; i < 3; i++)
		assert_null(demangle(name, text));
	assert_string_equal(demangle("_ZN3foo3barEi", text), "foo::bar(int)");
	/* Among others, none of which is lost. */
	for (unsigned i = 0; i < DEMANGLE_BATCH; i++)
		symbols[i] = i % 10 == 3 ? name : i % 10 == 5 ? "main" : "_ZN3foo3barEi";
	demangle_batch(symbols, DEMANGLE_BATCH, names);
	for (unsigned i = 0; i < DEMANGLE_BATCH; i++) {
		if (i % 10 == 3 || i % 10 == 5)
			assert_null(names[i]);
		else
			assert_string_equal(names[i], "foo::bar(int)");
		free(names[i]);
	}
	assert_int_equal(worker_pid(WORKER_FOR_NAMES), worker);
}

static void test_a_name_that_kills_the_worker_costs_no_others(void **state)
{
	static const char *const symbols[] = {"_Z1fi", "main",        "_Z1gi", CRASHING_NAME,
					      "_Z1hi", CRASHING_NAME, "_Z1ji", "_Z1ki"};
	char *names[8];

	(void)state;
	for (unsigned round = 0; round < 4; round++) {
		demangle_batch(symbols, 8, names);
		for (unsigned i = 0; i < 8; i++) {
			if (i == 1 || i == 3 || i == 5) {
				assert_null(names[i]);
				continue;
			}
			assert_non_null(names[i]);
			assert_string_equal(names[i] + 1, "(int)");
			free(names[i]);
		}
	}
}

/* The instruction that nvcc puts into the stub of a launch. */
extern uint64_t handle_of_saxpy __asm__("_ZZ28__device_stub__Z5saxpyifPfS_ifPfS_E8__handle");
uint64_t handle_of_saxpy = 0x123456;

static void see_handle(uint64_t handle, const char *name, void *arg)
{
	assert_int_equal(handle, 0x123456);
	assert_string_equal(name, "saxpy(int, float, float*, float*)");
	++*(unsigned *)arg;
}

/* It is aligned so that it is found by every 16th address. */
static __attribute__((aligned(16))) void test_worker_finds_handles(void **state)
{
	struct elf_segment code = code_of_self();
	int fd = open(SELF, O_RDONLY | O_CLOEXEC);
	uint64_t here = (uintptr_t)test_worker_finds_handles;
	struct symbol_frames frames;
	struct symbolizer *symbolizer;
	unsigned seen = 0;
	struct image image;
	uint32_t number;
	uint64_t offset = 0;

	(void)state;
	/* This function identifies the mapping of the code. */
	symbolizer = self_open(&number);
	for (uint64_t at = code.offset; !offset && at < code.offset + code.size; at += 16)
		if (!symbolizer_offset(symbolizer, number, at, &frames) && frames.count &&
		    !frames.list[frames.count - 1].offset &&
		    !strcmp(frames.list[frames.count - 1].function, __func__))
			offset = at;
	symbolizer_close(symbolizer);
	assert_true(offset && fd >= 0);
	assert_int_equal(image_open(&image, getpid()), 0);
	assert_int_equal(handles_find(fd, &image, here, offset, see_handle, &seen), 0);
	assert_int_equal(seen, 1);
	image_close(&image);
	close(fd);
}

/* ---- answers that lie ---- */

static void test_answers_that_make_no_sense_are_refused(void **state)
{
	struct symbols_remote *remote;
	struct elf_segments segments;
	struct error err = ERROR_INIT;
	struct object *object;
	struct cfi_table table;
	struct wire_out reply;
	struct wire_in in;

	(void)state;
	assert_int_equal(deed(DEED_LIE, "lies", &reply, &err), 0);
	in = wire_in(reply.bytes.data, reply.bytes.len);
	assert_int_equal(cfi_decode(&table, &segments, &in, NULL), -EPROTO);
	in = wire_in(reply.bytes.data, reply.bytes.len);
	assert_int_equal(object_new(&object, "lies", &err), 0);
	assert_int_equal(object_decode(object, &in), -EPROTO);
	object_free(object);
	assert_int_equal(symbols_remote_open(&remote, "/nowhere", false), 0);
	in = wire_in(reply.bytes.data, reply.bytes.len);
	assert_false(symbols_remote_decode(remote, &in));
	in = wire_in(NULL, 0); /* an empty answer */
	assert_false(symbols_remote_decode(remote, &in));
	symbols_remote_close(remote);
	wire_out_free(&reply);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_worker_has_no_privileges),
		TEST(test_worker_opens_nothing_and_runs_nothing),
		TEST(test_worker_that_dies_is_an_error_of_its_file),
#ifndef __SANITIZE_ADDRESS__
		TEST(test_worker_without_memory_is_an_error_of_its_file),
#endif
		TEST(test_workers_that_always_die_end_the_parsing_of_their_owners_files_only),
		TEST(test_files_that_are_named_are_not_opened_for_workers_that_would_die),
		TEST(test_answer_that_takes_long_is_not_waited_for),
		TEST(test_requests_of_one_owner_do_not_delay_all_others),
		TEST(test_end_of_the_queue_waits_for_no_worker),
		TEST(test_end_of_the_queue_waits_for_no_worker_that_does_not_end),
		TEST(test_file_without_a_descriptor_for_it_is_an_error),
		TEST(test_worker_that_never_answers_is_given_up),
		TEST(test_end_of_a_capture_waits_for_no_worker),
		TEST(test_what_nobody_wants_any_more_is_given_up),
		TEST(test_worker_that_asks_without_end_is_given_up),
		TEST(test_worker_that_asks_often_leaves_few_names),
		TEST(test_descriptors_of_a_worker_do_not_stay_open),
		TEST(test_reply_of_many_messages_is_whole),
		TEST(test_worker_sees_files_of_one_owner),
		TEST(test_roots_of_other_file_systems_are_other_owners),
		TEST(test_worker_finds_the_sites),
		TEST(test_worker_finds_the_names),
		TEST(test_worker_makes_the_unwinding_table),
		TEST(test_worker_tells_the_facts_of_a_program),
		TEST(test_worker_demangles),
		TEST(test_worker_gives_up_a_name_that_takes_for_ever),
		TEST(test_a_name_that_kills_the_worker_costs_no_others),
		TEST(test_worker_finds_handles),
		TEST(test_answers_that_make_no_sense_are_refused),
	};

	/* Replies of this program's handlers must not be kept for its next run. */
	setenv("WAFFLE_CACHE", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
