// SPDX-License-Identifier: Apache-2.0
/*
 * The rings of libwaffle without the rest of it, for a libc for which its other libraries are not
 * there. Threads write while a timer's handler writes, and end detached. Prints "ok" if every
 * record was read whole.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "usdt/ring/rings.h"
#include "usdt/ring/ticks.h"

#define THREADS 300
#define RECORDS 2000
#define WORDS 6

static volatile long handled, ended;

static void hit(uint64_t value)
{
	uint64_t frame[WORDS];

	for (int i = 0; i < WORDS; i++)
		frame[i] = value;
	rings_hit(hit, value, "name", frame, sizeof(frame));
}

static void on_timer(int signo)
{
	(void)signo;
	hit(7);
	__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED);
}

static void *thread_main(void *arg)
{
	for (long i = 0; i < RECORDS; i++)
		hit(1000 + (uint64_t)(long)arg);
	__atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* The number of hits in all rings. Ends the program if one of them is not whole. */
static long read_all(void)
{
	static uint64_t words[RING_RECORD_MAX / 8];
	struct ring_record *record = (struct ring_record *)words;
	long count = 0;

	for (struct rings_slot *slot = rings_first(RINGS_COLLECTOR); slot; slot = slot->next) {
		enum ring_result result;

		while ((result = ring_read(&slot->ring, record)) == RING_RECORD) {
			if (record->kind != RING_HIT)
				continue;
			for (int i = 4; i < 3 + WORDS; i++)
				if (words[i] != words[3])
					exit(3);
			count++;
		}
		if (result == RING_BROKEN || ring_lost(&slot->ring))
			exit(4);
	}
	return count;
}

int main(void)
{
	struct itimerval often = {{0, 200}, {0, 200}}, off = {{0, 0}, {0, 0}};
	pthread_attr_t attributes;
	long count = 0;

	rings_prepare();
	/* So large that none is ever full. */
	rings_configure(RINGS_COLLECTOR, 64 << 20, (uint32_t)ticks_choose(), false);
	rings_collect(true);
	signal(SIGALRM, on_timer);
	setitimer(ITIMER_REAL, &often, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (long i = 0; i < THREADS; i++) {
		pthread_t thread;

		while (pthread_create(&thread, &attributes, thread_main, (void *)i))
			usleep(1000);
		count += read_all();
	}
	while (__atomic_load_n(&ended, __ATOMIC_RELAXED) < THREADS)
		count += read_all();
	setitimer(ITIMER_REAL, &off, NULL);
	usleep(100000); /* the last threads end */
	count += read_all();
	if (count != THREADS * RECORDS + handled)
		return 5;
	printf("ok\n");
	return 0;
}
