// SPDX-License-Identifier: Apache-2.0
/*
 * Calls the functions of a library (called.c) as its standard input says, and logs every call:
 *	open FILE   dlopen() it; also each argument of the command line; it may be linked instead
 *	close       dlclose() of the library that was opened last
 *	add N       called_add(i, i * 1000000007), N times
 *	text WORD   called_text(WORD, length)
 *	nowhere     called_text() of a null pointer, and of addresses that are not mapped
 *	make N      called_make(&out, N)
 *	nest N      called_nest(N)
 *	launch N    called_launch() of a function of this program, N times, and by a handle of it
 *	threads N   N threads, each called_add(i, thread)
 *	fork N      a child that does add N and ends at once
 *	jobs N      called_submit(i, "job-i") here, called_complete(i % 3, i) on another thread
 *	serve N     called_serve() of a request
 *	plain       a span of libc's: malloc(4242)
 *	exec FILE … another program in this process
 */
#include "log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

struct called_dim {
	unsigned x, y, z;
};
struct called_peer {
	unsigned short port;
	char tag[8];
};
struct called_request {
	int id;
	const char *path;
	struct called_peer *peer;
	struct called_peer inner;
};

static struct {
	long (*add)(int, long);
	unsigned long (*text)(const char *, unsigned short);
	int (*make)(void **, size_t);
	int (*nest)(int);
	int (*launch)(const void *, struct called_dim, struct called_dim, void *, size_t, void *);
	int (*handle)(void **, const void *);
	int (*name)(void **, void *, const char *);
	void (*submit)(long, const char *);
	void (*complete)(int, long);
	int (*serve)(struct called_request *);
} call;

static void find_functions(void *library)
{
	static const char *const names[] = {
		"called_add",    "called_text", "called_make",   "called_nest",     "called_launch",
		"called_handle", "called_name", "called_submit", "called_complete", "called_serve"};
	void **to = (void **)&call;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		to[i] = dlsym(library, names[i]);
}

static void *opened; /* last */

static bool open_library(const char *path)
{
	opened = dlopen(path, RTLD_NOW);
	if (opened)
		find_functions(opened);
	else
		printf("did error=%s\n", dlerror());
	return opened;
}

static void add(int a, long b)
{
	long long begin = now_ns();
	long result = call.add(a, b);

	printf("called_add tid=%d begin=%lld end=%lld a=%d b=%ld ret=%ld\n", thread_id(), begin,
	       now_ns(), a, b, result);
}

static void text(const char *words)
{
	long long begin = now_ns();
	unsigned long result = call.text(words, (unsigned short)strlen(words));

	printf("called_text tid=%d begin=%lld end=%lld text=%s n=%zu ret=%lu\n", thread_id(), begin,
	       now_ns(), words, strlen(words), result);
}

static void make(size_t bytes)
{
	void *out = NULL;
	int result = call.make(&out, bytes);

	printf("called_make bytes=%zu out=%zu ret=%d\n", bytes, (size_t)out, result);
}

/* Named in the program's own symbol table only. */
static __attribute__((noinline)) void kernel_of_caller(void)
{
	__asm__ volatile("");
}

static void launch(int n)
{
	void *handle = NULL, *other = NULL;
	const void *host = (const void *)(size_t)kernel_of_caller;

	for (int i = 0; i < n; i++) {
		unsigned u = (unsigned)i;

		call.launch(host, (struct called_dim){u + 1, 2, 3},
			    (struct called_dim){4, u + 5, 4000000000u}, NULL, u * 16,
			    (void *)(size_t)(u + 0x1000));
		printf("called_launch i=%d stream=%u\n", i, u + 0x1000);
	}
	call.handle(&handle, host);
	call.name(&other, (void *)0x7777000, "_Z5saxpyifPfS_");
	call.launch(handle, (struct called_dim){1, 1, 1}, (struct called_dim){1, 1, 1}, NULL, 0,
		    (void *)0x2000);
	call.launch(other, (struct called_dim){1, 1, 1}, (struct called_dim){1, 1, 1}, NULL, 0,
		    (void *)0x3000);
}

static void *thread_main(void *arg)
{
	for (int i = 0; i < 50; i++)
		add(i, (long)(size_t)arg);
	return NULL;
}

static void threads(long n)
{
	pthread_t list[64];

	for (long i = 0; i < n && i < 64; i++)
		pthread_create(&list[i], NULL, thread_main, (void *)(size_t)i);
	for (long i = 0; i < n && i < 64; i++)
		pthread_join(list[i], NULL);
}

static void *complete_main(void *arg)
{
	for (long i = (long)(size_t)arg - 1; i >= 0; i--) {
		long long begin = now_ns();

		call.complete((int)(i % 3), i);
		printf("called_complete id=%ld begin=%lld end=%lld tid=%d\n", i, begin, now_ns(),
		       thread_id());
	}
	return NULL;
}

static void jobs(long n)
{
	pthread_t thread;
	char name[32];

	for (long i = 0; i < n; i++) {
		long long begin = now_ns();

		snprintf(name, sizeof(name), "job-%ld", i);
		call.submit(i, name);
		printf("called_submit id=%ld begin=%lld end=%lld tid=%d\n", i, begin, now_ns(),
		       thread_id());
	}
	pthread_create(&thread, NULL, complete_main, (void *)(size_t)n);
	pthread_join(thread, NULL);
}

static void serve(long n)
{
	for (int i = 0; i < n; i++) {
		struct called_peer peer = {.port = (unsigned short)(8000 + i), .tag = "peertag"};
		struct called_request request = {.id = i,
						 .path = "/index",
						 .peer = &peer,
						 .inner = {.port = 1, .tag = "in"}};

		call.serve(&request);
	}
}

static void fork_and_add(long n)
{
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		for (int i = 0; i < n; i++)
			add(i, 77);
		fflush(stdout);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	printf("forked child=%d\n", child);
}

static void line(char *words)
{
	char *argument = strchr(words, ' ');
	long n;

	words[strcspn(words, "\n")] = '\0';
	argument = argument ? argument + 1 : "";
	n = atol(argument);
	if (!strncmp(words, "open", 4)) {
		open_library(argument);
	} else if (!strncmp(words, "close", 5)) {
		dlclose(opened);
	} else if (!strncmp(words, "add", 3)) {
		for (int i = 0; i < n; i++)
			add(i, i * 1000000007l);
	} else if (!strncmp(words, "text", 4)) {
		text(argument);
	} else if (!strncmp(words, "nowhere", 7)) {
		call.text(NULL, 1);
		call.text((const char *)0x10, 2);
		call.text((const char *)0x7fffffff0000, 3);
		call.add(1, 1);
	} else if (!strncmp(words, "make", 4)) {
		make((size_t)n);
	} else if (!strncmp(words, "nest", 4)) {
		call.nest((int)n);
	} else if (!strncmp(words, "launch", 6)) {
		launch((int)n);
	} else if (!strncmp(words, "threads", 7)) {
		threads(n);
	} else if (!strncmp(words, "fork", 4)) {
		fork_and_add(n);
	} else if (!strncmp(words, "jobs", 4)) {
		jobs(n);
	} else if (!strncmp(words, "serve", 5)) {
		serve(n);
	} else if (!strncmp(words, "plain", 5)) {
		void *got = malloc(4242);

		printf("malloc bytes=4242 ret=%zu\n", (size_t)got);
		free(got);
	} else if (!strncmp(words, "exec", 4)) {
		char *path = strtok(argument, " "), *library = strtok(NULL, " ");

		execl(path, path, library, (char *)NULL);
	}
	printf("did %s\n", words);
}

int main(int argc, char **argv)
{
	char words[4096];

	setvbuf(stdout, NULL, _IOLBF, 0);
	find_functions(RTLD_DEFAULT);
	for (int i = 1; i < argc; i++)
		if (!open_library(argv[i]))
			return 1;
	printf("ready pid=%d kernel=%zu\n", getpid(), (size_t)kernel_of_caller);
	while (fgets(words, sizeof(words), stdin))
		line(words);
	printf("bye\n");
	return 0;
}
