// SPDX-License-Identifier: Apache-2.0
/*
 * Does what its standard input says, a line at a time, and says what it did:
 *	event N       N events "step event" with an argument that has a side effect
 *	span MS       a span of MS milliseconds
 *	begin, end    a span left open between two lines
 *	outer         the lines up to "back" happen inside a span
 *	evaluated     how often arguments were evaluated
 *	open FILE N   dlopen() FILE and call it N times at once, then each millisecond
 *	close         dlclose()
 *	flood MS      events as fast as it can
 *	threads N     N more threads, each with an event
 */
#include "log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#include "waffle.h"

static volatile long evaluations;
static long events;

static long evaluate(long value)
{
	evaluations++;
	return value;
}

static void event(long n)
{
	long long begin = now_ns();

	for (long i = 0; i < n; i++)
		WAFFLE_EVENT("step event", KV_I64("n", evaluate(events + i)));
	events += n;
	printf("did event=%ld begin=%lld end=%lld\n", n, begin, now_ns());
}

static void span(long ms)
{
	long long begin = now_ns(), inside, inside_end;

	{
		WAFFLE_SPAN("step span", KV_I64("ms", evaluate(ms)));
		inside = now_ns();
		sleep_ms(ms);
		inside_end = now_ns();
	}
	printf("did span=%ld begin=%lld inside=%lld inside_end=%lld end=%lld\n", ms, begin, inside,
	       inside_end, now_ns());
}

static void open_library(char *text)
{
	char *name = strtok(text, " "), *count = strtok(NULL, " ");
	long n = count ? atol(count) : 0;
	void *library = dlopen(name, RTLD_NOW);
	int (*call)(int) = NULL;
	long long opened = now_ns();

	if (library)
		*(void **)&call = dlsym(library, "library_call");
	if (!call) {
		printf("did error=%s\n", dlerror());
		return;
	}
	for (int i = 0; i < n; i++) {
		call(i);
		sleep_ms(1);
	}
	printf("did open=%ld opened=%lld end=%lld\n", n, opened, now_ns());
}

static void flood(long ms)
{
	long long begin = now_ns(), end = begin + ms * 1000000ll, now = begin;
	long n = 0;

	while (now < end) {
		for (int i = 0; i < 100; i++, n++)
			WAFFLE_EVENT("flood", KV_I64("n", n), KV_I64("m", n));
		now = now_ns();
	}
	printf("did flood=%ld begin=%lld end=%lld\n", n, begin, now);
}

static void *thread_main(void *arg)
{
	WAFFLE_SPAN("thread span", KV_I64("n", *(int *)arg));
	WAFFLE_EVENT("thread event", KV_I64("n", *(int *)arg));
	return NULL;
}

static void threads(long n)
{
	for (int i = 0; i < n; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, thread_main, &i);
		pthread_join(thread, NULL);
	}
	printf("did threads=%ld\n", n);
}

static bool line(char *text);

static bool outer(void)
{
	char text[4096];

	WAFFLE_SPAN("step outer", KV_I64("n", evaluate(1)));
	printf("did outer=1\n");
	while (fgets(text, sizeof(text), stdin) && strcmp(text, "back\n"))
		line(text);
	printf("did back=1\n");
	return true;
}

static bool line(char *text)
{
	static waffle_span_t open;
	char *argument = strchr(text, ' ');
	long n = argument ? atol(argument) : 0;

	text[strcspn(text, "\n")] = '\0';
	if (!strncmp(text, "event", 5)) {
		event(n);
	} else if (!strncmp(text, "span", 4)) {
		span(n);
	} else if (!strcmp(text, "begin")) {
		open = WAFFLE_BEGIN("step open", KV_I64("n", evaluate(2)));
		printf("did begin=%lld\n", now_ns());
	} else if (!strcmp(text, "end")) {
		WAFFLE_END(open);
		printf("did end=%lld\n", now_ns());
	} else if (!strcmp(text, "outer")) {
		return outer();
	} else if (!strcmp(text, "evaluated")) {
		printf("did evaluated=%ld\n", evaluations);
	} else if (!strncmp(text, "open", 4)) {
		open_library(argument + 1);
	} else if (!strncmp(text, "flood", 5)) {
		flood(n);
	} else if (!strncmp(text, "threads", 7)) {
		threads(n);
	} else if (!strncmp(text, "exec", 4)) {
		execl(argument + 1, argument + 1, (char *)NULL);
	}
	return true;
}

int main(void)
{
	char text[4096];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready pid=%d\n", getpid());
	while (fgets(text, sizeof(text), stdin) && line(text))
		;
	printf("bye events=%ld evaluated=%ld\n", events, evaluations);
	return 0;
}
