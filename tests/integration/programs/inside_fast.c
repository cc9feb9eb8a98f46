// SPDX-License-Identifier: Apache-2.0
/*
 * Sites of all forms that libwaffle has a fast path for, and what it must leave alone:
 *
 *	inside_fast keys               events and spans with 0 to 5 keys and with 16
 *	inside_fast deep COUNT         COUNT spans, each in the one before
 *	inside_fast nested COUNT       nested spans, while a handler makes spans, too
 *	inside_fast jump COUNT         the same, while the handler sometimes jumps out of them
 *	inside_fast ticks              an event for each line of input
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <waffle.h>

#define K(n) KV_I64("k" #n, (n) + 100)
#define BOTH(...)                                                                                  \
	do {                                                                                       \
		WAFFLE_EVENT("event" __VA_ARGS__);                                                 \
		WAFFLE_SPAN("span" __VA_ARGS__);                                                   \
	} while (0)

static void keys(void)
{
	BOTH();
	BOTH(, K(1));
	BOTH(, K(1), K(2));
	BOTH(, K(1), K(2), K(3));
	BOTH(, K(1), K(2), K(3), K(4));
	BOTH(, K(1), K(2), K(3), K(4), K(5));
	BOTH(, K(1), K(2), K(3), K(4), K(5), K(6), K(7), K(8), K(9), K(10), K(11), K(12), K(13),
	     K(14), K(15), K(16));
}

static void deep(long depth, long count)
{
	WAFFLE_SPAN("deep", KV_I64("depth", depth));
	if (depth + 1 < count)
		deep(depth + 1, count);
	WAFFLE_EVENT("at", KV_I64("depth", depth));
}

static volatile long handled;
static sigjmp_buf back;

static void on_timer(int signo)
{
	(void)signo;
	WAFFLE_SPAN("handler", KV_I64("i", handled));
	WAFFLE_EVENT("handled", KV_I64("i", handled));
	handled++;
}

static void on_jump(int signo)
{
	on_timer(signo);
	if (handled % 8 == 0)
		siglongjmp(back, 1);
}

static void nested(long count, void (*handler)(int))
{
	struct itimerspec often = {{0, 70000}, {0, 70000}};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	volatile long done = 0;
	timer_t timer;

	signal(SIGUSR1, handler);
	timer_create(CLOCK_MONOTONIC, &event, &timer);
	sigsetjmp(back, 1);
	timer_settime(timer, 0, &often, NULL);
	while (done < count) {
		long i = done++;

		WAFFLE_SPAN("outer", KV_I64("i", i));
		WAFFLE_EVENT("in outer", KV_I64("i", i), KV_I64("again", i));
		{
			WAFFLE_SPAN("inner", KV_I64("i", i), KV_I64("again", i));
			WAFFLE_EVENT("in inner", KV_I64("i", i));
		}
	}
	timer_delete(timer);
	signal(SIGUSR1, SIG_IGN);
	printf("handled %ld\n", handled);
}

static void ticks(void)
{
	char line[32];

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		WAFFLE_EVENT("tick", KV_I64("i", 1));
		printf("done\n");
	}
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long count = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(mode, "keys"))
		keys();
	else if (!strcmp(mode, "deep"))
		deep(0, count);
	else if (!strcmp(mode, "nested"))
		nested(count, on_timer);
	else if (!strcmp(mode, "jump"))
		nested(count, on_jump);
	else if (!strcmp(mode, "ticks"))
		ticks();
	else
		return 2;
	return 0;
}
