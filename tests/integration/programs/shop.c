// SPDX-License-Identifier: Apache-2.0
/*
 * The shop of docs/filter.md: four workers serve requests, a thread writes, the main thread counts.
 * Begins when it reads a line. Every record has a number `n` (a counter: its value), and is said in
 * a line "record …" with what a filter may ask, spans with the least and the most that they took.
 */
#define _GNU_SOURCE
#define WAFFLE_CATEGORY "web"
#include "log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "waffle_macros.h"

static atomic_int numbers;

static int next(void)
{
	return atomic_fetch_add(&numbers, 1) + 1;
}

static void say(const char *kind, const char *name, int n, const char *parent, int depth, int root,
		const char *more)
{
	char comm[16] = "";

	pthread_getname_np(pthread_self(), comm, sizeof(comm));
	printf("record what=%s name=%s n=%d parent=%s depth=%d root=%d tid=%d comm=%s %s\n", kind,
	       name, n, parent, depth, root, thread_id(), comm, more);
}

static void fill_cache(const char *key, int bytes, const char *parent, int depth, int root)
{
	char more[128];
	int n = next();

	EVENT("cache_miss", KV_I64("n", n), KV_STR("key", key), KV_I64("bytes", bytes));
	snprintf(more, sizeof(more), "func=fill_cache key=%s bytes=%d", key, bytes);
	say("event", "cache_miss", n, parent, depth, root, more);
}

static void retry(int attempt, const char *parent, int depth, int root)
{
	char more[64];
	int n = next();

	EVENT("retry", KV_I64("n", n), KV_I64("attempt", attempt));
	snprintf(more, sizeof(more), "func=retry attempt=%d", attempt);
	say("event", "retry", n, parent, depth, root, more);
}

#undef WAFFLE_CATEGORY
#define WAFFLE_CATEGORY "db"

static void query(int round, int root)
{
	static const char *const tables[] = {"orders", "users", "stock"};
	int n = next(), rows = round % 4 == 3 ? 0 : round % 4 * 1000;
	double cost = round % 5 * 0.625;
	bool cached = round % 2;
	char more[192];
	long long from = now_ns(), begun, ended;
	{
		SPAN("query", KV_STR("table", tables[round % 3]), KV_I64("rows", rows),
		     KV_F64("cost", cost), KV_BOOL("cached", cached), KV_I64("n", n));
		begun = now_ns();
		fill_cache(round % 2 ? "session:4" : "page:4", round % 3 * 1000000, "query", 2,
			   root);
		if (rows)
			usleep(300);
		ended = now_ns();
	}
	snprintf(more, sizeof(more),
		 "func=query table=%s rows=%d cost=%g cached=%d least=%lld most=%lld",
		 tables[round % 3], rows, cost, cached, ended - begun, now_ns() - from);
	say("span", "query", n, "request", 1, root, more);
}

static void flush(bool slow)
{
	int n = next();
	long long from = now_ns(), begun, ended;
	char more[128];
	{
		SPAN("flush", KV_I64("n", n));
		begun = now_ns();
		fill_cache("journal", 5000000, "flush", 1, n);
		usleep(slow ? 20000 : 200);
		ended = now_ns();
	}
	snprintf(more, sizeof(more), "func=flush least=%lld most=%lld", ended - begun,
		 now_ns() - from);
	say("span", "flush", n, "-", 0, n, more);
}

#undef WAFFLE_CATEGORY
#define WAFFLE_CATEGORY "web"

static void render(int root)
{
	int n = next();
	long long from = now_ns(), begun, ended;
	char more[128];
	{
		SPAN("render", KV_I64("n", n));
		begun = now_ns();
		ended = now_ns();
	}
	snprintf(more, sizeof(more), "func=render least=%lld most=%lld", ended - begun,
		 now_ns() - from);
	say("span", "render", n, "request", 1, root, more);
}

static void serve(int id, int round)
{
	const char *user = round % 3 ? "ann@example.com" : "bob@example.org";
	int n = next(), log;
	long long from = now_ns(), begun, ended;
	char more[192];
	{
		SPAN("request", KV_I64("n", n), KV_I64("id", id), KV_STR("user", user));
		begun = now_ns();
		query(round, n);
		render(n);
		retry(round % 5, "request", 1, n);
		log = next();
		if (round % 2)
			LOG_WARN("Timeout of the database", KV_I64("n", log));
		else
			LOG_INFO("request served", KV_I64("n", log));
		say("log", round % 2 ? "Timeout" : "served", log, "request", 1, n, "func=serve");
		ended = now_ns();
	}
	snprintf(more, sizeof(more), "func=serve id=%d user=%s least=%lld most=%lld", id, user,
		 ended - begun, now_ns() - from);
	say("span", "request", n, "-", 0, n, more);
}

static int rounds;

static void *worker(void *arg)
{
	int self = (int)(long)arg;
	char name[16];

	snprintf(name, sizeof(name), "worker-%d", self);
	pthread_setname_np(pthread_self(), name);
	for (int round = 0; round < rounds; round++)
		serve(self * 1000 + round, round);
	return NULL;
}

static void *writer(void *arg)
{
	pthread_setname_np(pthread_self(), "io");
	for (int round = 0; round < rounds / 4; round++)
		flush(round == 3);
	return arg;
}

static void count(int value)
{
	COUNTER("queue_depth", value);
	say("counter", "queue_depth", value, "-", 0, 0, "func=count");
}

int main(int argc, char **argv)
{
	pthread_t threads[5];
	char line[16];

	rounds = argc > 1 ? atoi(argv[1]) : 40;
	setlinebuf(stdout);
	puts("ready");
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	pthread_create(&threads[4], NULL, writer, NULL);
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, worker, (void *)i);
	for (int i = 0; i < rounds; i++) {
		count(i * 7); /* 0, 7, 14, … : all different, some above 100 */
		retry(i % 5, "-", 0, 0);
	}
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
	puts("done");
	return 0;
}
