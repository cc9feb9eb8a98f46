/* SPDX-License-Identifier: Apache-2.0 */
/* Which of some names a mistyped word may have meant. */
#ifndef WAFFLE_UTIL_NEAR_H
#define WAFFLE_UTIL_NEAR_H

#include <stdbool.h>
#include <stddef.h>

/* Letters to insert, delete or change to make one from the other; long words count as far apart. */
unsigned near_distance(const char *a, const char *b);

/* Whether a reader would take `word` for a slip of `name`: a few letters off, or its beginning. */
bool near_name(const char *word, const char *name);

#endif
