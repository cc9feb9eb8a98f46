// SPDX-License-Identifier: Apache-2.0
/*
 * One thread that does nothing but pass a site. An operation is a turn of the loop (window.h).
 *
 *	emit MODE CPU SECONDS
 *
 * `empty` has no site; `event` and `span` have two keys, `text` is an event with four integers and
 * a string, `slow` a span of which one in 10,000 takes a millisecond more. All stay dormant unless
 * something arms them. Prints the number of turns on stderr at its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <waffle_macros.h>

#include "window.h"

/* The loops differ in the site only; the empty asm keeps them from being folded. */
#define LOOP(turns, site)                                                                          \
	for (long i = 0; i < (turns); i++) {                                                       \
		site;                                                                              \
		__asm__ __volatile__("" ::: "memory");                                             \
	}

static __attribute__((noinline)) void loop_empty(long turns)
{
	LOOP(turns, (void)0)
}

static __attribute__((noinline)) void loop_event(long turns)
{
	LOOP(turns, EVENT("event", KV_I64("turn", i), KV_I64("turns", turns)))
}

static __attribute__((noinline)) void loop_span(long turns)
{
	LOOP(turns, SPAN("span", KV_I64("turn", i), KV_I64("turns", turns)))
}

static __attribute__((noinline)) void loop_text(long turns)
{
	LOOP(turns, EVENT("text", KV_I64("a", i), KV_I64("b", turns), KV_I64("c", 3),
			  KV_I64("d", 4), KV_STR("path", "/var/lib/data/shard-0007.bin")))
}

static void maybe_slow(void)
{
	static long spans;

	if (++spans % 10000)
		return;
	for (uint64_t until = window_now() + 1000000; window_now() < until;)
		;
}

static __attribute__((noinline)) void loop_slow(long turns)
{
	LOOP(turns, SPAN("slow", KV_I64("turn", i), KV_I64("turns", turns)); maybe_slow())
}

static const struct {
	const char *name;
	void (*loop)(long turns);
} modes[] = {{"empty", loop_empty},
	     {"event", loop_event},
	     {"span", loop_span},
	     {"text", loop_text},
	     {"slow", loop_slow}};

int main(int argc, char **argv)
{
	void (*loop)(long turns) = NULL;
	struct window window;
	uint64_t before, took;
	long turns = 100, total = 0;
	bool more;

	for (size_t i = 0; argc == 4 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name))
			loop = modes[i].loop;
	if (!loop) {
		fprintf(stderr, "usage: emit empty|event|span|text|slow CPU SECONDS\n");
		return 2;
	}
	window_pin(atoi(argv[2]));
	window = window_begin(atof(argv[3]));
	do {
		before = window_now();
		loop(turns);
		total += turns;
		took = window_now() - before;
		more = window_count(&window, (uint64_t)turns);
		/* About 50 us between two looks at the clock, armed or dormant. */
		turns = (long)((double)turns * 50e3 / (double)(took + 1)) + 1;
	} while (more);
	fprintf(stderr, "%ld\n", total);
	return 0;
}
