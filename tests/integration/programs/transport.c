// SPDX-License-Identifier: Apache-2.0
/*
 * Obeys lines of its standard input, and answers each with "done". What it says in its records is
 * compared with what was recorded. Some lines make it do what a hostile program could: overwrite
 * its rings, and announce rings that are none.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <waffle.h>

#define NAME "/memfd:waffle-ring"

static long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ll + now.tv_nsec;
}

static void pause_us(long us)
{
	struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	if (us)
		nanosleep(&time, NULL);
}

/* Says in its own records when each begins and ends. */
static void steps(long from, long count, long us)
{
	for (long i = from; i < from + count; i++) {
		waffle_span_t cause = WAFFLE_BEGIN("cause", KV_I64("i", i));

		{
			WAFFLE_SPAN("step", KV_I64("i", i), KV_I64("before", now_ns()),
				    KV_CAUSE_SPAN((waffle_span_id_t){cause.id}));
			WAFFLE_EVENT("tick", KV_I64("i", i), KV_STR("text", i % 2 ? "odd" : "even"),
				     KV_F64("half", (double)i / 2), KV_I64("after", now_ns()));
			WAFFLE_COUNTER("level", i);
		}
		WAFFLE_END(cause);
		pause_us(us);
	}
}

struct work {
	long number, count, us;
};

static void *thread_main(void *arg)
{
	struct work work = *(struct work *)arg;

	steps(work.number * 1000000, work.count, work.us);
	return NULL;
}

static void threads(long count, long each, long us)
{
	pthread_t all[64];
	struct work work[64];

	for (long i = 0; i < count; i++) {
		work[i] = (struct work){i + 1, each, us};
		pthread_create(&all[i], NULL, thread_main, &work[i]);
	}
	for (long i = 0; i < count; i++)
		pthread_join(all[i], NULL);
}

static void *brief_main(void *arg)
{
	WAFFLE_EVENT("brief", KV_I64("i", (long)arg), KV_I64("tid", syscall(SYS_gettid)));
	return NULL;
}

/* Many threads, some at a time. */
static void brief(long count)
{
	enum { AT_A_TIME = 4 };
	pthread_t all[AT_A_TIME];

	for (long i = 0; i < count; i += AT_A_TIME) {
		for (long j = 0; j < AT_A_TIME; j++)
			pthread_create(&all[j], NULL, brief_main, (void *)(i + j));
		for (long j = 0; j < AT_A_TIME; j++)
			pthread_join(all[j], NULL);
	}
}

static void children(long count, long each, long us)
{
	for (long i = 0; i < count; i++) {
		pid_t child = fork();

		if (!child) {
			pause_us(100000); /* until it is armed */
			steps((i + 1) * 1000000, each, us);
			_exit(0);
		}
		waitpid(child, NULL, 0);
	}
}

/* ---- two threads, one of which waits for the other ---- */

static int gate[2], answer[2];

static void *waiter_main(void *arg)
{
	long count = (long)arg;
	char byte;

	for (long i = 0; i < count; i++) {
		WAFFLE_SPAN("wait", KV_I64("i", i));
		if (read(gate[0], &byte, 1) != 1)
			abort();
		WAFFLE_EVENT("woken", KV_I64("i", i));
		if (write(answer[1], "", 1) != 1)
			abort();
	}
	return NULL;
}

static void handoffs(long count)
{
	pthread_t thread;
	char byte;

	if (pipe(gate) || pipe(answer))
		abort();
	pthread_create(&thread, NULL, waiter_main, (void *)count);
	for (long i = 0; i < count; i++) {
		pause_us(2000);
		{
			WAFFLE_SPAN("work", KV_I64("i", i));
			pause_us(1000);
			WAFFLE_EVENT("wakes", KV_I64("i", i));
			if (write(gate[1], "", 1) != 1)
				abort();
		}
		if (read(answer[0], &byte, 1) != 1)
			abort();
	}
	pthread_join(thread, NULL);
}

/* Hands over to another process, which runs this as well: the one that begins writes first. Each
 * says that it is about to wake the other one, and that it was woken. */
static bool turns(bool begins, long count, const char *folder)
{
	char path[512], byte;
	int ends[2];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d", folder, i);
		ends[i] = open(path, O_RDWR); /* does not wait for the other one */
	}
	for (long i = 0; i < count; i++) {
		if (begins) {
			WAFFLE_EVENT("wakes", KV_I64("i", 2 * i));
			if (write(ends[0], "", 1) != 1 || read(ends[1], &byte, 1) != 1)
				return false;
			WAFFLE_EVENT("woken", KV_I64("i", 2 * i + 1));
		} else {
			if (read(ends[0], &byte, 1) != 1)
				return false;
			WAFFLE_EVENT("woken", KV_I64("i", 2 * i));
			WAFFLE_EVENT("wakes", KV_I64("i", 2 * i + 1));
			if (write(ends[1], "", 1) != 1)
				return false;
		}
	}
	return true;
}

/* ---- hostile deeds ---- */

/* Calls `each` with each ring that is mapped. Returns their number. */
static int rings_each(void (*each)(char *at, size_t bytes, const char *how), const char *how)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct {
		char *at;
		size_t bytes;
	} found[64];
	char line[512];
	int count = 0;

	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;

		if (strstr(line, NAME) && sscanf(line, "%lx-%lx", &from, &to) == 2 && count < 64) {
			found[count].at = (char *)from;
			found[count++].bytes = to - from;
		}
	}
	fclose(maps);
	for (int i = 0; i < count; i++)
		each(found[i].at, found[i].bytes, how);
	return count;
}

static void ring_spoil(char *at, size_t bytes, const char *how)
{
	unsigned seed = 1;

	if (!strcmp(how, "zero")) {
		memset(at, 0, bytes);
	} else if (!strcmp(how, "ones")) {
		memset(at, 0xff, bytes);
	} else if (!strcmp(how, "random")) {
		for (size_t i = 0; i < bytes; i++)
			at[i] = (char)rand_r(&seed);
	} else if (!strcmp(how, "data")) {
		for (size_t i = 4096; i < bytes; i++)
			at[i] = (char)rand_r(&seed);
	} else if (!strcmp(how, "header")) {
		for (size_t i = 0; i < 4096; i++)
			at[i] = (char)rand_r(&seed);
	}
}

/* Tries what would make a reader of the memory end by SIGBUS. */
static void ring_shrink(char *at, size_t bytes, const char *how)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)at,
		 (unsigned long)at + bytes);
	fd = open(path, O_RDWR);
	printf("%s %d\n", how, fd < 0 ? -1 : ftruncate(fd, 0));
	if (fd >= 0) {
		fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes);
		close(fd);
	}
}

/* Where libwaffle is mapped. */
static char *library_base(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long from = 0;
	char line[512];

	while (!from && fgets(line, sizeof(line), maps))
		if (strstr(line, "libwaffle.so"))
			sscanf(line, "%lx-", &from);
	fclose(maps);
	return (char *)from;
}

static void announce(long probe, void *at, size_t bytes)
{
	waffle_probe_call_(library_base() + probe, (unsigned long)at, (void *)bytes,
			   (void *)syscall(SYS_gettid), 0);
}

/* Makes what looks like a ring to one who does not look closely. */
static char *fake_make(const char *kind, size_t bytes)
{
	int fd = memfd_create("waffle-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char *at;

	if (ftruncate(fd, (off_t)bytes))
		abort();
	if (strcmp(kind, "unsealed") != 0)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!strcmp(kind, "unsealed") && ftruncate(fd, 4096))
		abort();
	close(fd);
	return at == MAP_FAILED ? NULL : at;
}

/* Announces `count` rings that are none. */
static void fakes(const char *kind, long probe, long count, size_t bytes)
{
	for (long i = 0; i < count; i++) {
		char *at = !strcmp(kind, "nothing")     ? (char *)(i << 12)
			   : !strcmp(kind, "anonymous") ? mmap(NULL, bytes, PROT_READ | PROT_WRITE,
							       MAP_SHARED | MAP_ANONYMOUS, -1, 0)
							: fake_make(kind, bytes);

		announce(probe, at, bytes);
		if (at && at != MAP_FAILED && strcmp(kind, "nothing") != 0 && count > 100)
			munmap(at, bytes);
	}
}

/* Enters a sandbox that ends the process if it makes shared memory. */
static void confine(void)
{
	struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(rows) / sizeof(rows[0]), rows};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		abort();
}

/* Opens inside_library.c, works in it once it is armed, and closes it. */
static bool library(const char *path, int from, int count)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*work)(int i);

	if (!handle)
		return false;
	*(void **)&work = dlsym(handle, "inside_work");
	pause_us(200000);
	for (int i = from; i < from + count; i++)
		work(i);
	return !dlclose(handle);
}

static void die(int number)
{
	static const struct rlimit none;
	static int *volatile nowhere;

	setrlimit(RLIMIT_CORE, &none);
	signal(number, SIG_DFL);
	if (number == SIGSEGV)
		*nowhere = 1;
	syscall(SYS_kill, getpid(), number);
	for (;;)
		pause();
}

static bool obey(const char *line)
{
	long a = 0, b = 0, c = 0;
	char word[256] = "";

	if (sscanf(line, "steps %ld %ld %ld", &a, &b, &c) >= 2) {
		steps(a, b, c);
	} else if (sscanf(line, "threads %ld %ld %ld", &a, &b, &c) >= 2) {
		threads(a, b, c);
	} else if (sscanf(line, "brief %ld", &a) == 1) {
		brief(a);
	} else if (sscanf(line, "children %ld %ld %ld", &a, &b, &c) == 3) {
		children(a, b, c);
	} else if (sscanf(line, "handoffs %ld", &a) == 1) {
		handoffs(a);
	} else if (sscanf(line, "turns %ld %ld %255s", &a, &b, word) == 3) {
		return turns(a, b, word);
	} else if (sscanf(line, "spoil %255s", word) == 1) {
		printf("rings %d\n", rings_each(ring_spoil, word));
	} else if (!strncmp(line, "shrink", 6)) {
		printf("rings %d\n", rings_each(ring_shrink, "truncate"));
	} else if (!strncmp(line, "rings", 5)) {
		printf("rings %d\n", rings_each(ring_spoil, "nothing"));
	} else if (sscanf(line, "fakes %255s %ld %ld %ld", word, &a, &b, &c) == 4) {
		fakes(word, a, b, (size_t)c);
	} else if (sscanf(line, "keep %255s %ld %ld", word, &a, &b) == 3) {
		for (long i = 0; i < a; i++)
			fake_make(word, (size_t)b);
	} else if (!strncmp(line, "confine", 7)) {
		confine();
	} else if (sscanf(line, "open %255s", word) == 1) {
		return dlopen(word, RTLD_NOW | RTLD_GLOBAL) != NULL;
	} else if (sscanf(line, "library %255s %ld %ld", word, &a, &b) == 3) {
		return library(word, (int)a, (int)b);
	} else if (sscanf(line, "die %ld", &a) == 1) {
		die((int)a);
	} else if (!strncmp(line, "exec", 4)) {
		execl("/proc/self/exe", "again", (char *)NULL);
		return false;
	} else {
		return false;
	}
	return true;
}

int main(int argc, char **argv)
{
	char line[512];

	prctl(PR_SET_DUMPABLE, 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	/* Orders may also be arguments. */
	for (int i = 1; i < argc; i++)
		if (!obey(argv[i]))
			return 2;
	if (argc > 1)
		return 0;
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (!obey(line))
			return 2;
		puts("done");
	}
	return 0;
}
