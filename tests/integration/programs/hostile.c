// SPDX-License-Identifier: Apache-2.0
/* Every name that this program can choose contains control sequences of terminals. */
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>

#include <waffle_macros.h>

#define BAD "\033]0;owned\a\033[31m\302\233\062J\342\200\256\342\201\246\nforged"
#define BAD_SHORT "\033[2J\302\233\342\200\256"

static void nap(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL);
}

#line 1 "source-\033[31m\302\233\342\200\256\nforged.c"
static void *work(void *arg)
{
	prctl(PR_SET_NAME, BAD_SHORT);
	for (int i = 0; i < 5; i++) {
		SPAN("span" BAD, KV_STR("key", "value" BAD), KV_I64("n" BAD_SHORT, i));
		nap();
		EVENT("event" BAD, KV_STR("key", "value" BAD));
		COUNTER("counter" BAD, i);
	}
	return arg;
}

int main(void)
{
	pthread_t thread;

	prctl(PR_SET_NAME, BAD_SHORT);
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	return 0;
}
