// SPDX-License-Identifier: Apache-2.0
/*
 * Does things that involve libwaffle in threads with little stack: "inside_stack WHAT LIBRARY
 * [COUNT]". With a COUNT so many threads with the least stack that the system allows do it.
 * Otherwise one thread does it on a stack of 1 MiB, and the program prints how many bytes of that
 * it used beyond those of a thread that does nothing.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <waffle.h>
#include <waffle_named.h>
#include <waffle_trace.h>
#include <waffle_track.h>

#define STACK_BYTES (1 << 20)
#define GUARD_BYTES 65536
#define PAINT 0x5a

static const char *library;

static void nothing_do(void)
{
}

static void sites_do(void)
{
	WAFFLE_FRAME();
	WAFFLE_SPAN("span", KV_STR("text", "a text"), KV_I64("number", 1));
	WAFFLE_EVENT("event", KV_I64("number", 2));
	WAFFLE_COUNTER("counter", 3);
}

static void library_do(void)
{
	void *handle = dlopen(library, RTLD_NOW);

	if (!handle)
		abort();
	dlclose(handle);
}

static void fork_do(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		WAFFLE_EVENT("child");
		waffle_trace_stop();
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		abort();
}

static void names_do(void)
{
	static long number;
	char text[32];
	waffle_key_t keys[] = {{WAFFLE_KEY_I64, "number"}, {WAFFLE_KEY_STR, "text"}};
	waffle_name_t *name;

	snprintf(text, sizeof(text), "name %ld", __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED));
	name = waffle_name(&(struct waffle_name_spec){.size = sizeof(struct waffle_name_spec),
						      .kind = WAFFLE_SITE_EVENT,
						      .name = text,
						      .keys = keys,
						      .key_count = 2});
	waffle_event_named(name, WAFFLE_VALUES(waffle_i64(1), waffle_str("a text")));
	waffle_event_at(waffle_track(text, "group", NULL), name, 1,
			WAFFLE_VALUES(waffle_i64(2), waffle_str("a text")));
}

static void context_do(void)
{
	waffle_context_t context;

	WAFFLE_FRAME();
	{
		WAFFLE_SPAN("outer");
		context = waffle_context_extract();
	}
	WAFFLE_INJECT(context);
	WAFFLE_SPAN("inner");
}

static void error_do(void)
{
	WAFFLE_FRAME();
	WAFFLE_SPAN("failing");
	WAFFLE_LOG_ERROR("it failed", KV_I64("number", 1));
}

static void mode_do(void)
{
	waffle_mode_set(WAFFLE_MODE_OFF);
	waffle_mode_set(WAFFLE_MODE_FAST);
}

static void recording_do(void)
{
	waffle_trace_stop();
	if (waffle_trace_start("again.waffle", NULL))
		abort();
	WAFFLE_EVENT("again");
	waffle_trace_flush();
}

static void handler(int signo)
{
	(void)signo;
	_exit(0);
}

/* A fault in a child, whose handler has the least alternate stack that Linux recommends. */
static void fault_do(void)
{
	stack_t stack = {.ss_size = (size_t)sysconf(_SC_SIGSTKSZ)};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
	unsigned char *memory = mmap(NULL, stack.ss_size + GUARD_BYTES, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	int status;

	mprotect(memory, GUARD_BYTES, PROT_NONE);
	stack.ss_sp = memory + GUARD_BYTES;
	sigaltstack(&stack, NULL);
	sigaction(SIGSEGV, &action, NULL);
	/* Full mode watches faults, whether it records or not. */
	waffle_mode_set(WAFFLE_MODE_FULL);
	child = fork();
	if (!child)
		memory[0] = 0; /* the guard */
	if (waitpid(child, &status, 0) != child || status)
		abort();
}

static const struct {
	const char *name;
	void (*call)(void);
} things[] = {{"nothing", nothing_do}, {"sites", sites_do},         {"library", library_do},
	      {"fork", fork_do},       {"names", names_do},         {"context", context_do},
	      {"error", error_do},     {"recording", recording_do}, {"mode", mode_do},
	      {"fault", fault_do}};

static void *thread_main(void *arg)
{
	void (*const *call)(void) = arg;

	(*call)();
	return NULL;
}

static void thread_run(void (*const *call)(void), void *stack)
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	if (stack ? pthread_attr_setstack(&attributes, stack, STACK_BYTES)
		  : pthread_attr_setstacksize(&attributes, (size_t)sysconf(_SC_THREAD_STACK_MIN)))
		abort();
	if (pthread_create(&thread, &attributes, thread_main, (void *)call))
		abort();
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attributes);
}

static long used_by(void (*const *call)(void))
{
	unsigned char *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long used = STACK_BYTES;

	memset(stack, PAINT, STACK_BYTES);
	thread_run(call, stack);
	while (used && stack[STACK_BYTES - used] == PAINT)
		used--;
	munmap(stack, STACK_BYTES);
	return used;
}

int main(int argc, char **argv)
{
	size_t thing = 0;

	library = argv[2];
	while (strcmp(things[thing].name, argv[1]))
		if (++thing == sizeof(things) / sizeof(*things))
			return 2;
	for (long i = argc > 3 ? atol(argv[3]) : 0; i > 0; i--)
		thread_run(&things[thing].call, NULL);
	if (argc == 3)
		printf("%ld\n", used_by(&things[thing].call) - used_by(&things[0].call));
	return 0;
}
