// SPDX-License-Identifier: Apache-2.0
/*
 * A program that records itself with libwaffle and does what real programs do to their threads,
 * signals and libraries: "inside_hard MODE [ARGUMENT…]". What it prints is compared with what was
 * recorded.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <waffle.h>
#include <waffle_trace.h>

static void nap(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* ---- threads that are cancelled ---- */

static volatile long progress[1000];
static bool asynchronous;

/* Counts in its records until it is cancelled. */
static void *counting_main(void *arg)
{
	long number = (long)arg;

	if (asynchronous)
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (long i = 0;; i++) {
		WAFFLE_EVENT("counted", KV_I64("thread", number), KV_I64("i", i));
		progress[number] = i + 1;
		for (volatile int k = 0; k < 2000; k++)
			;
		if (!asynchronous)
			pthread_testcancel();
	}
	return NULL;
}

static void cancel(long count)
{
	for (long i = 0; i < count; i++) {
		pthread_t thread;
		void *result;

		pthread_create(&thread, NULL, counting_main, (void *)i);
		while (!progress[i])
			sched_yield();
		nap(1000 * (i % 50));
		pthread_cancel(thread);
		pthread_join(thread, &result);
		printf("%ld %ld %d\n", i, progress[i], result == PTHREAD_CANCELED);
	}
}

/* ---- many threads ---- */

static void *brief_main(void *arg)
{
	WAFFLE_EVENT("brief", KV_I64("i", (long)arg));
	return NULL;
}

/* Counts the mappings of a ring's size, to which the kernel may have joined neighbours. */
static long rings_count(void)
{
	unsigned long begin, end, ring = (4 << 20) + 4096 + (16 << 10);
	char line[4096];
	long count = 0;
	FILE *file = fopen("/proc/self/smaps", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2 && end - begin >= ring &&
		    (end - begin) % ring == 0)
			count += (long)((end - begin) / ring);
	if (file)
		fclose(file);
	return count;
}

static long memory_kib(void)
{
	char line[256];
	long kib = -1;
	FILE *file = fopen("/proc/self/status", "r");

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "RssAnon: %ld", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static void brief(long count)
{
	for (long i = 0; i < count; i += 8) {
		pthread_t threads[8];

		for (long k = 0; k < 8; k++)
			pthread_create(&threads[k], NULL, brief_main, (void *)(i + k));
		for (long k = 0; k < 8; k++)
			pthread_join(threads[k], NULL);
	}
	printf("rings %ld\n", rings_count());
}

/* Detached threads end while nobody waits for them. */
static void detached(long count)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (long i = 0; i < count; i++) {
		pthread_t thread;

		while (pthread_create(&thread, &attributes, brief_main, (void *)i))
			nap(100000);
	}
	nap(500000000); /* the last ones end */
}

static pthread_key_t last_key;

static void last_record(void *arg)
{
	WAFFLE_EVENT("last", KV_I64("i", (long)arg));
}

static void *leaving_main(void *arg)
{
	pthread_setspecific(last_key, arg);
	WAFFLE_EVENT("brief", KV_I64("i", (long)arg));
	return NULL;
}

/* Destructors of a thread record, too, before and after that of libwaffle. */
static void leaving(long count)
{
	pthread_key_create(&last_key, last_record);
	for (long i = 1; i <= count; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, leaving_main, (void *)i);
		pthread_join(thread, NULL);
	}
}

/* ---- children ---- */

/* A child whose handlers of pthread_atfork() do not run, while other threads record. */
static void raw_fork(long count)
{
	for (long i = 0; i < count; i++) {
		pid_t pid;
		int status;

		WAFFLE_EVENT("parent", KV_I64("i", i));
		pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (!pid) {
			for (long k = 0; k < 1000; k++)
				WAFFLE_EVENT("child", KV_I64("i", k));
			if (i % 2)
				exit(0); /* must not wait for threads that only the parent has */
			_exit(0);
		}
		waitpid(pid, &status, 0);
		if (status)
			printf("child failed: %d\n", status);
	}
}

/* ---- libraries ---- */

static void library_call(const char *path, int i)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void (*work)(int) = library ? dlsym(library, "inside_work") : NULL;

	if (!work) {
		fprintf(stderr, "%s\n", dlerror());
		exit(5);
	}
	work(i);
	dlclose(library);
}

/* Opens libraries in turn, which the loader puts at the same address. */
static void libraries(char **paths, int count, int times)
{
	/* The whole ring and all buffers are used once, so that memory does not grow by them. */
	for (int i = 0; i < 100000; i++) {
		WAFFLE_EVENT("warm");
		if (i % 1000 == 0)
			nap(1000000);
	}
	for (int i = 0; i < times; i++) {
		library_call(paths[i % count], i);
		if (i == times / 10 || i == times - 1)
			printf("memory %ld\n", memory_kib());
	}
}

/* ---- a sandbox ---- */

#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1),                                     \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* Kills the process for any call but those that a program makes that has threads and allocates. */
static void sandbox(void)
{
	struct sock_filter rows[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(mmap),
		ALLOW(munmap),
		ALLOW(mprotect),
		ALLOW(madvise),
		ALLOW(brk),
		ALLOW(futex),
		ALLOW(clone),
		ALLOW(clone3),
		ALLOW(set_robust_list),
		ALLOW(rseq),
		ALLOW(exit),
		ALLOW(exit_group),
		ALLOW(rt_sigprocmask),
		ALLOW(rt_sigaction),
		ALLOW(rt_sigreturn),
		ALLOW(getpid),
		ALLOW(gettid),
		ALLOW(prctl),
		ALLOW(write),
		ALLOW(close),
		ALLOW(read),
		ALLOW(lseek),
		ALLOW(fstat),
		ALLOW(newfstatat),
		ALLOW(ftruncate),
		ALLOW(pwrite64),
		ALLOW(fsync),
		ALLOW(fdatasync),
		ALLOW(openat),
		ALLOW(rename),
		ALLOW(unlink),
		ALLOW(fcntl),
		ALLOW(clock_nanosleep),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = {sizeof(rows) / sizeof(rows[0]), rows};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		exit(6);
}

static void *steps_main(void *arg)
{
	for (long i = 0; i < 100; i++)
		WAFFLE_EVENT("brief", KV_I64("i", (long)arg * 100 + i));
	return NULL;
}

static void sandboxed(void)
{
	sandbox();
	for (long i = 0; i < 10; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, steps_main, (void *)i);
		pthread_join(thread, NULL);
	}
}

/* ---- the processor's counter ---- */

static void *forbidden_main(void *arg)
{
	(void)arg;
	for (long i = 0; i < 100; i++)
		WAFFLE_EVENT("forbidden", KV_I64("i", i));
	return NULL;
}

/* Records where rdtsc, and with it clock_gettime(), raises SIGSEGV. */
static void forbidden(const char *path)
{
	pthread_t thread;

	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
		exit(8);
	if (waffle_trace_start(path, NULL))
		exit(7);
	forbidden_main(NULL);
	pthread_create(&thread, NULL, forbidden_main, NULL);
	pthread_join(thread, NULL);
	printf("flush %d\n", waffle_trace_flush());
	printf("stop %d\n", waffle_trace_stop());
}

/* ---- the flight recorder ---- */

static void flight(const char *path)
{
	struct waffle_trace_options options = {
		.size = sizeof(options), .ring_bytes = 64 << 10, .overwrite = 1};

	if (waffle_trace_start(path, &options))
		exit(7);
	for (long i = 0; i < 100000; i++)
		WAFFLE_EVENT("counted", KV_I64("thread", 0), KV_I64("i", i));
	nap(300000000);
	printf("flush %d\n", waffle_trace_flush());
	for (long i = 100000; i < 200000; i++)
		WAFFLE_EVENT("counted", KV_I64("thread", 0), KV_I64("i", i));
	printf("stop %d\n", waffle_trace_stop());
}

/* Two recordings by one thread: the first with small rings that overwrite, the second with
 * `options`, or the usual ones. Each has 2000 events at once. */
static void again(const char *first, const char *second, const char *small)
{
	struct waffle_trace_options options[2] = {
		{.size = sizeof(options[0]), .ring_bytes = 16 << 10, .overwrite = 1},
		{.size = sizeof(options[0]), .ring_bytes = small ? 16 << 10 : 0}};
	const char *const paths[] = {first, second};

	for (int i = 0; i < 2; i++) {
		if (waffle_trace_start(paths[i], &options[i]))
			exit(7);
		for (long k = 0; k < 2000; k++)
			WAFFLE_EVENT("counted", KV_I64("i", k));
		waffle_trace_stop();
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long count = argc > 2 ? atol(argv[2]) : 0;

	asynchronous = !strcmp(mode, "asynchronous");
	if (!strcmp(mode, "cancel") || asynchronous)
		cancel(count);
	else if (!strcmp(mode, "brief"))
		brief(count);
	else if (!strcmp(mode, "detached"))
		detached(count);
	else if (!strcmp(mode, "leaving"))
		leaving(count);
	else if (!strcmp(mode, "raw_fork"))
		raw_fork(count);
	else if (!strcmp(mode, "libraries"))
		libraries(argv + 3, argc - 3, (int)count);
	else if (!strcmp(mode, "sandboxed"))
		sandboxed();
	else if (!strcmp(mode, "forbidden"))
		forbidden(argv[2]);
	else if (!strcmp(mode, "again"))
		again(argv[2], argv[3], argc > 4 ? argv[4] : NULL);
	else if (!strcmp(mode, "flight"))
		flight(argv[2]);
	else
		return 9;
	printf("end\n");
	return 0;
}
