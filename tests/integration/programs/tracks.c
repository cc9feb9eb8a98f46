// SPDX-License-Identifier: Apache-2.0
/*
 * A program with tracks: "tracks MODE". It prints the times that its records should have, which the
 * test compares with the capture.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <waffle.h>
#include <waffle_track.h>
#include <waffle_trace.h>

#define MS 1000000ull

static unsigned long long now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned long long)now.tv_sec * 1000000000 + (unsigned long long)now.tv_nsec;
}

static waffle_name_t *name_of(int kind, const char *text)
{
	static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "i"}};

	return waffle_name(&(struct waffle_name_spec){
		.size = sizeof(struct waffle_name_spec),
		.kind = kind,
		.name = text,
		.category = "device",
		.keys = keys,
		.key_count = kind == WAFFLE_SITE_COUNTER ? 0 : 1,
	});
}

/* A line of what is expected: kind, i, track, start, end. */
static void expect(const char *kind, int i, const char *track, unsigned long long start,
		   unsigned long long end)
{
	printf("%s %d %s %llu %llu\n", kind, i, track, start, end);
}

static void complete(waffle_track_t *track, const char *lane, waffle_name_t *name, int i,
		     unsigned long long start, unsigned long long duration)
{
	waffle_span_complete(track, name, start, duration, WAFFLE_VALUES(waffle_i64(i)));
	expect("span", i, lane, start, start + duration);
}

/* Late, early, out of order, overlapping, empty, and with parents on the thread. */
static void device(void)
{
	waffle_name_t *work = name_of(WAFFLE_SITE_SPAN, "work");
	waffle_name_t *mark = name_of(WAFFLE_SITE_EVENT, "mark");
	waffle_name_t *load = name_of(WAFFLE_SITE_COUNTER, "load");
	waffle_track_t *a = waffle_track("engine a", "device 0", NULL);
	waffle_track_t *b = waffle_track("engine b", "device 0", NULL);
	unsigned long long now = now_ns();

	WAFFLE_SPAN("host");
	complete(a, "engine a", work, 0, now - 10000 * MS, 2000 * MS); /* before the capture */
	complete(a, "engine a", work, 1, now + 1 * MS, 3 * MS);
	complete(a, "engine a", work, 2, now - 5 * MS, 2 * MS); /* out of order */
	complete(a, "engine a", work, 3, now + 2 * MS, 4 * MS); /* overlaps 1 */
	complete(a, "engine a", work, 4, now + 2 * MS, 1 * MS); /* inside 1 and 3 */
	complete(a, "engine a", work, 5, now + 2 * MS, 0);
	complete(b, "engine b", work, 6, now + 5000 * MS, 1000 * MS); /* after the capture */
	waffle_event_at(b, mark, now + 7 * MS, WAFFLE_VALUES(waffle_i64(7)));
	expect("event", 7, "engine b", now + 7 * MS, 0);
	waffle_counter_at(b, load, now + 8 * MS, waffle_f64(0.5));
	expect("counter", 8, "engine b", now + 8 * MS, 0);
}

/* A clock that begins at 1000 and runs twice as fast as CLOCK_MONOTONIC, later three times. */
static void clocks(void)
{
	waffle_name_t *work = name_of(WAFFLE_SITE_SPAN, "work");
	waffle_clock_t *clock = waffle_clock("device");
	waffle_track_t *track = waffle_track("own clock", NULL, clock);
	unsigned long long now = now_ns();

	waffle_clock_pair(clock, 1000, now);
	waffle_span_complete(track, work, 1500, 100, WAFFLE_VALUES(waffle_i64(0)));
	expect("span", 0, "own clock", now + 500, now + 600);
	waffle_clock_pair(clock, 2001000, now + 1000000);
	waffle_clock_pair(clock, 8001000, now + 3000000);
	waffle_span_complete(track, work, 1001000, 500000, WAFFLE_VALUES(waffle_i64(1)));
	expect("span", 1, "own clock", now + 500000, now + 750000);
	waffle_span_complete(track, work, 1701000, 600000, WAFFLE_VALUES(waffle_i64(2)));
	expect("span", 2, "own clock", now + 850000, now + 1100000);
	waffle_span_complete(track, work, 11001000, 3000000, WAFFLE_VALUES(waffle_i64(3)));
	expect("span", 3, "own clock", now + 4000000, now + 5000000);
}

/* Spans whose children are recorded first, and contexts of another thread. */
static void nested(void)
{
	waffle_name_t *outer = name_of(WAFFLE_SITE_SPAN, "outer");
	waffle_name_t *inner = name_of(WAFFLE_SITE_SPAN, "inner");
	waffle_track_t *track = waffle_track("nested", NULL, NULL);
	unsigned long long now = now_ns();

	for (int i = 0; i < 100; i++) {
		unsigned long long from = now + (unsigned)i * MS;
		waffle_reserved_t span = waffle_span_reserve((waffle_context_t){0, 0, 0});

		waffle_span_complete_in(track, inner, span.own, from + 100, 1000,
					WAFFLE_VALUES(waffle_i64(i)));
		waffle_span_complete_reserved(track, outer, span, from, 500000,
					      WAFFLE_VALUES(waffle_i64(i)));
		expect("span", i, "nested", from, from + 500000);
	}
}

static void *beside_main(void *arg)
{
	waffle_name_t *work = name_of(WAFFLE_SITE_SPAN, "work");
	waffle_clock_t *clock = waffle_clock("shared");
	waffle_track_t *track = waffle_track("shared", NULL, clock);
	unsigned long long now = now_ns();

	for (int i = 0; i < 5000; i++) {
		int number = (int)(long)arg * 5000 + i;

		/* The same line each time, so that no reader may see another. */
		waffle_clock_pair(clock, now + (unsigned)number, now + (unsigned)number);
		waffle_span_complete(track, work, now + (unsigned)number * 10, 5,
				     WAFFLE_VALUES(waffle_i64(number)));
	}
	return NULL;
}

/* Threads that use one track and its clock while they add pairs. */
static void beside(void)
{
	pthread_t all[4];

	for (long i = 0; i < 4; i++)
		pthread_create(&all[i], NULL, beside_main, (void *)i);
	for (int i = 0; i < 4; i++)
		pthread_join(all[i], NULL);
}

/* Spans that come later than others, and overlap them, in any way. */
static void windows(void)
{
	waffle_name_t *work = name_of(WAFFLE_SITE_SPAN, "work");
	waffle_track_t *track = waffle_track("windows", "late", NULL);
	unsigned long long now = now_ns();
	static const unsigned char at[][2] = {{0, 10}, {5, 20}, {12, 3}, {2, 30}, {1, 2},
					      {40, 5}, {41, 1}, {39, 7}, {60, 1}};

	for (int i = 0; i < (int)(sizeof(at) / sizeof(at[0])); i++) {
		complete(track, "windows", work, i, now + at[i][0] * MS, at[i][1] * MS);
		waffle_trace_flush(); /* ends a window of a stream */
	}
}

static void wrong(void)
{
	waffle_name_t *work = name_of(WAFFLE_SITE_SPAN, "work");
	waffle_track_t *track = waffle_track("wrong", NULL, NULL);
	unsigned long long now = now_ns();
	static const unsigned long long day = 86400ull * 1000 * MS;

	complete(track, "wrong", work, 0, now, 5);
	waffle_span_complete(track, work, ~0ull, 5, WAFFLE_VALUES(waffle_i64(1)));
	waffle_span_complete(track, work, now, ~0ull, WAFFLE_VALUES(waffle_i64(2)));
	waffle_span_complete(track, work, now + 31 * day, 5, WAFFLE_VALUES(waffle_i64(3)));
	waffle_span_complete(track, work, (unsigned long long)time(NULL) * 1000 * MS, 5,
			     WAFFLE_VALUES(waffle_i64(4)));
	complete(track, "wrong", work, 5, now, 6);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "device"))
		device();
	else if (!strcmp(mode, "clocks"))
		clocks();
	else if (!strcmp(mode, "nested"))
		nested();
	else if (!strcmp(mode, "beside"))
		beside();
	else if (!strcmp(mode, "windows"))
		windows();
	else if (!strcmp(mode, "wrong"))
		wrong();
	else
		return 2;
	if (argc > 2)
		usleep((unsigned)atoi(argv[2]) * 1000); /* a tracer has to map its rings */
	puts("end");
	return 0;
}
