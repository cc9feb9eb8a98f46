// SPDX-License-Identifier: Apache-2.0
/*
 * cpu_quota [WAY] SEED: the victim computes in a cgroup that may use a fifth of a CPU. WAY shared:
 * it sleeps after each millisecond, and another thread of the cgroup uses up most of the quota.
 */
#include "zoo.h"

#define ROUNDS 6

static bool shared;
static struct zoo_who sibling_who;
static pthread_barrier_t together;

static void sibling(void)
{
	zoo_enter_cgroup("ZOO_CPU");
	sibling_who = zoo_self();
	pthread_barrier_wait(&together);
	while (!zoo_over)
		zoo_burn(1);
}

static void victim_works(long ms)
{
	while (ms-- > 0) {
		zoo_burn(1);
		if (shared)
			sleep_ms(1);
	}
}

static long long throttled_ns(void)
{
	char name[512], line[128];
	long long ns = -1;
	FILE *file;

	snprintf(name, sizeof(name), "%s/cpu.stat", getenv("ZOO_CPU") ?: "");
	file = fopen(name, "r");
	zoo_need(file != NULL, name);
	while (fgets(line, sizeof(line), file))
		sscanf(line, "throttled_time %lld", &ns);
	fclose(file);
	return ns;
}

static void victim(void)
{
	struct zoo_time t;

	zoo_enter_cgroup("ZOO_CPU");
	if (shared)
		pthread_barrier_wait(&together);
	for (int i = 0; i < ROUNDS; i++) {
		long long before = throttled_ns();

		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			victim_works(zoo_vary(i, shared ? 10 : 30, shared ? 20 : 60));
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		/* The cgroup's own sum has the time of both threads. */
		if (shared)
			zoo_say_cause(i, "cpu-quota", t.runnable, sibling_who, NULL,
				      getenv("ZOO_CPU"));
		else
			zoo_say_cause(i, "cpu-quota", throttled_ns() - before, zoo_self(), "victim",
				      getenv("ZOO_CPU"));
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	shared = argc > 2;
	zoo_need(!pthread_barrier_init(&together, NULL, 2), "barrier");
	zoo_go();
	if (shared)
		ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent}, {"sibling", sibling});
	else
		ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	return 0;
}
