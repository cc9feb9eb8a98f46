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

/* Reads bytes of one page, and returns how many of them there are. */
static size_t part_read(struct image_pages *pages, const struct image *image, uint64_t address,
			void *to, size_t size)
{
	uint64_t at = address % IMAGE_PAGE_BYTES, page = address - at;
	struct page_slot *slot = &pages->slots[page / IMAGE_PAGE_BYTES & (pages->count - 1)];

	if (!page) /* its address marks unused slots, and no program has it */
		return 0;
	if (slot->page != page) {
		pages->bytes += IMAGE_PAGE_BYTES;
		slot->page = page;
		slot->bytes = image_read_some(image, page, slot->data, IMAGE_PAGE_BYTES);
	}
	if (at >= slot->bytes)
		return 0;
	if (size > slot->bytes - at)
		size = slot->bytes - at;
	memcpy(to, slot->data + at, size);
	return size;
}

size_t image_pages_read_some(struct image_pages *pages, const struct image *image, uint64_t address,
			     void *to, size_t size)
{
	size_t len = 0;

	while (len < size) {
		uint64_t left = IMAGE_PAGE_BYTES - (address + len) % IMAGE_PAGE_BYTES;
		size_t part = size - len < left ? size - len : (size_t)left;
		size_t got = part_read(pages, image, address + len, (char *)to + len, part);

		len += got;
		if (got < part)
			break;
	}
	return len;
}

bool image_pages_read(struct image_pages *pages, const struct image *image, uint64_t address,
		      void *to, size_t size)
{
	return image_pages_read_some(pages, image, address, to, size) == size;
}
