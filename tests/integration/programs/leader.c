// SPDX-License-Identifier: Apache-2.0
/* leader: its main thread exits. Another thread makes an event for each line of input. */
#include "log.h"

#include <pthread.h>

#include "waffle.h"

static void *worker(void *unused)
{
	char line[64];

	(void)unused;
	usleep(50000); /* the main thread has exited by then */
	printf("ready pid=%d\n", getpid());
	fflush(stdout);
	for (int i = 0; fgets(line, sizeof(line), stdin); i++) {
		WAFFLE_EVENT("made", KV_I64("i", i));
		printf("made i=%d\n", i);
		fflush(stdout);
	}
	exit(0);
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, worker, NULL);
	pthread_exit(NULL);
}
