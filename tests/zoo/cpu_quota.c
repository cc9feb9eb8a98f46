// SPDX-License-Identifier: Apache-2.0
/* The victim computes in a cgroup that may use a fifth of a CPU. */
#include "zoo.h"

#define ROUNDS 6

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
	for (int i = 0; i < ROUNDS; i++) {
		long long before = throttled_ns();

		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			zoo_burn(zoo_vary(i, 30, 60));
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "cpu-quota", throttled_ns() - before, zoo_self(), "victim",
			      getenv("ZOO_CPU"));
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"innocent", zoo_innocent});
	return 0;
}
