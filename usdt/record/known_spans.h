/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open spans of all threads that have begun in full mode, by id: so a thread with the context
 * of another one can name the spans and frames that it came from.
 *
 * The table has a fixed size and no lock, and signal handlers write it, too. If it is full, a new
 * span replaces the oldest of its row. A reader checks what it has read, and takes a span that was
 * being written for one that is not known.
 */
#ifndef WAFFLE_USDT_RECORD_KNOWN_SPANS_H
#define WAFFLE_USDT_RECORD_KNOWN_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#include "waffle/frame.h"

#define KNOWN_FRAMES 8

/* Frames that a thread had pushed, innermost first. */
struct known_frames {
	struct waffle_frame_slot_ slots[KNOWN_FRAMES];
	uint64_t count;
};

struct known_span {
	uint64_t id, parent;
	const char *meta; /* name, NUL, file */
	uint64_t line;
	uintptr_t thread;           /* the address of its struct waffle_thread_ */
	uintptr_t place;            /* of its struct waffle_scope_; 0: it has none */
	uint64_t frame_depth;       /* frames around it */
	struct known_frames around; /* those between the parent and this span, if known */
};

void known_spans_add(const struct known_span *span);
void known_spans_remove(uint64_t id);
bool known_spans_get(uint64_t id, struct known_span *span);

/* The frames inside of an open span when its context was last extracted. */
void known_spans_set_inside(uint64_t id, const struct known_frames *frames);
bool known_spans_get_inside(uint64_t id, struct known_frames *frames);

#endif
