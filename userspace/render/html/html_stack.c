// SPDX-License-Identifier: Apache-2.0
/* The frames of stacks in flame graphs. */
#include <inttypes.h>

#include "render/html/html_internal.h"
#include "util/path.h"
#include "util/syscall_names.h"

#define DEPTH_MAX (HTML_FRAMES_MAX - 1)

struct html_frames {
	struct html_page *page;
	uint32_t texts[DEPTH_MAX + 1]; /* the last entry is "[cut]" */
	uint32_t count;
};

/* Adds a frame as "queue_pop" or "libc.so.6+0x9f3a2". */
static void add_frame(const struct stack_frame *frame, void *arg)
{
	struct html_frames *frames = arg;
	const char *module = frame->module ? frame->module : "";
	char text[HTML_NAME_MAX + 64];

	if (frames->count > DEPTH_MAX)
		return;
	if (frames->count == DEPTH_MAX)
		snprintf(text, sizeof(text), "[cut]");
	else if (frame->function)
		snprintf(text, sizeof(text), "%.*s%s", HTML_NAME_MAX - 16, frame->function,
			 frame->inlined ? " [inlined]" : "");
	else
		snprintf(text, sizeof(text), "%.*s%s0x%" PRIx64, HTML_NAME_MAX - 32,
			 path_base(module), *module ? "+" : "", frame->offset);
	frames->texts[frames->count++] = html_text(frames->page, text);
}

uint32_t html_frames(struct html_page *page, uint32_t stack, uint64_t ts,
		     uint32_t texts[HTML_FRAMES_MAX])
{
	struct html_frames frames = {.page = page};

	stack_names_each(page->names, stack, ts, add_frame, &frames);
	for (uint32_t i = 0; i < frames.count; i++)
		texts[i] = frames.texts[frames.count - 1 - i];
	return frames.count;
}

void html_stack(struct html_page *page, uint32_t stack, uint64_t ts)
{
	uint32_t texts[HTML_FRAMES_MAX], count = html_frames(page, stack, ts, texts);

	json_array_begin(page->json);
	for (uint32_t i = 0; i < count; i++)
		json_u64(page->json, texts[i]);
	json_array_end(page->json);
}

void html_call(struct html_page *page, int32_t number)
{
	const char *name = number < 0 ? NULL : syscall_name(page->model->meta->machine, number);
	char text[64];

	snprintf(text, sizeof(text), "[system call %d]", number);
	if (name)
		snprintf(text, sizeof(text), "[%s]", name);
	json_array_begin(page->json);
	json_u64(page->json, html_text(page, number < 0 ? "[no stack]" : text));
	json_array_end(page->json);
}
