// SPDX-License-Identifier: Apache-2.0
/*
 * Threads on one CPU that compute in turn, each for the same number of steps, and then hand over by
 * a futex: a program that switches so many times a second and does work in between. They are of one
 * real-time priority, in which who is woken never takes the CPU from its waker, so that a turn is
 * one switch. An operation is a turn (window.h).
 *
 *	turns THREADS SWITCHES_A_SECOND CPU SECONDS
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

/* Before the first window: what a switch costs is found out, by the fastest of some tries. */
#define TRIES 20
#define TRY_NS 20000000ull

struct game {
	uint32_t threads;
	uint64_t steps; /* of a turn */
	double steps_ns, turn_ns;
	struct {
		uint64_t begin, turns;
		double best_ns;
		int tries;
	} tuning;
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

/* Steps a nanosecond. */
static double steps_measure(void)
{
	const uint64_t steps = 1000000;
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t begin = window_now(), took;

		compute(steps);
		took = window_now() - begin;
		best = took < best ? took : best;
	}
	return (double)steps / (double)best;
}

/* Adapts a turn's steps so that it lasts as long as it should, switch included. It is told of every
 * turn of one thread; true when it is done. */
static bool tune(struct game *game)
{
	uint64_t now = window_now(), begin = game->tuning.begin;
	double turn_ns;

	if (game->tuning.tries == TRIES)
		return true;
	game->tuning.turns += game->threads;
	if (now - begin < TRY_NS)
		return false;
	turn_ns = (double)(now - begin) / (double)game->tuning.turns;
	if (begin && (game->tuning.best_ns == 0 || turn_ns < game->tuning.best_ns))
		game->tuning.best_ns = turn_ns;
	game->tuning.begin = now;
	game->tuning.turns = 0;
	if (++game->tuning.tries < TRIES)
		return false;
	game->steps += (uint64_t)((game->turn_ns - game->tuning.best_ns) * game->steps_ns);
	return true;
}

static void *play(void *arg)
{
	struct player *player = arg;
	struct game *game = player->game;
	struct window window = {0};

	window_pin(game->cpu);
	if (sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1}))
		perror("sched_setscheduler");
	while (true) {
		take(game, player->number);
		if (!player->number && tune(game)) {
			if (!window.start)
				window = window_begin(game->seconds);
			else if (!window_count(&window, game->threads))
				atomic_store(&game->over, true);
		}
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

	if (argc != 5 || atoi(argv[1]) < 1 || atoi(argv[1]) > THREADS_MAX || atof(argv[2]) < 1) {
		fprintf(stderr, "usage: turns THREADS SWITCHES_A_SECOND CPU SECONDS\n");
		return 2;
	}
	game.threads = (uint32_t)atoi(argv[1]);
	game.cpu = atoi(argv[3]);
	game.seconds = atof(argv[4]);
	window_pin(game.cpu);
	game.steps_ns = steps_measure();
	game.turn_ns = 1e9 / atof(argv[2]);
	game.steps = (uint64_t)(game.turn_ns / 2 * game.steps_ns);
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
