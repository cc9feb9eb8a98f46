/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Durations, sizes and counts in the form that people write and read.
 *
 * Parsers require that the whole text is valid, without blanks or sign, and reject what does not
 * fit in 64 bits. Formatters write into the caller's buffer and return it, for use as printf
 * arguments:
 *
 *	char text[UNITS_TEXT];
 *	printf("%10s\n", units_format_duration(text, ns));
 */
#ifndef WAFFLE_UTIL_UNITS_H
#define WAFFLE_UTIL_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define UNITS_TEXT 32 /* bytes of the longest text, with its NUL */

/*
 * "10s" "500ms" "1.5s" "1m30s" "2h" → nanoseconds. Units are ns us µs ms s m h d, and each part has
 * a smaller unit than the part before it. A number without unit is rejected, except "0".
 */
bool units_parse_duration(const char *text, uint64_t *ns);
/* "64MiB" "512k" "4096" → bytes. k K M G T are powers of 1024, with or without "iB" or "B". */
bool units_parse_bytes(const char *text, uint64_t *bytes);
/* A decimal number, digits only. */
bool units_parse_number(const char *text, uint64_t *number);

/* "12.3 ms", "450 ns", "1.50 s", "2 min 05 s": three significant digits. */
char *units_format_duration(char text[UNITS_TEXT], uint64_t ns);
/* "12.3 MiB", "900 B" */
char *units_format_bytes(char text[UNITS_TEXT], uint64_t bytes);
/* "1,234,567" */
char *units_format_count(char text[UNITS_TEXT], uint64_t count);
/* The singular or the plural for a count: units_plural(n, "child was", "children were"). */
const char *units_plural(uint64_t count, const char *one, const char *many);
/* " and 12 more", to follow the names of some things; "" if `others` is 0. */
char *units_format_more(char text[UNITS_TEXT], uint64_t others);
/* A share of a whole in percent, "12.3 %"; "-" if the whole is 0. */
char *units_format_share(char text[UNITS_TEXT], uint64_t part, uint64_t whole);

#endif
