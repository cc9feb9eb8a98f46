/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers that CUPTI fills with records. CUPTI asks for them and gives them back in its own
 * thread, in a thread that flushes, or in a thread of the program. So buffers_request() and
 * buffers_complete() only take a short lock, and our thread reads the records.
 */
#ifndef WAFFLE_USDT_GPU_BUFFERS_H
#define WAFFLE_USDT_GPU_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BUFFER_BYTES ((size_t)4 << 20)
/* Of all buffers that CUPTI has or that wait to be read. Beyond, records are dropped. */
#define BUFFERS_BYTES_MAX ((size_t)512 << 20)

struct gpu_buffer {
	struct gpu_buffer *next;
	size_t valid; /* bytes of records */
	uint8_t *at;
};

/* Hands out a buffer. There always is one: to return NULL crashes some versions of CUPTI. When
 * memory is short it is one of which the records are thrown away, one record at a time. */
void buffers_request(uint8_t **at, size_t *size, size_t *records_max);
/* CUPTI gives it back. One that is not ours, or not with CUPTI, is left alone. */
void buffers_complete(uint8_t *at, size_t valid);

/* The oldest buffer that nobody has read; NULL: there is none. buffers_give() takes it back. */
struct gpu_buffer *buffers_take(void);
void buffers_give(struct gpu_buffer *buffer);

/* Records that were thrown away, since the last call. */
uint64_t buffers_discarded(void);

/* Frees those that are not in use. */
void buffers_trim(void);

#endif
