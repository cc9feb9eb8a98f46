// SPDX-License-Identifier: Apache-2.0
/* Calls functions of the C library that return in several places, jump to others or wait, when it
 * is told to, and prints what they returned. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void *post(void *arg)
{
	sem_post(arg);
	return NULL;
}

/* The header has it inline. */
static void *(*volatile search)(const void *, const void *, size_t, size_t,
				int (*)(const void *, const void *)) = bsearch;

static void call_all(void)
{
	static const char *const numbers[] = {"0", "-17", " 42x", "x", "", "99999999999999999999"};
	static const int sorted[] = {1, 3, 5, 7, 9, 11};
	sem_t semaphore;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		printf("strtol ret=%ld\n", strtol(numbers[i], NULL, 10));
	for (int i = 0; i < 12; i++) {
		const int *found = search(&i, sorted, 6, sizeof(sorted[0]), compare);

		printf("bsearch ret=%ld\n", (long)found);
	}
	sem_init(&semaphore, 0, 0);
	for (int i = 0; i < 5; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, post, &semaphore))
			exit(1);
		printf("sem_wait ret=%d\n", sem_wait(&semaphore));
		printf("pthread_join ret=%d\n", pthread_join(thread, NULL));
	}
}

int main(void)
{
	char line[16];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin))
		call_all();
	return 0;
}
