// SPDX-License-Identifier: Apache-2.0
/*
 * Two stalls in one span: a mutex whose holder computes takes about six parts of ten of it, a sleep
 * of its own three, its own work the rest; which is first, the seed says.
 */
#include "zoo.h"

#define ROUNDS 6

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t held, given;

static void holder(void)
{
	char object[32];
	struct zoo_time t;

	snprintf(object, sizeof(object), "%p", (void *)&table_lock);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&table_lock);
		pthread_barrier_wait(&held);
		zoo_time_begin(&t);
		{
			SPAN("hold", KV_I64("i", i));
			zoo_burn(zoo_vary(i, 90, 150));
		}
		zoo_time_end(&t);
		pthread_mutex_unlock(&table_lock);
		zoo_say_cause(i, "lock", t.running, zoo_self(), "hold", object);
		pthread_barrier_wait(&given);
	}
}

static void take(void)
{
	pthread_mutex_lock(&table_lock);
	pthread_mutex_unlock(&table_lock);
}

static void victim(void)
{
	struct zoo_time t, sleeping;

	for (int i = 0; i < ROUNDS; i++) {
		bool lock_first = zoo_vary(100 + i, 0, 1);

		/* Its sleep comes after the lock, or before the lock is taken at all. */
		if (lock_first)
			pthread_barrier_wait(&held);
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			if (lock_first)
				take();
			zoo_time_begin(&sleeping);
			sleep_ms(zoo_vary(i, 90, 150) / 2);
			zoo_time_end(&sleeping);
			if (!lock_first) {
				pthread_barrier_wait(&held);
				take();
			}
			zoo_burn(zoo_vary(i, 90, 150) / 6);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "sleep", zoo_blocked(&sleeping), zoo_self(), "victim", NULL);
		pthread_barrier_wait(&given);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	pthread_barrier_init(&held, NULL, 2);
	pthread_barrier_init(&given, NULL, 2);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"holder", holder}, {"innocent", zoo_innocent});
	return 0;
}
