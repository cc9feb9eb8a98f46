// SPDX-License-Identifier: Apache-2.0
#include "target/process/python_frames.h"

#include "target/process/image_pages_internal.h"

#define PAGES 256
/* Limit of what is read of a process. */
#define BYTES_MAX (64ull << 20)
#define STEPS_MAX (4 * WAFFLE_FRAMES_PYTHON_MAX)

void python_frames_begin(struct python_frames *frames, const struct python *python,
			 const struct image *image)
{
	*frames = (struct python_frames){.python = python, .image = image};
	if (python && python->kernel.runtime)
		frames->pages = image_pages_new(PAGES);
}

void python_frames_end(struct python_frames *frames)
{
	image_pages_free(frames->pages);
	frames->pages = NULL;
}

static bool bytes_read(const struct python_frames *frames, uint64_t address, void *to, size_t size)
{
	return image_pages_bytes(frames->pages) < BYTES_MAX &&
	       image_pages_read(frames->pages, frames->image, address, to, size);
}

static uint64_t word_read(const struct python_frames *frames, uint64_t address)
{
	uint64_t word;

	return bytes_read(frames, address, &word, sizeof(word)) ? word : 0;
}

/* The innermost frame of a thread. 0: it runs no Python, or is not found. */
static uint64_t innermost_frame(const struct python_frames *frames, uint64_t key)
{
	const struct waffle_python *offsets = &frames->python->kernel;
	uint64_t thread = word_read(frames, offsets->runtime + offsets->interpreters_main), frame;
	unsigned left = WAFFLE_PYTHON_THREADS_MAX;

	thread = thread ? word_read(frames, thread + offsets->threads_head) : 0;
	while (thread && word_read(frames, thread + offsets->thread_key) != key)
		thread = --left ? word_read(frames, thread + offsets->thread_next) : 0;
	frame = thread ? word_read(frames, thread + offsets->thread_frame) : 0;
	return offsets->has_cframe && frame ? word_read(frames, frame + offsets->cframe_frame)
					    : frame;
}

/* The address of a frame's instruction, with WAFFLE_PYTHON_ENTRY if the frame is known to be the
 * outermost one of a call of the interpreter's loop. */
static uint64_t instruction_address(const struct python_frames *frames, uint64_t frame,
				    uint64_t code)
{
	const struct waffle_python *offsets = &frames->python->kernel;
	uint64_t address = code + offsets->code_instructions;
	uint8_t entry = 0;
	int32_t last;

	if (offsets->index_bytes) {
		if (bytes_read(frames, frame + offsets->frame_instr, &last, sizeof(last)) &&
		    last > 0)
			address += (uint64_t)last * offsets->index_bytes;
		return address | WAFFLE_PYTHON_ENTRY;
	}
	address = word_read(frames, frame + offsets->frame_instr);
	if (offsets->frame_entry)
		bytes_read(frames, frame + offsets->frame_entry, &entry, 1);
	return entry ? address | WAFFLE_PYTHON_ENTRY : address;
}

uint32_t python_frames_read(const struct python_frames *frames, uint64_t key,
			    uint64_t words[2 * WAFFLE_FRAMES_PYTHON_MAX], bool *cut)
{
	const struct waffle_python *offsets;
	uint32_t count = 0;
	uint64_t frame;
	uint8_t owner;

	*cut = false;
	if (!frames->pages || !key)
		return 0;
	offsets = &frames->python->kernel;
	frame = innermost_frame(frames, key);
	for (unsigned i = 0; i < STEPS_MAX && frame; i++) {
		uint64_t *word = &words[2 * count];

		if (!bytes_read(frames, frame + offsets->frame_owner, &owner, 1))
			break;
		if (offsets->owner_none && owner >= offsets->owner_none) {
			if (count)
				word[-1] |= WAFFLE_PYTHON_ENTRY;
		} else if (count == WAFFLE_FRAMES_PYTHON_MAX) {
			break;
		} else {
			word[0] = word_read(frames, frame + offsets->frame_code) &
				  ~WAFFLE_PYTHON_MARKS;
			word[1] = instruction_address(frames, frame, word[0]);
			count++;
		}
		frame = word_read(frames, frame + offsets->frame_previous);
	}
	*cut = frame;
	return count;
}
