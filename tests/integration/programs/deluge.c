// SPDX-License-Identifier: Apache-2.0
/* Threads that make events with six strings without a pause, until the standard input ends or a
 * minute has passed. */
#include "log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "waffle.h"

#define TEXT "fourteen bytes"

static atomic_int ending;

static void *pour(void *arg)
{
	(void)arg;
	while (!ending)
		WAFFLE_EVENT("drop", KV_STR("a", TEXT), KV_STR("b", TEXT), KV_STR("c", TEXT),
			     KV_STR("d", TEXT), KV_STR("e", TEXT), KV_STR("f", TEXT));
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 3;
	pthread_t threads[16];
	char text[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	alarm(60);
	count = count < 16 ? count : 16;
	for (int i = 0; i < count; i++)
		pthread_create(&threads[i], NULL, pour, NULL);
	printf("ready pid=%d\n", getpid());
	while (fgets(text, sizeof(text), stdin))
		;
	ending = 1;
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
