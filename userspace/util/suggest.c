// SPDX-License-Identifier: Apache-2.0
#include "util/suggest.h"

#include <string.h>

#define WORD_MAX 32 /* longer words are not compared */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

/* Levenshtein distance, computed one row of the table at a time. */
unsigned suggest_distance(const char *a, const char *b)
{
	size_t a_len = strlen(a), b_len = strlen(b);
	unsigned row[WORD_MAX + 1];

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return a_len == b_len && !memcmp(a, b, a_len) ? 0 : WORD_MAX;
	for (size_t j = 0; j <= b_len; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= a_len; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t j = 1; j <= b_len; j++) {
			unsigned above = row[j];

			row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[b_len];
}

bool suggest_similar(const char *word, const char *name)
{
	size_t len = strlen(word);
	unsigned distance = suggest_distance(word, name);

	return (len && !strncmp(word, name, len)) || (distance <= 2 && distance < len);
}
