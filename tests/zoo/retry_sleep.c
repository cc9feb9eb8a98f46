// SPDX-License-Identifier: Apache-2.0
/* The victim tries, and sleeps a little each time that it is too early. */
#include "zoo.h"

#define ROUNDS 6

static atomic_int opened;

static void opener(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		sleep_ms(zoo_vary(i, 120, 280));
		opened = i + 1;
	}
}

static void victim(void)
{
	long pause = zoo_vary(-3, 8, 20);
	struct zoo_time t;
	int tries;

	for (int i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			for (tries = 1; opened <= i; tries++) {
				EVENT("too early", KV_I64("tries", tries));
				sleep_ms(pause);
			}
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "sleep", zoo_blocked(&t), zoo_self(), "victim", NULL);
		printf("retry i=%d tries=%d pause_ms=%ld\n", i, tries, pause);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"opener", opener}, {"innocent", zoo_innocent});
	return 0;
}
