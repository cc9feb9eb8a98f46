// SPDX-License-Identifier: Apache-2.0
/*
 * A library for CUDA_INJECTION64_PATH that counts kernels by CUPTI alone, as NVIDIA's sample
 * activity_trace_async does: what libwaffle-gpu records is compared with it. At the end it writes a
 * line of JSON to CUPTI_COUNT_FILE. CUPTI_COUNT_LIBRARY is CUPTI. The declarations are our own.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUFFER_BYTES ((size_t)4 << 20)
#define KIND_KERNEL 10 /* CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL */

static int (*next_record)(uint8_t *, size_t, uint8_t **);
static int (*flush)(uint32_t);
static int (*dropped_get)(void *, uint32_t, size_t *);
static uint64_t kernels, total_ns, dropped;

static void requested(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*buffer = aligned_alloc(8, BUFFER_BYTES);
	*size = BUFFER_BYTES;
	*records_max = 0;
}

static void record_take(const uint8_t *record)
{
	uint64_t start, end;
	uint32_t kind;

	memcpy(&kind, record, sizeof(kind));
	memcpy(&start, record + 16, sizeof(start));
	memcpy(&end, record + 24, sizeof(end));
	if (kind != KIND_KERNEL)
		return;
	kernels++;
	total_ns += end - start;
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	uint8_t *record = NULL;
	size_t lost = 0;

	(void)size;
	while (valid && !next_record(buffer, valid, &record))
		record_take(record);
	dropped_get(context, stream, &lost);
	dropped += lost;
	free(buffer);
}

static void called(void *user, int domain, uint32_t cbid, const void *data)
{
	(void)user, (void)domain, (void)cbid, (void)data;
}

static void finish(void)
{
	FILE *out = fopen(getenv("CUPTI_COUNT_FILE"), "w");

	flush(1);
	fprintf(out, "{\"kernels\": %lu, \"total_ns\": %lu, \"dropped\": %lu}\n", kernels, total_ns,
		dropped);
	fclose(out);
}

int InitializeInjection(void);
int InitializeInjection(void)
{
	void *cupti = dlopen(getenv("CUPTI_COUNT_LIBRARY"), RTLD_NOW);
	int (*callbacks)(void (*)(uint8_t **, size_t *, size_t *),
			 void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
	int (*subscribe)(void **, void (*)(void *, int, uint32_t, const void *), void *);
	int (*enable)(int);
	void *subscriber;

	if (!cupti)
		return 0;
#define FIND(function, name) (*(void **)&(function) = dlsym(cupti, "cuptiActivity" name))
	FIND(next_record, "GetNextRecord");
	FIND(flush, "FlushAll");
	FIND(dropped_get, "GetNumDroppedRecords");
	FIND(callbacks, "RegisterCallbacks");
	FIND(enable, "Enable");
	*(void **)&subscribe = dlsym(cupti, "cuptiSubscribe");
	if (!subscribe || subscribe(&subscriber, called, NULL) || callbacks(requested, completed) ||
	    enable(KIND_KERNEL))
		return 0;
	return !atexit(finish);
}
