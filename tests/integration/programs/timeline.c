// SPDX-License-Identifier: Apache-2.0
/*
 * A program with all that a format for viewers has to show, the same in each run: "timeline COUNT
 * [slow] [LOCALE]". Spans nest, overlap, move to another thread, and have each kind of value. With
 * "slow" some of them take longer than a window of the formats (a second), and arrows span it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <waffle.h>

static waffle_span_t moved[64];
static waffle_event_id_t put;

static void values(long i)
{
	char text[300];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	WAFFLE_SPAN("values", KV_I64("i", i), KV_I64("least", INT64_MIN),
		    KV_U64("most", UINT64_MAX), KV_F64("real", i + 0.25), KV_F64("nan", NAN),
		    KV_BOOL("yes", i % 2), KV_PTR("at", (void *)0x1234), KV_STR("empty", ""),
		    KV_STR("null", NULL), KV_STR("long", text), KV_STR("bytes", "a\xff\"\n\\\x7f"),
		    KV_STR("word", "größer"), KV_I64("id", 7));
	WAFFLE_COUNTER("level", i);
	WAFFLE_COUNTER("share", i / 4.0);
	WAFFLE_COUNTER("huge", UINT64_MAX);
}

static void nested(long i)
{
	WAFFLE_SPAN("outer", KV_I64("i", i));
	{
		WAFFLE_SPAN("inner", KV_I64("i", i));
		WAFFLE_EVENT("inside", KV_I64("i", i));
		WAFFLE_LOG_WARN("careful", KV_I64("i", i));
	}
	WAFFLE_LOG_ERROR("broken", KV_I64("i", i));
}

/* Waits so long that the next record has a later time, even if the clock advances in steps. */
static void clock_advance(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 2000);
}

/* The second one outlives the first one. */
static void overlap(long i)
{
	waffle_span_t first = WAFFLE_BEGIN("first", KV_I64("i", i));
	waffle_span_t second = WAFFLE_BEGIN("second", KV_I64("i", i));

	WAFFLE_END(first);
	clock_advance();
	WAFFLE_END(second);
}

static void *mover(void *arg)
{
	long count = (long)arg;

	pthread_setname_np(pthread_self(), "mover");
	for (long i = 0; i < count; i++) {
		WAFFLE_SPAN("take", KV_CAUSE_EVENT(put), KV_I64("i", i));
		WAFFLE_END(moved[i]);
	}
	return NULL;
}

static void move(long count)
{
	pthread_t thread;

	for (long i = 0; i < count; i++)
		moved[i] = WAFFLE_BEGIN("moved", KV_I64("i", i));
	put = WAFFLE_EVENT("put", KV_I64("i", count));
	pthread_create(&thread, NULL, mover, (void *)count);
	pthread_join(thread, NULL);
}

/* Spans that begin in one window and end in another. */
static void slow(void)
{
	waffle_span_t early = WAFFLE_BEGIN("early", KV_I64("i", 1));
	waffle_span_t late = WAFFLE_BEGIN("late", KV_I64("i", 2));
	waffle_event_id_t cause = WAFFLE_EVENT("ask", KV_I64("i", 3));

	WAFFLE_BEGIN("left long ago", KV_I64("i", 6));
	{
		WAFFLE_SPAN("long", KV_I64("i", 4));
		usleep(2300000);
		WAFFLE_SPAN("answer", KV_CAUSE_EVENT(cause), KV_I64("i", 5));
		usleep(2300000);
	}
	WAFFLE_END(early);
	usleep(2300000);
	WAFFLE_END(late);
}

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1;
	waffle_span_t left;

	if (argc > 3 && !setlocale(LC_ALL, argv[3]))
		return 9;
	for (long i = 0; i < count; i++) {
		values(i);
		nested(i);
		overlap(i);
	}
	move(count < 64 ? count : 64);
	if (argc > 2 && !strcmp(argv[2], "slow"))
		slow();
	left = WAFFLE_BEGIN("left open", KV_I64("i", 0));
	(void)left;
	return 0;
}
