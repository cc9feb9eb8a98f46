/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of Python that have a name in the file, and the numbers of the names. A flight
 * recorder drops names that no stack needs any more. Then this table forgets all its numbers, and
 * frames that are seen again get new ones.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_FRAME_NAMES_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_FRAME_NAMES_INTERNAL_H

#include "store/store.h"
#include "util/keymap.h"

struct frame_names {
	struct store_writer *writer;
	struct keymap number_of_frame; /* cache */
	struct keymap number_of_name;  /* process and name → number */
	uint32_t count;                /* numbers that were given */
	uint64_t dropped;              /* store_writer_names_dropped() at the last stack */
};

/* Identifies a frame: its program, its code object, the instruction in it, and a number that tells
 * apart code objects that had the same address one after the other. */
typedef uint64_t frame_key[4];

void frame_names_free(struct frame_names *names);
/* Call it before the frames of each stack. False: there is no room for more names. */
bool frame_names_begin(struct frame_names *names);
/* The number of a frame's name. MAP_NONE: the frame has none yet. */
uint32_t frame_names_find(const struct frame_names *names, const frame_key frame);
/* The number of a name. Writes the name to the file if it is new. Returns 0 or a negative errno
 * with a message. */
int frame_names_number(struct frame_names *names, uint32_t pid, const char *text, uint32_t *number,
		       struct error *err);
/* Gives a frame the name `text`, such as "FUNCTION (FILE:LINE)", and fills in its number. Writes
 * the name to the file if it is new. Returns 0 or a negative errno with a message. */
int frame_names_add(struct frame_names *names, const frame_key frame, uint32_t pid,
		    const char *text, uint32_t *number, struct error *err);

#endif
