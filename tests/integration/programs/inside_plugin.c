// SPDX-License-Identifier: Apache-2.0
/*
 * A program without libwaffle and without sites. It opens a plugin that has both, calls it in a
 * thread, and closes it before the thread ends.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

static sem_t worked, closed;
static void (*work)(int);
static int count;

static void *thread_main(void *unused)
{
	(void)unused;
	for (int i = 0; i < count; i++)
		work(i);
	sem_post(&worked);
	while (sem_wait(&closed))
		;
	return NULL;
}

int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	pthread_t thread;

	work = library ? dlsym(library, "inside_work") : NULL;
	if (!work) {
		fprintf(stderr, "%s\n",
			argc > 2 ? dlerror() : "usage: inside_plugin LIBRARY COUNT");
		return 1;
	}
	count = atoi(argv[2]);
	sem_init(&worked, 0, 0);
	sem_init(&closed, 0, 0);
	pthread_create(&thread, NULL, thread_main, NULL);
	while (sem_wait(&worked))
		;
	dlclose(library);
	sem_post(&closed);
	pthread_join(thread, NULL);
	return 0;
}
