// SPDX-License-Identifier: Apache-2.0
#include "capture/address_space/hit_text.h"

#include <stdlib.h>
#include <string.h>

#include "capture/address_space/hit_image.h"
#include "util/clock.h"

#define PAGE 4096u
#define TEXT_MAX 4096u          /* with the NUL */
#define WINDOW_BYTES (8 * PAGE) /* at least PAGE + TEXT_MAX: all texts of its first page */

struct hit_text {
	const struct kernel *kernel;
	struct image image;
	pid_t pid;      /* the process whose memory `image` reads; 0: no image is open */
	uint64_t since; /* when its program began (kernel_program_since()) */
	/* Copy of the memory from a page's address on. */
	char window[WINDOW_BYTES];
	uint64_t from;
	size_t bytes;     /* 0: nothing was read */
	uint64_t read_ts; /* the window was read after this time */
};

struct hit_text *hit_text_new(const struct kernel *kernel)
{
	struct hit_text *texts = calloc(1, sizeof(*texts));

	if (texts)
		texts->kernel = kernel;
	return texts;
}

void hit_text_free(struct hit_text *texts)
{
	if (!texts)
		return;
	hit_text_forget(texts, texts->pid);
	free(texts);
}

void hit_text_forget(struct hit_text *texts, pid_t pid)
{
	if (!texts->pid || texts->pid != pid)
		return;
	image_close(&texts->image);
	texts->pid = 0;
	texts->bytes = 0;
}

/* Opens the image of the program that the process ran at `ts`, unless it is open. False: that
 * program is gone. */
static bool image_choose(struct hit_text *texts, pid_t pid, uint64_t ts)
{
	uint64_t since = texts->kernel ? kernel_program_since(texts->kernel, pid) : 0;

	if (texts->pid == pid && texts->since == since && since <= ts)
		return true;
	hit_text_forget(texts, texts->pid);
	if (hit_image_open(&texts->image, texts->kernel, pid, ts))
		return false;
	texts->pid = pid;
	/* If the program began after this was read, the next call opens the image again. */
	texts->since = since;
	return true;
}

static void window_read(struct hit_text *texts, uint64_t address)
{
	texts->read_ts = clock_monotonic_ns();
	texts->from = address - address % PAGE;
	texts->bytes = image_read_some(&texts->image, texts->from, texts->window, WINDOW_BYTES);
}

/* NULL: the window does not have all of the text. */
static const char *window_text(const struct hit_text *texts, uint64_t address)
{
	uint64_t at, left;

	if (address < texts->from || address - texts->from >= texts->bytes)
		return NULL;
	at = address - texts->from;
	left = texts->bytes - at;
	return memchr(texts->window + at, '\0', left < TEXT_MAX ? left : TEXT_MAX)
		       ? texts->window + at
		       : NULL;
}

char *hit_text_read(struct hit_text *texts, pid_t pid, uint64_t ts, uint64_t address)
{
	const char *text = NULL;

	if (!image_choose(texts, pid, ts))
		return NULL;
	/* The window is too old for a call that came after it was read: the program may have
	 * written another text there before the call. */
	if (ts <= texts->read_ts)
		text = window_text(texts, address);
	if (!text) {
		window_read(texts, address);
		text = window_text(texts, address);
	}
	return text ? strdup(text) : NULL;
}
