/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the name that a mistyped word may have meant. */
#ifndef WAFFLE_UTIL_SUGGEST_H
#define WAFFLE_UTIL_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/* Number of letters to insert, delete or change to turn one word into the other. Long words are
 * never similar. */
unsigned suggest_distance(const char *a, const char *b);

/* Whether `word` is probably meant to be `name`: at most two letters differ, or it is the beginning
 * of the name. */
bool suggest_similar(const char *word, const char *name);

#endif
