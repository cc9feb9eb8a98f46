// SPDX-License-Identifier: Apache-2.0
/*
 * The victim computes on one CPU with two processes that are not traced and go before it: the first
 * runs for a moment, which takes the CPU from the victim, and wakes the second, which keeps it. Who
 * took the CPU is not who the victim waits for.
 */
#include "zoo.h"

#include <sys/eventfd.h>

#define ROUNDS 8
#define PERIOD_MS 25
#define HOG_MS 20

static int cpu, bell;
static pid_t hog_pid;

static void go_before(int nice)
{
	zoo_pin(cpu);
	zoo_need(!setpriority(PRIO_PROCESS, 0, nice), "setpriority");
}

static void relay(void)
{
	uint64_t one = 1;

	go_before(-20);
	for (;;) {
		sleep_ms(PERIOD_MS);
		zoo_need(write(bell, &one, sizeof(one)) == sizeof(one), "write");
	}
}

static void hog(void)
{
	uint64_t rings;

	go_before(-20);
	while (read(bell, &rings, sizeof(rings)) == sizeof(rings))
		zoo_burn(HOG_MS);
}

static void victim(void)
{
	struct zoo_who who = {hog_pid, hog_pid, "hog"};
	struct zoo_time t;

	go_before(19);
	for (int i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			zoo_burn(zoo_vary(i, 30, 60));
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "cpu-contention", t.runnable, who, NULL, NULL);
		sleep_ms(5);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	cpu = zoo_some_cpu();
	bell = eventfd(0, 0);
	hog_pid = zoo_fork_as("outsider", "hog", hog);
	zoo_fork_as("outsider", "relay", relay);
	zoo_go();
	ZOO_RUN({"victim", victim});
	return 0;
}
