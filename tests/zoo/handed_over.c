// SPDX-License-Identifier: Apache-2.0
/*
 * handed_over SEED: the victim begins a span, does a little of it and hands it over to another
 * thread, which computes and ends it. The victim sleeps on meanwhile.
 */
#include "zoo.h"

#define ROUNDS 6

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t done;
static waffle_span_t handed;
static long long ended;
static int batch;

static void finish(int i, struct zoo_time *t)
{
	SPAN("finish", KV_I64("i", i));
	zoo_burn(zoo_vary(i, 80, 200));
	zoo_time_end(t);
}

static void finisher(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&lock);
		while (batch <= i)
			pthread_cond_wait(&filled, &lock);
		pthread_mutex_unlock(&lock);
		zoo_time_begin(&t);
		finish(i, &t);
		SPAN_END(handed);
		ended = now_ns();
		zoo_say_cause(i, "user-work", t.running, zoo_self(), "finish", NULL);
		pthread_barrier_wait(&done);
	}
}

static void victim(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		sleep_ms(5); /* the other one waits again */
		zoo_time_begin(&t);
		handed = SPAN_BEGIN("victim", KV_I64("i", i));
		pthread_mutex_lock(&lock);
		batch = i + 1;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&lock);
		sleep_ms(10);
		pthread_barrier_wait(&done);
		zoo_time_end(&t);
		t.end = ended;
		zoo_say_victim(i, &t);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	pthread_barrier_init(&done, NULL, 2);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"finisher", finisher}, {"innocent", zoo_innocent});
	return 0;
}
