/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of Python that have a name in the file, and their numbers there. A flight recorder
 * drops names to which no stack refers any more. Then all is forgotten here, and frames that come
 * again get new numbers.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_PYTHON_NAMES_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_PYTHON_NAMES_INTERNAL_H

#include "store/store.h"
#include "util/keymap.h"

struct python_names {
	struct store_writer *writer;
	struct keymap number_of_frame; /* earlier results */
	struct keymap number_of_name;  /* process and name → number */
	uint32_t count;                /* numbers that were given */
	uint64_t dropped;              /* store_writer_names_dropped() at the last stack */
};

/* What tells a frame from all others: its program, code object and instruction, and which of the
 * code objects at that address it is. */
typedef uint64_t python_frame_key[4];

void python_names_free(struct python_names *names);
/* To be called before the frames of each stack. False: there is no room for more names. */
bool python_names_begin(struct python_names *names);
/* The number of a frame that was named before. MAP_NONE: it was not. */
uint32_t python_names_find(const struct python_names *names, const python_frame_key frame);
/* Names a frame, by "FUNCTION (FILE:LINE)", and returns its number. Writes the name if it is new.
 */
int python_names_add(struct python_names *names, const python_frame_key frame, uint32_t pid,
		     const char *text, uint32_t *number, struct error *err);

#endif
