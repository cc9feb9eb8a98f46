// SPDX-License-Identifier: Apache-2.0
/* Another process stops the victim's with SIGSTOP while it computes, and lets it go on later. */
#include "zoo.h"

#define ROUNDS 6

static int bell[2];

static void stopper(void)
{
	pid_t pid = getppid();
	long long begin;
	char i;

	close(bell[1]);
	while (read(bell[0], &i, 1) == 1) {
		sleep_ms(5);
		begin = now_ns();
		kill(pid, SIGSTOP);
		sleep_ms(zoo_vary(i, 100, 250));
		kill(pid, SIGCONT);
		zoo_say_cause(i, "stopped", now_ns() - begin, zoo_self(), NULL, NULL);
	}
}

static void victim(void)
{
	struct zoo_time t;

	for (char i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			zoo_need(write(bell[1], &i, 1) == 1, "write");
			zoo_burn(20);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		sleep_ms(5);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	zoo_need(!pipe(bell), "pipe");
	zoo_fork("stopper", stopper);
	zoo_go();
	ZOO_RUN({"victim", victim});
	return 0;
}
