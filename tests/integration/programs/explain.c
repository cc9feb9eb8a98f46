// SPDX-License-Identifier: Apache-2.0
/* explain MODE [FILE]: waits for one thing in a known way, and prints what it was, and what the
 * kernel counted meanwhile (getrusage(2), /proc/self/io). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "waffle.h"

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			perror(#what);                                                             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define MIB (1 << 20)

static void pause_ms(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};

	nanosleep(&time, NULL);
}

static unsigned long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000000ull + (unsigned long long)now.tv_nsec;
}

static long io_field(const char *field)
{
	char line[128];
	long value = -1;
	FILE *io = fopen("/proc/thread-self/io", "r");

	while (io && fgets(line, sizeof(line), io))
		if (!strncmp(line, field, strlen(field)))
			value = atol(line + strlen(field));
	if (io)
		fclose(io);
	return value;
}

static void inode_of(int fd)
{
	struct stat info;

	CHECK(!fstat(fd, &info));
	printf("inode ino=%llu\n", (unsigned long long)info.st_ino);
}

/* The other side of what the main thread waits for: writes after a while. */
static void *writer(void *arg)
{
	uint64_t one = 1;

	pause_ms(20);
	CHECK(write(*(int *)arg, &one, sizeof(one)) == sizeof(one));
	return NULL;
}

static void read_from(int from, int to)
{
	pthread_t thread;
	char bytes[8];

	inode_of(from);
	printf("fd from=%d\n", from);
	pthread_create(&thread, NULL, writer, &to);
	CHECK(read(from, bytes, sizeof(bytes)) == sizeof(bytes));
	pthread_join(thread, NULL);
}

static void mode_sleep(const char *file)
{
	(void)file;
	for (int i = 0; i < 5; i++)
		pause_ms(10);
}

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held;

static void *holder(void *arg)
{
	pthread_mutex_lock(&the_lock);
	atomic_store(&held, 1);
	pause_ms(20);
	pthread_mutex_unlock(&the_lock);
	return arg;
}

static void mode_lock(const char *file)
{
	pthread_t thread;

	(void)file;
	printf("lock address=%llu\n", (unsigned long long)(uintptr_t)&the_lock);
	pthread_create(&thread, NULL, holder, NULL);
	while (!atomic_load(&held))
		;
	pthread_mutex_lock(&the_lock);
	pthread_mutex_unlock(&the_lock);
	pthread_join(thread, NULL);
}

static void mode_pipe(const char *file)
{
	int ends[2];

	(void)file;
	CHECK(!pipe(ends));
	read_from(ends[0], ends[1]);
}

static void mode_eventfd(const char *file)
{
	int fd = eventfd(0, 0);

	(void)file;
	CHECK(epoll_create1(0) >= 0); /* has the same inode */
	read_from(fd, fd);
}

static void mode_timerfd(const char *file)
{
	struct itimerspec time = {.it_value.tv_nsec = 20000000};
	int other = eventfd(0, 0), fd = timerfd_create(CLOCK_MONOTONIC, 0);
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(0);
	uint64_t count;

	(void)file;
	CHECK(other >= 0 && !timerfd_settime(fd, 0, &time, NULL));
	CHECK(read(fd, &count, sizeof(count)) == sizeof(count));
	CHECK(!timerfd_settime(fd, 0, &time, NULL) && !epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	CHECK(epoll_wait(epoll, &event, 1, -1) == 1);
	CHECK(read(fd, &count, sizeof(count)) == sizeof(count));
	CHECK(epoll_wait(epoll, &event, 1, 20) == 0);
}

static void mode_tcp(const char *file)
{
	struct sockaddr_in here = {.sin_family = AF_INET}, there;
	socklen_t size = sizeof(here);
	int listener = socket(AF_INET, SOCK_STREAM, 0), a = socket(AF_INET, SOCK_STREAM, 0), b;

	(void)file;
	here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(!bind(listener, (struct sockaddr *)&here, size) && !listen(listener, 1));
	CHECK(!getsockname(listener, (struct sockaddr *)&here, &size));
	CHECK(!connect(a, (struct sockaddr *)&here, size));
	CHECK((b = accept(listener, NULL, NULL)) >= 0);
	CHECK(!getsockname(a, (struct sockaddr *)&there, &size));
	printf("ports local=%d remote=%d\n", ntohs(there.sin_port), ntohs(here.sin_port));
	read_from(a, b);
}

static void mode_unix(const char *file)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), a = socket(AF_UNIX, SOCK_STREAM, 0), b;

	snprintf(name.sun_path, sizeof(name.sun_path), "%s", file);
	CHECK(!bind(listener, (struct sockaddr *)&name, sizeof(name)) && !listen(listener, 1));
	CHECK(!connect(a, (struct sockaddr *)&name, sizeof(name)));
	CHECK((b = accept(listener, NULL, NULL)) >= 0);
	read_from(b, a); /* the end that was accepted has the path */
}

/* Whether some of a file is in memory. */
static bool is_cached(int fd, size_t size)
{
	size_t pages = (size + 4095) / 4096;
	unsigned char *cached = calloc(1, pages);
	void *memory = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	bool found = false;

	CHECK(memory != MAP_FAILED && !mincore(memory, size, cached));
	for (size_t i = 0; i < pages; i++)
		found |= cached[i] & 1;
	munmap(memory, size);
	free(cached);
	return found;
}

/* A file whose pages are not in memory. */
static int cold_file(const char *file, size_t size)
{
	char *bytes = malloc(size);
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);

	memset(bytes, 'x', size);
	CHECK(write(fd, bytes, size) == (ssize_t)size && !fsync(fd));
	/* Pages that the kernel is still busy with stay. (In a tmpfs, all of them do.) */
	for (int tries = 0; tries < 1000 && is_cached(fd, size); tries++) {
		pause_ms(tries > 0);
		CHECK(!posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
	}
	CHECK(!posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
	free(bytes);
	inode_of(fd);
	return fd;
}

static void mode_read(const char *file)
{
	int fd = cold_file(file, 8 * MIB);
	char *bytes = malloc(MIB);
	long before = io_field("read_bytes:"), after;
	unsigned long long start = now_ns();

	memset(bytes, 1, MIB);
	for (int i = 0; i < 8; i++)
		CHECK(pread(fd, bytes, MIB, i * MIB) == MIB);
	after = io_field("read_bytes:");
	printf("io start=%llu end=%llu bytes=%ld\n", start, now_ns(), after - before);
}

static void mode_direct(const char *file)
{
	int fd = cold_file(file, 8 * MIB), direct = open(file, O_RDONLY | O_DIRECT);
	char *bytes = aligned_alloc(4096, MIB);
	unsigned long long start = now_ns();

	memset(bytes, 1, MIB);
	CHECK(direct >= 0);
	for (int i = 0; i < 8; i++)
		CHECK(pread(direct, bytes, MIB, i * MIB) == MIB);
	printf("io start=%llu end=%llu bytes=%d\n", start, now_ns(), 8 * MIB);
	close(fd);
}

static void mode_fsync(const char *file)
{
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char *bytes = malloc(4 * MIB);
	unsigned long long start;

	memset(bytes, 'y', 4 * MIB);
	inode_of(fd);
	CHECK(write(fd, bytes, 4 * MIB) == 4 * MIB);
	start = now_ns();
	CHECK(!fsync(fd));
	printf("io start=%llu end=%llu bytes=%d\n", start, now_ns(), 4 * MIB);
}

static void touch(volatile char *memory, size_t size, bool write)
{
	struct rusage before, after;
	unsigned long long start = now_ns();
	unsigned sum = 0;

	getrusage(RUSAGE_THREAD, &before);
	for (size_t at = 0; at < size; at += 4096) {
		if (write)
			memory[at] = 1;
		else
			sum += (unsigned char)memory[at];
	}
	getrusage(RUSAGE_THREAD, &after);
	printf("faults start=%llu end=%llu minor=%ld major=%ld first=%llu last=%llu sum=%u\n",
	       start, now_ns(), after.ru_minflt - before.ru_minflt,
	       after.ru_majflt - before.ru_majflt, (unsigned long long)(uintptr_t)memory,
	       (unsigned long long)(uintptr_t)memory + size - 1, sum);
}

static void mode_minor(const char *file)
{
	size_t size = 64 * MIB;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)file;
	CHECK(memory != MAP_FAILED && !madvise(memory, size, MADV_NOHUGEPAGE));
	pause_ms(1); /* so that earlier page faults have a record of their own */
	touch(memory, size, true);
	pause_ms(1);
}

static void mode_major(const char *file)
{
	size_t size = MIB;
	int fd = cold_file(file, size);
	char *memory = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

	CHECK(memory != MAP_FAILED && !madvise(memory, size, MADV_RANDOM));
	pause_ms(1);
	touch(memory, size, false);
	pause_ms(1);
}

/* Faults in the kernel: a system call writes into memory that is not there yet. */
static void mode_copy(const char *file)
{
	size_t size = MIB;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rusage before, after;
	unsigned long long start;
	int fd = open("/dev/zero", O_RDONLY);

	(void)file;
	CHECK(memory != MAP_FAILED && !madvise(memory, size, MADV_NOHUGEPAGE));
	pause_ms(1);
	/* The window begins before getrusage(), whose own answer may cause a fault. */
	start = now_ns();
	getrusage(RUSAGE_THREAD, &before);
	CHECK(read(fd, memory, size) == (ssize_t)size);
	getrusage(RUSAGE_THREAD, &after);
	printf("faults start=%llu end=%llu minor=%ld major=%ld\n", start, now_ns(),
	       after.ru_minflt - before.ru_minflt, after.ru_majflt - before.ru_majflt);
	pause_ms(1);
}

static void mode_stop(const char *file)
{
	pid_t me = getpid(), child = fork();

	(void)file;
	if (!child) {
		pause_ms(20);
		kill(me, SIGSTOP);
		pause_ms(50);
		kill(me, SIGCONT);
		_exit(0);
	}
	printf("child pid=%d\n", child);
	while (waitpid(child, NULL, 0) < 0)
		;
}

/* As much CPU time as the quota gives in many of its periods, however busy the machine is. */
/* In the cgroup whose file cgroup.procs this is, if any. */
static void mode_spin(const char *file)
{
	struct timespec used;
	FILE *procs = file ? fopen(file, "w") : NULL;

	if (procs) {
		fprintf(procs, "%d\n", (int)getpid());
		fclose(procs);
	}
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	while (!used.tv_sec && used.tv_nsec < 130000000);
}

static const struct {
	const char *name;
	void (*run)(const char *file);
} modes[] = {
	{"sleep", mode_sleep},     {"lock", mode_lock},   {"pipe", mode_pipe},
	{"eventfd", mode_eventfd}, {"tcp", mode_tcp},     {"unix", mode_unix},
	{"timerfd", mode_timerfd}, {"read", mode_read},   {"direct", mode_direct},
	{"fsync", mode_fsync},     {"minor", mode_minor}, {"major", mode_major},
	{"copy", mode_copy},       {"stop", mode_stop},   {"spin", mode_spin},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(argv[1], modes[i].name) != 0)
			continue;
		printf("thread tid=%d\n", (int)getpid());
		fflush(stdout); /* before a fork */
		{
			WAFFLE_SPAN("mode");
			modes[i].run(argc > 2 ? argv[2] : NULL);
		}
		pause_ms(150); /* time for the tracer to read the open files */
		return 0;
	}
	return 2;
}
