/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns: '*' any bytes, '?' one byte, '[a-z]' one of these, '[!a-z]' one of the others, '\'
 * takes the next byte as it is. The whole text has to match. Bytes are compared, not characters.
 */
#ifndef WAFFLE_UTIL_GLOB_H
#define WAFFLE_UTIL_GLOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum glob_token_type { GLOB_BYTE, GLOB_ANY_ONE, GLOB_SET, GLOB_STAR };

struct glob_token {
	enum glob_token_type type;
	unsigned char byte; /* GLOB_BYTE */
	uint64_t set[4];    /* GLOB_SET: a bit for each byte; a '!' is applied already */
};

/* Stars never stand beside each other. */
struct glob {
	size_t len;
	struct glob_token tokens[];
};

/*
 * A pattern of at most 256 bytes. NULL and the place of the fault in *at (a '[' without its ']', a
 * '\' at the end, the '-' of a range that runs backwards), or *at == len: out of memory.
 */
struct glob *glob_new(const char *pattern, size_t len, size_t *at);
void glob_free(struct glob *glob);

/* The definition of a match. */
bool glob_matches(const struct glob *glob, const char *text, size_t len);

/* Whether a token other than a star takes a byte. */
bool glob_token_takes(const struct glob_token *token, unsigned char byte);

#endif
