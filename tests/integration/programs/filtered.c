// SPDX-License-Identifier: Apache-2.0
/*
 * Spans and events that filters tell apart. Does what its arguments say, one after the other, or
 * without arguments the lines of its standard input, and says what it did:
 *	events N          N events "copy": bytes i * 100, kind "host" or "device", ratio i / 2.0
 *	spans N SLOW MS   N spans "request", SLOW of them MS long, each with an event inside
 *	levels N          spans "level" in each other, N deep, an event "leaf" in the innermost
 *	family MS         a span "slow" of MS, with an event, a span and a log message inside
 *	nested OUTER INNER  spans "outer" and "inner" of so many ms, "brief" ones beside
 *	crowd N MS        N events "crowd" in a span "slow" of MS
 *	threads MS        a span "slow" with an event and a span of another thread
 *	survivor MS       a span "survivor" that begins in a span "slow" and outlives it
 *	rival MS          spans "slow" and "rival" that overlap, an event in each
 *	hold N MS         N spans "held" open at a time, then ended after MS
 *	long MS           a span "long" with four full strings
 *	traces N          N traces, of two threads each
 *	fork N            a child process that makes N events "copy"
 *	library FILE N    opens FILE and calls it N times
 *	link MS           an event "cause" and a span "effect" of MS with a link to it
 *	wait              prints its pid and reads a line
 */
#include "log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "waffle.h"

static void events(long n)
{
	for (long i = 0; i < n; i++)
		WAFFLE_EVENT("copy", KV_I64("bytes", i * 100),
			     KV_STR("kind", i % 2 ? "device" : "host"), KV_F64("ratio", i / 2.0));
	printf("did events=%ld\n", n);
}

static void spans(long n, long slow, long ms)
{
	for (long i = 0; i < n; i++) {
		bool is_slow = slow && i % (n / slow) == 0;
		long long begin = now_ns();

		{
			WAFFLE_SPAN("request", KV_I64("n", i));
			WAFFLE_EVENT("in request", KV_I64("n", i));
			if (is_slow)
				sleep_ms(ms);
		}
		if (is_slow)
			printf("slow n=%ld begin=%lld end=%lld\n", i, begin, now_ns());
	}
	printf("did spans=%ld\n", n);
}

static void levels(long n)
{
	WAFFLE_SPAN("level", KV_I64("left", n));
	if (n > 1)
		levels(n - 1);
	else
		WAFFLE_EVENT("leaf");
}

static void family(long ms)
{
	WAFFLE_SPAN("slow", KV_I64("ms", ms));
	WAFFLE_EVENT("first");
	{
		WAFFLE_SPAN("part", KV_STR("what", "a part"));
		WAFFLE_EVENT("deep");
	}
	sleep_ms(ms);
	WAFFLE_LOG_INFO("last");
}

static void nested(long outer_ms, long inner_ms)
{
	WAFFLE_SPAN("outer");
	{
		WAFFLE_SPAN("brief");
		WAFFLE_EVENT("in brief");
	}
	{
		WAFFLE_SPAN("inner");
		WAFFLE_EVENT("in inner");
		sleep_ms(inner_ms);
	}
	sleep_ms(outer_ms);
	WAFFLE_EVENT("in outer");
}

static void crowd(long n, long ms)
{
	WAFFLE_SPAN("slow", KV_I64("ms", ms));
	for (long i = 0; i < n; i++)
		WAFFLE_EVENT("crowd", KV_I64("n", i));
	sleep_ms(ms);
}

static void *other_thread(void *arg)
{
	WAFFLE_INJECT(*(waffle_context_t *)arg);
	WAFFLE_EVENT("beside");
	WAFFLE_SPAN("beside span");
	return NULL;
}

static void beside(void)
{
	waffle_context_t context = waffle_context_extract();
	pthread_t thread;

	pthread_create(&thread, NULL, other_thread, &context);
	pthread_join(thread, NULL);
}

static void threads(long ms)
{
	WAFFLE_SPAN("slow", KV_I64("ms", ms));
	beside();
	sleep_ms(ms);
}

static void survivor(long ms)
{
	waffle_span_t left;

	{
		WAFFLE_SPAN("slow", KV_I64("ms", ms));
		left = WAFFLE_BEGIN("survivor");
		sleep_ms(ms);
	}
	events(1);
	WAFFLE_END(left);
}

static void rival(long ms)
{
	waffle_span_t slow = WAFFLE_BEGIN("slow", KV_I64("ms", ms)), other = WAFFLE_BEGIN("rival");

	{
		WAFFLE_INJECT(waffle_span_context(slow));
		WAFFLE_EVENT("in slow");
	}
	{
		WAFFLE_INJECT(waffle_span_context(other));
		WAFFLE_EVENT("in rival");
	}
	WAFFLE_END(other);
	sleep_ms(ms);
	WAFFLE_END(slow);
}

static void hold(long n, long ms)
{
	waffle_span_t *open = calloc((size_t)n, sizeof(*open));

	for (long i = 0; i < n; i++)
		open[i] = WAFFLE_BEGIN("held", KV_I64("n", i));
	printf("holds n=%ld\n", n);
	sleep_ms(ms);
	for (long i = 0; i < n; i++)
		WAFFLE_END(open[i]);
	free(open);
	printf("did held=%ld\n", n);
}

static void long_span(long ms)
{
	char text[301];

	memset(text, 'x', 300);
	text[300] = '\0';
	WAFFLE_SPAN("long", KV_STR("a", text), KV_STR("b", text), KV_STR("c", text),
		    KV_STR("d", text));
	sleep_ms(ms);
}

static void traces(long n)
{
	for (long i = 0; i < n; i++) {
		WAFFLE_SPAN("root", KV_I64("n", i));
		WAFFLE_EVENT("in root", KV_I64("n", i));
		beside();
	}
	printf("did traces=%ld\n", n);
}

static void fork_child(long n)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		events(n);
		spans(10, 2, 15);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	printf("did fork=%d\n", pid);
}

static void library(const char *file, long n)
{
	void *opened = dlopen(file, RTLD_NOW);
	int (*call)(int) = NULL;
	char line[64];

	if (opened)
		*(void **)&call = dlsym(opened, "library_call");
	/* Waits until it is armed, since attach does not stop the process. */
	printf("opened\n");
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
	for (long i = 0; call && i < n; i++)
		call((int)i);
	printf("did library=%ld\n", call ? n : -1);
}

static void link_spans(long ms)
{
	waffle_event_id_t cause = WAFFLE_EVENT("cause");

	WAFFLE_SPAN("effect", KV_CAUSE_EVENT(cause), KV_STR("text", "linked"));
	sleep_ms(ms);
}

static void pause_here(void)
{
	char line[64];

	printf("waiting pid=%d\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

static void obey(char *text)
{
	char *verb = strtok(text, " \n"), *words[3] = {NULL};
	long a, b, c;

	for (int i = 0; i < 3; i++)
		words[i] = strtok(NULL, " \n");
	a = words[0] ? atol(words[0]) : 0;
	b = words[1] ? atol(words[1]) : 0;
	c = words[2] ? atol(words[2]) : 0;
	if (!strcmp(verb, "events"))
		events(a);
	else if (!strcmp(verb, "spans"))
		spans(a, b, c);
	else if (!strcmp(verb, "levels"))
		levels(a);
	else if (!strcmp(verb, "family"))
		family(a);
	else if (!strcmp(verb, "nested"))
		nested(a, b);
	else if (!strcmp(verb, "crowd"))
		crowd(a, b);
	else if (!strcmp(verb, "threads"))
		threads(a);
	else if (!strcmp(verb, "survivor"))
		survivor(a);
	else if (!strcmp(verb, "rival"))
		rival(a);
	else if (!strcmp(verb, "hold"))
		hold(a, b);
	else if (!strcmp(verb, "long"))
		long_span(a);
	else if (!strcmp(verb, "traces"))
		traces(a);
	else if (!strcmp(verb, "fork"))
		fork_child(a);
	else if (!strcmp(verb, "library"))
		library(words[0], b);
	else if (!strcmp(verb, "link"))
		link_spans(a);
	else if (!strcmp(verb, "wait"))
		pause_here();
	else
		fprintf(stderr, "what is '%s'?\n", verb);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	char line[4096];

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 1)
		printf("ready\n");
	for (int i = 1; i < argc; i++)
		obey(argv[i]);
	while (argc == 1 && fgets(line, sizeof(line), stdin))
		obey(line);
	return 0;
}
