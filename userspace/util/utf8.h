/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of any bytes to valid UTF-8: text from traced programs can contain any bytes, but
 * output must be UTF-8. */
#ifndef WAFFLE_UTIL_UTF8_H
#define WAFFLE_UTIL_UTF8_H

#include <stddef.h>

/* Length in bytes of the longest prefix of `text` that is well-formed UTF-8 (RFC 3629). */
size_t utf8_valid(const char *text, size_t len);

/* Length of the longest prefix with at most `max` bytes that does not end within a character. */
size_t utf8_cut(const char *text, size_t max);

/*
 * Copies `text` to `out` and replaces every ill-formed sequence by U+FFFD, one for each maximal
 * subpart (Unicode 15, 3.9, table 3-8). `out` must have room for UTF8_CLEAN_MAX(len) bytes and gets
 * no NUL. Returns the number of bytes written.
 */
size_t utf8_clean(const char *text, size_t len, char *out);
#define UTF8_CLEAN_MAX(len) (3 * (len))

#endif
