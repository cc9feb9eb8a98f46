// SPDX-License-Identifier: Apache-2.0
/*
 * A program whose records go through a chain of processors: "processed MODE [ARGUMENT…]".
 *
 *	steps N          N spans, each with an event inside, and one counter and log message in all
 *	wide N          N spans, each with 100 events of 200 bytes
 *	callback CHAIN   starts the chain itself, with the callbacks "odd" and "print"
 *	late             has the callback "odd" only after 10 of 20 steps
 *	errors           what the functions return for wrong calls
 *	strange [- LOCALE]  names and texts that could harm a terminal or JSON
 *	crash            10 steps, then abort()
 *	sleep N          N steps, then a second of sleep
 *	ticking          a step every 10 ms, for ever
 *	fork             5 steps, and 5 in a child
 */
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <waffle.h>
#include <waffle_process.h>
#include <waffle_trace.h>

static void steps(long from, long count)
{
	for (long i = from; i < from + count; i++) {
		WAFFLE_SPAN("step", KV_I64("i", i), KV_STR("parity", i % 2 ? "odd" : "even"));
		WAFFLE_EVENT("tick", KV_I64("i", i));
	}
}

static void wide(long count)
{
	char text[201];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (long i = 0; i < count; i++) {
		WAFFLE_SPAN("wide", KV_I64("i", i));
		for (int event = 0; event < 100; event++)
			WAFFLE_EVENT("text", KV_STR("text", text));
		/* The ring has room for the next one. */
		usleep(1000);
	}
}

static long calls, answer;

static bool odd(const struct waffle_record *record, void *arg)
{
	calls++;
	*(pthread_t *)arg = pthread_self();
	for (size_t i = 0; i < record->value_count; i++)
		if (!strcmp(record->values[i].key, "i"))
			return record->values[i].i64 % 2;
	return false;
}

/* A callback may have sites of its own. */
static bool print(const struct waffle_record *record, void *arg)
{
	WAFFLE_EVENT("inside of a callback");
	printf("%s %s depth %s parent %d trace %d values %zu dur %s\n",
	       record->kind == WAFFLE_RECORD_SPAN ? "span" : "event", record->name,
	       (const char *)arg, !!record->parent, !!(record->trace_hi | record->trace_lo),
	       record->value_count, record->end_ns > record->start_ns ? "some" : "none");
	return true;
}

static void callback(const char *chain)
{
	pthread_t thread = pthread_self();

	waffle_process_callback("odd", odd, &thread);
	waffle_process_callback("print", print, "?");
	printf("start %d\n", waffle_process_start(chain));
	steps(0, 10);
	printf("flush %d\n", waffle_trace_flush());
	printf("calls %ld, in a thread of its own: %d\n", calls,
	       !pthread_equal(thread, pthread_self()));
	printf("stop %d\n", waffle_process_stop());
	steps(10, 10);
	printf("calls %ld\n", calls);
}

static bool stops(const struct waffle_record *record, void *arg)
{
	(void)record;
	(void)arg;
	answer = waffle_process_stop();
	return true;
}

static void errors(void)
{
	printf("no name %d\n", waffle_process_callback("", odd, NULL));
	printf("bad name %d\n", waffle_process_callback("a b", odd, NULL));
	printf("no text %d\n", waffle_process_start(NULL));
	printf("nothing to stop %d\n", waffle_process_stop());
	printf("bad text %d\n", waffle_process_start("nonsense"));
	printf("start %d\n", waffle_process_start("call(stops)"));
	printf("again %d\n", waffle_process_start("log"));
	waffle_process_callback("stops", stops, NULL);
	steps(0, 1);
	waffle_trace_flush();
	printf("stop by a callback %ld\n", answer);
	printf("remove %d\n", waffle_process_callback("stops", NULL, NULL));
	printf("stop %d\n", waffle_process_stop());
}

static void strange(void)
{
	static const char text[] = "a\033[31m\n\"\\\x7f\xc2\x9b \xe2\x80\xae \xff \xc3\xa4";

	WAFFLE_EVENT("strange \x1b]0;x\x07", KV_STR("text", text), KV_STR("null", NULL),
		     KV_F64("nan", NAN), KV_F64("third", 1.0 / 3), KV_BOOL("yes", 1),
		     KV_U64("most", ~0ull), KV_PTR("address", (void *)0x10));
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "", *argument = argc > 2 ? argv[2] : "10";

	if (argc > 3 && !setlocale(LC_ALL, argv[3]))
		return 3;
	if (!strcmp(mode, "steps") || !strcmp(mode, "sleep")) {
		steps(0, atol(argument));
		WAFFLE_COUNTER("depth", 42);
		WAFFLE_LOG_WARN("careful", KV_I64("code", 7));
	} else if (!strcmp(mode, "wide")) {
		wide(atol(argument));
	} else if (!strcmp(mode, "callback")) {
		callback(argument);
	} else if (!strcmp(mode, "late")) {
		pthread_t thread;

		steps(0, 10);
		waffle_trace_flush();
		waffle_process_callback("odd", odd, &thread);
		steps(10, 10);
		printf("flush %d\n", waffle_trace_flush());
		printf("calls %ld\n", calls);
	} else if (!strcmp(mode, "errors")) {
		errors();
	} else if (!strcmp(mode, "strange")) {
		strange();
	} else if (!strcmp(mode, "crash")) {
		steps(0, 10);
		abort();
	} else if (!strcmp(mode, "ticking")) {
		for (long i = 0;; i++, usleep(10000))
			steps(i, 1);
	} else if (!strcmp(mode, "fork")) {
		steps(0, 5);
		fflush(stdout);
		if (!fork()) {
			steps(100, 5);
			return 0;
		}
		wait(NULL);
	}
	if (!strcmp(mode, "sleep"))
		sleep(1);
	printf("end\n");
	return 0;
}
