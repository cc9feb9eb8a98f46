// SPDX-License-Identifier: Apache-2.0
/*
 * locks WAY SEED: locks of which the records do not tell at each time who held them.
 *	pi	the kernel spins for a priority-inheriting mutex while its holder computes
 *	barge	a holder that sleeps, and another thread that takes the lock when it is let go
 *	starve	readers who overlap keep a writer out; between their turns they sleep outside
 */
#include "zoo.h"

#define ROUNDS 6
#define READERS 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t held, given;
static const char *way;
static struct zoo_who holder_who;

static bool is(const char *name)
{
	return !strcmp(way, name);
}

/* ---- pi ---- */

static void pi_holder(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&mutex);
		pthread_barrier_wait(&held);
		zoo_time_begin(&t);
		{
			SPAN("hold", KV_I64("i", i));
			zoo_burn(zoo_vary(i, 80, 200));
		}
		zoo_time_end(&t);
		pthread_mutex_unlock(&mutex);
		zoo_say_cause(i, "lock", t.running, zoo_self(), "hold", NULL);
		pthread_barrier_wait(&given);
	}
}

static void pi_make(void)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	zoo_need(!pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT), "protocol");
	zoo_need(!pthread_mutex_init(&mutex, &attributes), "mutex");
}

/* ---- barge ---- */

static void barge_holder(void)
{
	holder_who = zoo_self();
	while (!zoo_over) {
		pthread_mutex_lock(&mutex);
		{
			SPAN("hold");
			sleep_ms(zoo_vary(1, 15, 25));
		}
		pthread_mutex_unlock(&mutex);
	}
}

/* Computes outside of the lock, and takes it for a moment in between. */
static void barger(void)
{
	zoo_need(!setpriority(PRIO_PROCESS, 0, 5), "setpriority");
	while (!zoo_over) {
		{
			SPAN("outside");
			zoo_burn(4);
		}
		pthread_mutex_lock(&mutex);
		{
			SPAN("hold");
			zoo_burn(1);
		}
		pthread_mutex_unlock(&mutex);
	}
}

/* ---- starve ---- */

static void reader(void)
{
	sleep_ms(thread_id() % READERS * 10);
	for (int i = thread_id(); !zoo_over; i += READERS) {
		pthread_rwlock_rdlock(&rwlock);
		{
			SPAN("reading");
			sleep_ms(20);
		}
		pthread_rwlock_unlock(&rwlock);
		{
			SPAN("outside");
			sleep_ms(zoo_vary(i, 6, 18));
		}
	}
}

/* ---- */

static void take(void)
{
	if (is("starve")) {
		pthread_rwlock_wrlock(&rwlock);
		pthread_rwlock_unlock(&rwlock);
	} else {
		pthread_mutex_lock(&mutex);
		pthread_mutex_unlock(&mutex);
	}
}

static void victim(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		if (is("pi"))
			pthread_barrier_wait(&held);
		else
			sleep_ms(zoo_vary(i, 20, 40));
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			for (int n = 0; n < (is("barge") ? 5 : 1); n++)
				take();
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		if (is("pi"))
			pthread_barrier_wait(&given);
		else
			zoo_say_cause(i, "sleep", zoo_blocked(&t), holder_who,
				      is("starve") ? "reading" : "hold", NULL);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	way = argc > 2 ? argv[1] : "pi";
	pthread_barrier_init(&held, NULL, 2);
	pthread_barrier_init(&given, NULL, 2);
	if (is("pi"))
		pi_make();
	zoo_go();
	if (is("pi"))
		ZOO_RUN({"victim", victim}, {"holder", pi_holder});
	else if (is("barge"))
		ZOO_RUN({"victim", victim}, {"holder", barge_holder}, {"barger", barger});
	else
		ZOO_RUN({"victim", victim}, {"reader", reader}, {"reader", reader},
			{"reader", reader});
	return 0;
}
