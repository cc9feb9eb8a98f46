// SPDX-License-Identifier: Apache-2.0
/*
 * cond WAY SEED: the victim waits for a condition variable whose producer
 *	reads (a slow disk, in a cgroup that may read only so fast) or computes.
 */
#include "zoo.h"

#define ROUNDS 6
#define PART (128 << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t asked;
static char file_name[256];
static const char *way;
static int file, batch;
static void *buffer;

static void produce(int i, struct zoo_time *t)
{
	SPAN("decode", KV_I64("i", i));
	if (!strcmp(way, "computes"))
		zoo_burn(zoo_vary(i, 80, 200));
	else
		for (long n = zoo_vary(i, 4, 8), at = 0; at < n; at++)
			zoo_need(pread(file, buffer, PART, at * PART) == PART, "read");
	zoo_time_end(t);
}

static void producer(void)
{
	struct zoo_time t;

	if (!strcmp(way, "reads"))
		zoo_enter_cgroup("ZOO_BLKIO");
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&asked);
		zoo_time_begin(&t);
		produce(i, &t);
		pthread_mutex_lock(&lock);
		batch = i + 1;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&lock);
		if (!strcmp(way, "reads"))
			zoo_say_cause(i, "disk-read", zoo_blocked(&t), zoo_self(), "decode",
				      file_name);
		else
			zoo_say_cause(i, "user-work", t.running, zoo_self(), "decode", NULL);
	}
}

static void victim(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&asked);
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			pthread_mutex_lock(&lock);
			while (batch != i + 1)
				pthread_cond_wait(&filled, &lock);
			pthread_mutex_unlock(&lock);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
	}
}

int main(int argc, char **argv)
{
	zoo_begin(argc, argv);
	way = argc > 2 ? argv[1] : "computes";
	if (!strcmp(way, "reads"))
		file = zoo_file(file_name, sizeof(file_name), 8 * PART, O_RDONLY | O_DIRECT);
	zoo_need(!posix_memalign(&buffer, 4096, PART), "memalign");
	pthread_barrier_init(&asked, NULL, 2);
	zoo_go();
	ZOO_RUN({"victim", victim}, {"producer", producer}, {"innocent", zoo_innocent});
	if (*file_name)
		unlink(file_name);
	return 0;
}
