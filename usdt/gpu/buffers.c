// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/buffers.h"

#include <pthread.h>
#include <sys/mman.h>

/* A mapping begins with the struct, and the records are behind it. */
#define HEAD_BYTES 64
#define MAP_BYTES (BUFFER_BYTES + HEAD_BYTES)
_Static_assert(sizeof(struct gpu_buffer) <= HEAD_BYTES, "the struct is in front of the records");
#define BUFFERS_MAX (BUFFERS_BYTES_MAX / MAP_BYTES)
/* A record of any kind has room here. */
#define DISCARD_BYTES 4096

static struct {
	pthread_mutex_t lock; /* of all that follows; no call of CUPTI is made with it */
	struct gpu_buffer *free;
	struct gpu_buffer *full, **full_end;
	struct gpu_buffer *given[BUFFERS_MAX]; /* that CUPTI has */
	size_t given_count;
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
	if (buffer)
		all.given[all.given_count++] = buffer;
	pthread_mutex_unlock(&all.lock);
	*at = buffer ? buffer->at : discard;
	*size = buffer ? BUFFER_BYTES : DISCARD_BYTES;
	*records_max = buffer ? 0 : 1;
}

/* With the lock. Takes the buffer from CUPTI. NULL: it is none of ours. */
static struct gpu_buffer *given_take(const uint8_t *at)
{
	for (size_t i = 0; i < all.given_count; i++) {
		struct gpu_buffer *buffer = all.given[i];

		if (buffer->at != at)
			continue;
		all.given[i] = all.given[--all.given_count];
		return buffer;
	}
	return NULL;
}

/* With another tool in the process, CUPTI may give us what it had from that one: callbacks of
 * buffers need no subscriber, and the last ones that are registered get all. */
void buffers_complete(uint8_t *at, size_t valid)
{
	struct gpu_buffer *buffer;

	pthread_mutex_lock(&all.lock);
	buffer = given_take(at);
	if (at == discard) {
		all.discarded += valid != 0;
	} else if (buffer && !valid) {
		buffer->next = all.free;
		all.free = buffer;
	} else if (buffer) {
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
