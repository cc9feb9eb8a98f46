// SPDX-License-Identifier: Apache-2.0
/* spinlock SEED: the victim spins for a lock of the C library, whose holder sleeps meanwhile. */
#include "zoo.h"

#define ROUNDS 6

static pthread_spinlock_t lock;
static pthread_barrier_t held, given;

static void holder(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_spin_lock(&lock);
		pthread_barrier_wait(&held);
		sleep_ms(zoo_vary(i, 120, 250));
		pthread_spin_unlock(&lock);
		pthread_barrier_wait(&given);
	}
}

static void victim(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&held);
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			pthread_spin_lock(&lock);
			pthread_spin_unlock(&lock);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "running", t.running, zoo_self(), "victim", NULL);
		pthread_barrier_wait(&given);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	pthread_spin_init(&lock, 0);
	pthread_barrier_init(&held, NULL, 2);
	pthread_barrier_init(&given, NULL, 2);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"holder", holder});
	return 0;
}
