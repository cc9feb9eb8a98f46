// SPDX-License-Identifier: Apache-2.0
#include "target/process/image_pages_internal.h"

#include <stdlib.h>
#include <string.h>

struct image_pages {
	uint64_t bytes; /* that were read so far */
	size_t count;   /* of slots */
	struct page_slot {
		uint64_t page; /* address; 0: unused */
		size_t bytes;
		unsigned char data[IMAGE_PAGE_BYTES];
	} slots[];
};

struct image_pages *image_pages_new(size_t count)
{
	struct image_pages *pages = calloc(1, sizeof(*pages) + count * sizeof(pages->slots[0]));

	if (pages)
		pages->count = count;
	return pages;
}

void image_pages_free(struct image_pages *pages)
{
	free(pages);
}

void image_pages_forget(struct image_pages *pages)
{
	for (size_t i = 0; i < pages->count; i++)
		pages->slots[i].page = 0;
}

uint64_t image_pages_bytes(const struct image_pages *pages)
{
	return pages->bytes;
}

/* Reads bytes of one page. */
static bool part_read(struct image_pages *pages, const struct image *image, uint64_t address,
		      void *to, size_t size)
{
	uint64_t at = address % IMAGE_PAGE_BYTES, page = address - at;
	struct page_slot *slot = &pages->slots[page / IMAGE_PAGE_BYTES & (pages->count - 1)];

	if (!page) /* its address marks unused slots, and no program has it */
		return false;
	if (slot->page != page) {
		pages->bytes += IMAGE_PAGE_BYTES;
		slot->page = page;
		slot->bytes = image_read_some(image, page, slot->data, IMAGE_PAGE_BYTES);
	}
	if (at + size > slot->bytes)
		return false;
	memcpy(to, slot->data + at, size);
	return true;
}

bool image_pages_read(struct image_pages *pages, const struct image *image, uint64_t address,
		      void *to, size_t size)
{
	unsigned char *bytes = to;

	while (size) {
		uint64_t left = IMAGE_PAGE_BYTES - address % IMAGE_PAGE_BYTES;
		size_t part = size < left ? size : (size_t)left;

		if (!part_read(pages, image, address, bytes, part))
			return false;
		address += part;
		bytes += part;
		size -= part;
	}
	return true;
}
