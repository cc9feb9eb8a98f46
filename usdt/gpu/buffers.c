// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/buffers.h"

#include <pthread.h>
#include <sys/mman.h>

/* A mapping begins with the struct, and the records are behind it. */
#define HEAD_BYTES 64
#define MAP_BYTES (BUFFER_BYTES + HEAD_BYTES)
_Static_assert(sizeof(struct gpu_buffer) <= HEAD_BYTES, "the struct is in front of the records");
/* A record of any kind has room here. */
#define DISCARD_BYTES 4096

static struct {
	pthread_mutex_t lock; /* of all that follows; no call of CUPTI is made with it */
	struct gpu_buffer *free;
	struct gpu_buffer *full, **full_end;
	size_t bytes; /* of all that are mapped */
	uint64_t discarded;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .full_end = &all.full};

/* Several at once may be this one, since nobody reads it. */
static uint8_t discard[DISCARD_BYTES] __attribute__((aligned(8)));

/* With the lock. NULL: memory is short. */
static struct gpu_buffer *buffer_new(void)
{
	struct gpu_buffer *buffer;
	void *memory;

	if (all.bytes + MAP_BYTES > BUFFERS_BYTES_MAX)
		return NULL;
	memory = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return NULL;
	all.bytes += MAP_BYTES;
	buffer = memory;
	buffer->at = (uint8_t *)memory + HEAD_BYTES;
	return buffer;
}

void buffers_request(uint8_t **at, size_t *size, size_t *records_max)
{
	struct gpu_buffer *buffer;

	pthread_mutex_lock(&all.lock);
	buffer = all.free;
	if (buffer)
		all.free = buffer->next;
	else
		buffer = buffer_new();
	pthread_mutex_unlock(&all.lock);
	*at = buffer ? buffer->at : discard;
	*size = buffer ? BUFFER_BYTES : DISCARD_BYTES;
	*records_max = buffer ? 0 : 1;
}

void buffers_complete(uint8_t *at, size_t valid)
{
	struct gpu_buffer *buffer = (struct gpu_buffer *)(void *)(at - HEAD_BYTES);

	pthread_mutex_lock(&all.lock);
	if (at == discard) {
		all.discarded += valid != 0;
	} else if (!valid) {
		buffer->next = all.free;
		all.free = buffer;
	} else {
		buffer->valid = valid < BUFFER_BYTES ? valid : BUFFER_BYTES;
		buffer->next = NULL;
		*all.full_end = buffer;
		all.full_end = &buffer->next;
	}
	pthread_mutex_unlock(&all.lock);
}

struct gpu_buffer *buffers_take(void)
{
	struct gpu_buffer *buffer;

	pthread_mutex_lock(&all.lock);
	buffer = all.full;
	if (buffer) {
		all.full = buffer->next;
		if (!all.full)
			all.full_end = &all.full;
	}
	pthread_mutex_unlock(&all.lock);
	return buffer;
}

void buffers_give(struct gpu_buffer *buffer)
{
	pthread_mutex_lock(&all.lock);
	buffer->next = all.free;
	all.free = buffer;
	pthread_mutex_unlock(&all.lock);
}

uint64_t buffers_discarded(void)
{
	uint64_t count;

	pthread_mutex_lock(&all.lock);
	count = all.discarded;
	all.discarded = 0;
	pthread_mutex_unlock(&all.lock);
	return count;
}

void buffers_trim(void)
{
	struct gpu_buffer *buffer;

	pthread_mutex_lock(&all.lock);
	while ((buffer = all.free)) {
		all.free = buffer->next;
		all.bytes -= MAP_BYTES;
		munmap(buffer, MAP_BYTES);
	}
	pthread_mutex_unlock(&all.lock);
}
