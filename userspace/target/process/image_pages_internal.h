/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages of a process's memory that were read. Reading another process's memory takes long
 * (opener.h), and small objects that refer to each other lie close together.
 */
#ifndef WAFFLE_TARGET_PROCESS_IMAGE_PAGES_INTERNAL_H
#define WAFFLE_TARGET_PROCESS_IMAGE_PAGES_INTERNAL_H

#include "target/process/image.h"

#define IMAGE_PAGE_BYTES 4096ull

struct image_pages;

/* Has room for `count` pages, a power of two. NULL: out of memory. The caller frees it. */
struct image_pages *image_pages_new(size_t count);
void image_pages_free(struct image_pages *pages);

/* Makes later reads see the memory as it is then. */
void image_pages_forget(struct image_pages *pages);
/* Bytes that were read from the process so far. */
uint64_t image_pages_bytes(const struct image_pages *pages);

/* Reads some bytes. False: they can't be read. All reads must be of one image. */
bool image_pages_read(struct image_pages *pages, const struct image *image, uint64_t address,
		      void *to, size_t size);
/* Reads up to `size` bytes and returns how many. 0: none. */
size_t image_pages_read_some(struct image_pages *pages, const struct image *image, uint64_t address,
			     void *to, size_t size);

#endif
