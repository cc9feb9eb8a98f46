// SPDX-License-Identifier: Apache-2.0
/*
 * quiet WAY SEED: nothing stalls the victim, although things happen that look like stalls:
 *	computes	alone
 *	cached		reads a file that is in memory, and writes to /dev/null
 *	neighbours	takes free mutexes and wakes others, while they sleep, read and compute
 *	serves		sleeps a lot, but never inside of its span
 */
#include "zoo.h"

#include <semaphore.h>

#define ROUNDS 10

static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
static char file_name[256];
static int file, null;
static sem_t work;

static void compute(int i)
{
	zoo_burn(zoo_vary(i, 60, 140));
}

static void cached(int i)
{
	static char part[1 << 16];
	long long end = zoo_cpu_ns() + zoo_vary(i, 60, 140) * ZOO_MS;

	while (zoo_cpu_ns() < end)
		for (int at = 0; at < 16; at++)
			if (pread(file, part, sizeof(part), at * (long)sizeof(part)) < 0 ||
			    write(null, part, sizeof(part)) < 0)
				exit(1);
}

static void neighbours(int i)
{
	for (long n = zoo_vary(i, 60, 140); n; n--) {
		pthread_mutex_lock(&free_lock);
		zoo_burn(1);
		pthread_mutex_unlock(&free_lock);
		sem_post(&work);
	}
}

static void serve(int i)
{
	zoo_burn(zoo_vary(i, 20, 40));
}

/* Waits for the victim, never the other way round. */
static void waiter(void)
{
	zoo_need(!setpriority(PRIO_PROCESS, 0, 19), "setpriority");
	while (!zoo_over) {
		sem_wait(&work);
		SPAN("decode");
		sleep_ms(1);
	}
}

static const struct row {
	const char *way;
	void (*work)(int i);
	long pause_ms;
	const char *second;
} rows[] = {
	{"computes", compute, 0, NULL},
	{"cached", cached, 0, NULL},
	{"neighbours", neighbours, 0, "waiter"},
	{"serves", serve, 90, NULL},
};

static const struct row *row = rows;

static void victim(void)
{
	struct zoo_time t;

	for (int i = 0; i < ROUNDS; i++) {
		zoo_time_begin(&t);
		{
			SPAN("victim", KV_I64("i", i));
			row->work(i);
		}
		zoo_time_end(&t);
		zoo_say_victim(i, &t);
		zoo_say_cause(i, "running", t.running, zoo_self(), "victim", NULL);
		if (row->pause_ms)
			sleep_ms(row->pause_ms);
	}
	zoo_over = 1;
	sem_post(&work);
}

int main(int argc, char **argv)
{
	static char byte[1 << 16];

	zoo_begin(argc, argv);
	while (argc > 2 && strcmp(row->way, argv[1]))
		zoo_need(++row < rows + sizeof(rows) / sizeof(rows[0]), argv[1]);
	file = zoo_file(file_name, sizeof(file_name), 1 << 20, O_RDONLY);
	null = open("/dev/null", O_WRONLY);
	while (read(file, byte, sizeof(byte)) > 0)
		;
	sem_init(&work, 0, 0);
	zoo_go();
	if (row->second)
		ZOO_RUN({"victim", victim}, {row->second, waiter}, {"innocent", zoo_innocent});
	else
		ZOO_RUN({"victim", victim});
	unlink(file_name);
	return 0;
}
