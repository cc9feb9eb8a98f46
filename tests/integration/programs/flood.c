// SPDX-License-Identifier: Apache-2.0
/* Two threads that never stop making spans and events, until the standard input ends. */
#include "log.h"

#include <pthread.h>
#include <stdatomic.h>

#include "waffle.h"

static atomic_long beats;
static atomic_int ending;

static void *beat(void *arg)
{
	(void)arg;
	while (!ending) {
		WAFFLE_SPAN("beating");
		for (int i = 0; i < 100; i++) {
			beats++;
			WAFFLE_EVENT("beat", KV_I64("n", i), KV_STR("text", "tock"));
		}
		sleep_ms(1);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];
	char text[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, beat, NULL);
	printf("ready pid=%d\n", getpid());
	while (fgets(text, sizeof(text), stdin))
		printf("count=%ld\n", (long)beats);
	ending = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("bye beats=%ld\n", (long)beats);
	return 0;
}
