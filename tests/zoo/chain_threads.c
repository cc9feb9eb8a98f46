// SPDX-License-Identifier: Apache-2.0
/*
 * A chain of three threads: the victim waits for a mutex; its holder "index" waits, mutex in hand,
 * for a condition variable; who signals it, "decoder", computes.
 */
#include "zoo.h"

#define ROUNDS 6

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t page_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t page_ready = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t held, given;
static int page;

static void decoder(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&held);
		zoo_time_begin(&t);
		{
			SPAN("decode", KV_I64("i", i));
			zoo_burn(zoo_vary(i, 80, 200));
		}
		zoo_time_end(&t);
		pthread_mutex_lock(&page_lock);
		page = i + 1;
		pthread_cond_signal(&page_ready);
		pthread_mutex_unlock(&page_lock);
		zoo_say_cause(i, "user-work", t.running, zoo_self(), "decode", NULL);
		pthread_barrier_wait(&given);
	}
}

static void index_page(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&table_lock);
		pthread_barrier_wait(&held);
		{
			SPAN("hold", KV_I64("i", i));
			pthread_mutex_lock(&page_lock);
			while (page != i + 1)
				pthread_cond_wait(&page_ready, &page_lock);
			pthread_mutex_unlock(&page_lock);
			zoo_burn(2);
		}
		pthread_mutex_unlock(&table_lock);
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
			pthread_mutex_lock(&table_lock);
			pthread_mutex_unlock(&table_lock);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		pthread_barrier_wait(&given);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	pthread_barrier_init(&held, NULL, 3);
	pthread_barrier_init(&given, NULL, 3);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"index", index_page}, {"decoder", decoder},
		{"innocent", zoo_innocent});
	return 0;
}
