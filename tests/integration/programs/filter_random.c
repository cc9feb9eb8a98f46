// SPDX-License-Identifier: Apache-2.0
/*
 * A pseudo-random program for filters: filter_random SEED THREADS STEPS. Or filter_random brief N:
 * N threads, one after the other, each with a span and an event in it. Or filter_random named N: N
 * spans, with others and events in them, of names that are made at run time. Otherwise each thread
 * "worker-N" makes spans in each other, events, counters and log messages, each with a number `n`
 * of its own, and sleeps now and then. Some spans have a child on another thread, and some outlive
 * the span in which they began.
 */
#define _GNU_SOURCE
#include "log.h"

#include <pthread.h>

#include "waffle.h"
#include "waffle_named.h"

#define NESTED 6

struct worker {
	unsigned long long random;
	long n;
	long steps;
	char name[16];
	pthread_t thread;
};

static unsigned below(struct worker *worker, unsigned count)
{
	worker->random = worker->random * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(worker->random >> 33) % count;
}

static const char *text(struct worker *worker)
{
	static const char *const texts[] = {"alpha", "beta", "gamma", "", NULL};

	return texts[below(worker, 5)];
}

static void *helper_main(void *arg)
{
	pthread_setname_np(pthread_self(), "helper");
	WAFFLE_INJECT(*(waffle_context_t *)arg);
	WAFFLE_SPAN("helped");
	WAFFLE_EVENT("beside");
	return NULL;
}

static void help(void)
{
	waffle_context_t context = waffle_context_extract();
	pthread_t thread;

	pthread_create(&thread, NULL, helper_main, &context);
	pthread_join(thread, NULL);
}

static void step(struct worker *worker, int depth);

static void inside(struct worker *worker, int depth)
{
	if (below(worker, 12) == 0)
		sleep_ms(1 + below(worker, 12));
	if (depth < NESTED)
		for (unsigned count = below(worker, 4); count > 0; count--)
			step(worker, depth + 1);
	if (below(worker, 25) == 0)
		help();
}

static void outlive(struct worker *worker, int depth)
{
	waffle_span_t left;

	{
		WAFFLE_SPAN("around", KV_I64("n", worker->n));
		left = WAFFLE_BEGIN("survivor", KV_I64("n", worker->n));
		inside(worker, depth);
	}
	worker->n++;
	WAFFLE_EVENT("tick", KV_I64("n", worker->n), KV_STR("text", text(worker)));
	WAFFLE_END(left);
}

static void crowd(struct worker *worker)
{
	WAFFLE_SPAN("crowd", KV_I64("n", worker->n));
	for (unsigned i = below(worker, 200); i > 0; i--)
		WAFFLE_EVENT("one", KV_I64("n", worker->n++));
	if (below(worker, 2))
		sleep_ms(8);
}

static void step(struct worker *worker, int depth)
{
	long n = worker->n++;

	if (worker->steps-- <= 0)
		return;
	switch (below(worker, 10)) {
	case 0:
	case 1: {
		WAFFLE_SPAN("outer", KV_I64("n", n), KV_STR("text", text(worker)));
		inside(worker, depth);
		break;
	}
	case 2:
	case 3: {
		WAFFLE_SPAN("inner", KV_I64("n", n), KV_F64("ratio", n % 7 / 2.0));
		inside(worker, depth);
		break;
	}
	case 4: {
		WAFFLE_SPAN("leaf", KV_I64("n", n));
		break;
	}
	case 5:
		WAFFLE_COUNTER("queue", n);
		break;
	case 6:
		WAFFLE_LOG_WARN("low", KV_I64("n", n));
		break;
	case 7:
		if (depth < NESTED)
			outlive(worker, depth + 1);
		break;
	case 8:
		if (below(worker, 6) == 0)
			crowd(worker);
		break;
	default:
		WAFFLE_EVENT("tick", KV_I64("n", n), KV_STR("text", text(worker)));
	}
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;

	pthread_setname_np(pthread_self(), worker->name);
	while (worker->steps > 0)
		step(worker, 0);
	return NULL;
}

static void *brief_main(void *arg)
{
	WAFFLE_SPAN("outer", KV_I64("n", *(long *)arg));
	WAFFLE_EVENT("tick", KV_I64("n", *(long *)arg));
	return NULL;
}

static int brief(long count)
{
	pthread_t thread;

	for (long n = 0; n < count; n++)
		if (pthread_create(&thread, NULL, brief_main, &n) || pthread_join(thread, NULL))
			return 1;
	return 0;
}

static waffle_name_t *name_make(int kind, const char *name)
{
	static const waffle_key_t keys[] = {{WAFFLE_KEY_I64, "n"}, {WAFFLE_KEY_STR, "text"}};

	return waffle_name(&(struct waffle_name_spec){.size = sizeof(struct waffle_name_spec),
						      .kind = kind,
						      .name = name,
						      .keys = keys,
						      .key_count = 2});
}

static int named(long count)
{
	waffle_name_t *outer = name_make(WAFFLE_SITE_SPAN, "outer");
	waffle_name_t *inner = name_make(WAFFLE_SITE_SPAN, "inner");
	waffle_name_t *tick = name_make(WAFFLE_SITE_EVENT, "tick");

	for (long n = 0; n < count; n++) {
		waffle_scope_t around, within;
		const char *what = n % 3 ? "alpha" : "beta";

		waffle_scope_begin_named(&around, outer,
					 WAFFLE_VALUES(waffle_i64(n), waffle_str(what)));
		waffle_scope_begin_named(&within, inner, WAFFLE_VALUES(waffle_i64(n)));
		waffle_event_named(tick, WAFFLE_VALUES(waffle_i64(n), waffle_str(what)));
		if (n % 20 == 0)
			sleep_ms(5);
		waffle_scope_end(&within);
		waffle_event_named(tick, WAFFLE_VALUES(waffle_i64(n)));
		waffle_scope_end(&around);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct worker workers[8] = {0};
	long seed = argc > 1 ? atol(argv[1]) : 1, threads = argc > 2 ? atol(argv[2]) : 1;
	long steps = argc > 3 ? atol(argv[3]) : 100;

	if (argc > 2 && !strcmp(argv[1], "brief"))
		return brief(atol(argv[2]));
	if (argc > 2 && !strcmp(argv[1], "named"))
		return named(atol(argv[2]));
	for (long i = 0; i < threads && i < 8; i++) {
		workers[i] = (struct worker){
			.random = (unsigned long long)(seed * 1000 + i),
			.n = i * 1000000,
			.steps = steps,
		};
		snprintf(workers[i].name, sizeof(workers[i].name), "worker-%ld", i);
		pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]);
	}
	for (long i = 0; i < threads && i < 8; i++)
		pthread_join(workers[i].thread, NULL);
	return 0;
}
