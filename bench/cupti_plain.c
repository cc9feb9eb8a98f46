// SPDX-License-Identifier: Apache-2.0
/*
 * For the benchmarks: a tool that makes CUPTI do what libwaffle-gpu makes it do, and throws away
 * all that it gets. A library for CUDA_INJECTION64_PATH. It is armed while the file exists that
 * CUPTI_PLAIN_FILE names.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)4 << 20)

static int (*subscribe)(void **, void (*)(void *, int, uint32_t, const void *), void *);
static int (*unsubscribe)(void *);
static int (*enable_callback)(uint32_t, void *, int, uint32_t);
static int (*enable)(int), (*disable)(int), (*flush)(uint32_t), (*finalize)(void);
static int (*register_callbacks)(void (*)(uint8_t **, size_t *, size_t *),
				 void (*)(void *, uint32_t, uint8_t *, size_t, size_t));

static void called(void *user, int domain, uint32_t cbid, const void *data)
{
	(void)user, (void)domain, (void)cbid, (void)data;
}

static void requested(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*size = BUFFER_BYTES;
	*records_max = 0;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	(void)context, (void)stream, (void)size, (void)valid;
	free(buffer);
}

static void *begin(void)
{
	static const uint32_t calls[] = {307, 652}; /* cuLaunchKernel, cuLaunchKernelEx */
	void *subscriber = NULL;

	if (subscribe(&subscriber, called, NULL))
		return NULL;
	register_callbacks(requested, completed);
	enable(10);
	for (unsigned i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		enable_callback(1, subscriber, 1, calls[i]);
	return subscriber;
}

static void *follow(void *path)
{
	void *subscriber = NULL;

	for (;; usleep(50000)) {
		if (!access(path, F_OK)) {
			if (!subscriber)
				subscriber = begin();
			flush(0);
		} else if (subscriber) {
			disable(10);
			flush(1);
			unsubscribe(subscriber);
			finalize();
			subscriber = NULL;
		}
	}
	return NULL;
}

int InitializeInjection(void);
int InitializeInjection(void)
{
	void *cupti = dlopen(getenv("CUPTI_PLAIN_LIBRARY"), RTLD_NOW);
	pthread_t thread;

	if (!cupti || !getenv("CUPTI_PLAIN_FILE"))
		return 0;
#define FIND(function, name) (*(void **)&(function) = dlsym(cupti, "cupti" name))
	FIND(subscribe, "Subscribe");
	FIND(unsubscribe, "Unsubscribe");
	FIND(enable_callback, "EnableCallback");
	FIND(enable, "ActivityEnable");
	FIND(disable, "ActivityDisable");
	FIND(flush, "ActivityFlushAll");
	FIND(finalize, "Finalize");
	FIND(register_callbacks, "ActivityRegisterCallbacks");
	return !pthread_create(&thread, NULL, follow, getenv("CUPTI_PLAIN_FILE"));
}
