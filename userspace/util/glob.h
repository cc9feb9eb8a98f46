/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Patterns: '*' matches any bytes, '?' one byte, '[a-z]' one byte of a set, '[!a-z]' one byte
 * outside it. '\' takes the next byte literally. A pattern has to match the whole text. Bytes are
 * compared, not characters.
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
	uint64_t set[4];    /* GLOB_SET: a bit for each byte; a '!' has been applied */
};

/* A compiled pattern. No two stars are adjacent. */
struct glob {
	size_t len;
	struct glob_token tokens[];
};

/*
 * Compiles a pattern of at most 256 bytes. On an error, returns NULL with its position in *at: a
 * '[' without its ']', a '\' at the end, or the '-' of a range that runs backwards. *at == len: out
 * of memory.
 */
struct glob *glob_new(const char *pattern, size_t len, size_t *at);
void glob_free(struct glob *glob);

/* Whether a pattern matches a text. The code generated for filters has to agree with this. */
bool glob_matches(const struct glob *glob, const char *text, size_t len);

/* Whether a token other than a star matches a byte. */
bool glob_token_takes(const struct glob_token *token, unsigned char byte);

#endif
