// SPDX-License-Identifier: Apache-2.0
#include "capture/address_space/hit_text.h"

#include <stdlib.h>
#include <string.h>

#include "capture/address_space/hit_image.h"
#include "target/process/image_pages.h"
#include "util/clock.h"

#define PAGES 64 /* a power of two */
#define TEXT_MAX 4096u

struct hit_text {
	const struct kernel *kernel;
	struct image_pages *pages;
	struct image image;
	pid_t pid;        /* of `image`; 0: none is open */
	uint64_t since;   /* when its program began (kernel_program_since()) */
	uint64_t read_ts; /* no page was read before */
};

struct hit_text *hit_text_new(const struct kernel *kernel)
{
	struct hit_text *texts = calloc(1, sizeof(*texts));

	if (!texts)
		return NULL;
	texts->kernel = kernel;
	texts->pages = image_pages_new(PAGES);
	if (texts->pages)
		return texts;
	free(texts);
	return NULL;
}

void hit_text_free(struct hit_text *texts)
{
	if (!texts)
		return;
	hit_text_forget(texts, texts->pid);
	image_pages_free(texts->pages);
	free(texts);
}

void hit_text_forget(struct hit_text *texts, pid_t pid)
{
	if (!texts->pid || texts->pid != pid)
		return;
	image_close(&texts->image);
	texts->pid = 0;
}

static void pages_forget(struct hit_text *texts)
{
	image_pages_forget(texts->pages);
	texts->read_ts = clock_monotonic_ns();
}

static uint64_t program_since(const struct hit_text *texts, pid_t pid)
{
	return texts->kernel ? kernel_program_since(texts->kernel, pid) : 0;
}

/* Makes `image` that of the program which the process ran at `ts`. False: that is gone. */
static bool image_follow(struct hit_text *texts, pid_t pid, uint64_t ts)
{
	uint64_t since = program_since(texts, pid);

	if (texts->pid == pid && texts->since == since && since <= ts)
		return true;
	hit_text_forget(texts, texts->pid);
	if (hit_image_open(&texts->image, texts->kernel, pid, ts))
		return false;
	texts->pid = pid;
	/* If an exec came in between, the next text opens the image again. */
	texts->since = since;
	pages_forget(texts);
	return true;
}

char *hit_text_read(struct hit_text *texts, pid_t pid, uint64_t ts, uint64_t address)
{
	char text[TEXT_MAX];
	size_t len = 0;

	if (!image_follow(texts, pid, ts))
		return NULL;
	/* The program may have written another text there since a page was read. */
	if (ts > texts->read_ts)
		pages_forget(texts);
	while (len < sizeof(text)) {
		size_t left = IMAGE_PAGE_BYTES - (address + len) % IMAGE_PAGE_BYTES;
		size_t part = left < sizeof(text) - len ? left : sizeof(text) - len;

		if (!image_pages_read(texts->pages, &texts->image, address + len, text + len, part))
			return NULL;
		if (memchr(text + len, '\0', part))
			return strdup(text);
		len += part;
	}
	return NULL;
}
