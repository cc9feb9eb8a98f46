// SPDX-License-Identifier: Apache-2.0
/* The victim computes on one CPU with a process that never stops, and is the less important. */
#include "zoo.h"

#define ROUNDS 8

static int cpu;
static pid_t hog_pid;

static void hog(void)
{
	zoo_pin(cpu);
	for (;;) {
		SPAN("burn");
		zoo_burn(50);
	}
}

static void victim(void)
{
	struct zoo_who who = {hog_pid, hog_pid, "hog"};
	struct zoo_time t;

	zoo_pin(cpu);
	/* nice 5 weighs a third of nice 0: of four parts of the time three are the hog's. */
	zoo_need(!setpriority(PRIO_PROCESS, 0, 5), "setpriority");
	for (int i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			zoo_burn(zoo_vary(i, 20, 50));
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "cpu-contention", t.runnable, who, "burn", NULL);
		sleep_ms(5);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	cpu = zoo_some_cpu();
	hog_pid = zoo_fork("hog", hog);
	zoo_go();
	ZOO_RUN({"victim", victim});
	return 0;
}
