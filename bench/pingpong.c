// SPDX-License-Identifier: Apache-2.0
/*
 * Two threads on one CPU that only hand a token to and fro, over a pipe or a futex: nearly nothing
 * but thread switches. An operation is a switch (window.h).
 *
 *	pingpong pipe|futex CPU SECONDS
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "window.h"

struct game {
	bool futex;
	int pipes[2][2];
	_Atomic uint32_t turn;
	_Atomic bool over;
	int cpu;
	double seconds;
};

static void give(struct game *game, uint32_t to)
{
	if (game->futex) {
		atomic_store(&game->turn, to);
		syscall(SYS_futex, &game->turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	} else if (write(game->pipes[to][1], "x", 1) != 1) {
		exit(1);
	}
}

static void take(struct game *game, uint32_t me)
{
	char byte;

	if (!game->futex) {
		if (read(game->pipes[me][0], &byte, 1) != 1)
			exit(1);
		return;
	}
	while (atomic_load(&game->turn) != me)
		syscall(SYS_futex, &game->turn, FUTEX_WAIT_PRIVATE, 1 - me, NULL, NULL, 0);
}

static void *second(void *arg)
{
	struct game *game = arg;

	window_pin(game->cpu);
	while (true) {
		take(game, 1);
		if (atomic_load(&game->over))
			return NULL;
		give(game, 0);
	}
}

static void first(struct game *game)
{
	struct window window = window_begin(game->seconds);

	do {
		for (int i = 0; i < 64; i++) {
			give(game, 1);
			take(game, 0);
		}
	} while (window_count(&window, 128));
	atomic_store(&game->over, true);
	give(game, 1);
}

int main(int argc, char **argv)
{
	struct game game = {0};
	pthread_t thread;

	if (argc != 4 || (strcmp(argv[1], "pipe") && strcmp(argv[1], "futex"))) {
		fprintf(stderr, "usage: pingpong pipe|futex CPU SECONDS\n");
		return 2;
	}
	game.futex = !strcmp(argv[1], "futex");
	game.cpu = atoi(argv[2]);
	game.seconds = atof(argv[3]);
	if (pipe(game.pipes[0]) || pipe(game.pipes[1]))
		return 1;
	window_pin(game.cpu);
	if (pthread_create(&thread, NULL, second, &game))
		return 1;
	first(&game);
	pthread_join(thread, NULL);
	return 0;
}
