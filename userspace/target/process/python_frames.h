/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of Python of a thread that is blocked, read from the memory of its process as
 * bpf/stack.bpf.c reads those of a thread that runs. The memory may hold anything. The caller makes
 * sure that the thread was blocked all the time: only it changes its frames.
 */
#ifndef WAFFLE_TARGET_PROCESS_PYTHON_FRAMES_H
#define WAFFLE_TARGET_PROCESS_PYTHON_FRAMES_H

#include "bpf/record.h"
#include "target/process/python.h"

struct image_pages;

/* A process whose threads are read. */
struct python_frames {
	const struct python *python;
	const struct image *image;
	struct image_pages *pages; /* NULL: it has no frames of Python that we can read */
};

/* `python` NULL: the process has no interpreter. All must stay valid until python_frames_end(). */
void python_frames_begin(struct python_frames *frames, const struct python *python,
			 const struct image *image);
void python_frames_end(struct python_frames *frames);

/* The frames of a thread, of which `key` is the word that thread_key() of bpf/python_thread.bpf.h
 * gives: two words for each, as in a FRAMES record. *cut: there are more. Returns how many. */
uint32_t python_frames_read(const struct python_frames *frames, uint64_t key,
			    uint64_t words[2 * WAFFLE_FRAMES_PYTHON_MAX], bool *cut);

#endif
