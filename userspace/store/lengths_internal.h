/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the records of a file are. META has, for each kind that the writer knows, the number of
 * 64-bit words behind the packed form of its records (struct record_kind). So a reader skips kinds
 * and words that it does not know, and takes words that the file does not have as 0.
 */
#ifndef WAFFLE_STORE_LENGTHS_INTERNAL_H
#define WAFFLE_STORE_LENGTHS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "store/bytes_internal.h"

/* A kind is a byte. */
#define RECORD_LENGTHS_KINDS 256
/* More words are longer than any record may be. */
#define RECORD_LENGTHS_WORDS_MAX 1024
/* The file has no records of the kind. */
#define RECORD_ABSENT UINT16_MAX

struct record_lengths {
	uint16_t words[RECORD_LENGTHS_KINDS];
};

/* Those that this program writes. */
struct record_lengths record_lengths_own(void);
/* Those of files of version 1, which have no table. */
struct record_lengths record_lengths_version_1(void);
/* Whether a file has kinds or words that this program does not know. */
bool record_lengths_newer(const struct record_lengths *lengths);

/* Writes the program's own table at `to`, which has RECORD_LENGTHS_BYTES_MAX bytes. */
#define RECORD_LENGTHS_BYTES_MAX (RECORD_LENGTHS_KINDS * 4)
unsigned char *record_lengths_put(unsigned char *to);
/* Reads a table. Marks the cursor as bad if no writer could have written it. */
void record_lengths_get(struct record_lengths *lengths, struct cursor *cursor);

#endif
