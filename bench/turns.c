// SPDX-License-Identifier: Apache-2.0
/*
 * Threads on one CPU that compute in turn, each for the same number of steps, about so many
 * microseconds, and then hand over by a futex: a program that switches so often does work, too. An
 * operation is a turn (window.h).
 *
 *	turns THREADS MICROSECONDS CPU SECONDS
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "window.h"

#define THREADS_MAX 64

struct game {
	uint32_t threads;
	uint64_t steps; /* of a turn */
	int cpu;
	double seconds;
	_Atomic bool over;
	struct {
		_Atomic uint32_t mine;
		char own_line[60];
	} turns[THREADS_MAX];
};

struct player {
	struct game *game;
	uint32_t number;
};

static void compute(uint64_t steps)
{
	for (uint64_t i = 0; i < steps; i++)
		__asm__ volatile("" ::: "memory");
}

/* Steps in so many microseconds: the best of some tries, others may run meanwhile. */
static uint64_t calibrate(double us)
{
	uint64_t best = UINT64_MAX, steps = 1000000;

	for (int i = 0; i < 20; i++) {
		uint64_t begin = window_now(), took;

		compute(steps);
		took = window_now() - begin;
		best = took < best ? took : best;
	}
	return (uint64_t)(us * 1000 * (double)steps / (double)best);
}

static void give(struct game *game, uint32_t to)
{
	_Atomic uint32_t *turn = &game->turns[to % game->threads].mine;

	atomic_store(turn, 1);
	syscall(SYS_futex, turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void take(struct game *game, uint32_t me)
{
	_Atomic uint32_t *turn = &game->turns[me].mine;

	while (!atomic_load(turn))
		syscall(SYS_futex, turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	atomic_store(turn, 0);
}

static void *play(void *arg)
{
	struct player *player = arg;
	struct game *game = player->game;
	struct window window = window_begin(game->seconds);

	window_pin(game->cpu);
	/* Who is woken waits until the waker sleeps: a turn is one switch. */
	sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
	while (true) {
		take(game, player->number);
		if (!player->number && !window_count(&window, game->threads))
			atomic_store(&game->over, true);
		if (!atomic_load(&game->over))
			compute(game->steps);
		give(game, player->number + 1);
		if (atomic_load(&game->over))
			return NULL;
	}
}

int main(int argc, char **argv)
{
	struct player players[THREADS_MAX];
	pthread_t threads[THREADS_MAX];
	struct game game = {0};

	if (argc != 5 || atoi(argv[1]) < 1 || atoi(argv[1]) > THREADS_MAX) {
		fprintf(stderr, "usage: turns THREADS MICROSECONDS CPU SECONDS\n");
		return 2;
	}
	game.threads = (uint32_t)atoi(argv[1]);
	game.cpu = atoi(argv[3]);
	game.seconds = atof(argv[4]);
	window_pin(game.cpu);
	game.steps = calibrate(atof(argv[2]));
	atomic_store(&game.turns[0].mine, 1);
	for (uint32_t i = 0; i < game.threads; i++) {
		players[i] = (struct player){&game, i};
		if (pthread_create(&threads[i], NULL, play, &players[i]))
			return 1;
	}
	for (uint32_t i = 0; i < game.threads; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
