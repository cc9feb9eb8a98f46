/* SPDX-License-Identifier: Apache-2.0 */
/* Text from traced programs can hold any bytes; what is written out has to be UTF-8. */
#ifndef WAFFLE_UTIL_UTF8_H
#define WAFFLE_UTIL_UTF8_H

#include <stddef.h>

/* Length in bytes of the longest beginning of `text` that is well-formed UTF-8 (RFC 3629). */
size_t utf8_valid(const char *text, size_t len);

/*
 * Copies `text` to `out` with every ill-formed sequence replaced by U+FFFD, one for each maximal
 * subpart (Unicode 15, 3.9, table 3-8). `out` has room for UTF8_CLEAN_MAX(len) bytes; it is not
 * terminated. Returns the bytes written.
 */
size_t utf8_clean(const char *text, size_t len, char *out);
#define UTF8_CLEAN_MAX(len) (3 * (len))

#endif
