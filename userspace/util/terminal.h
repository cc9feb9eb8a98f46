/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes text from traced programs, files and captures safe to print. Such text may contain control
 * characters: ESC and its 8-bit forms (C1), which can type and paint; marks of text direction,
 * which can disguise a name; line breaks, which can forge a message. All such text passes through
 * here, even when written to files and pipes, since their contents end up on terminals.
 */
#ifndef WAFFLE_UTIL_TERMINAL_H
#define WAFFLE_UTIL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One character of the text. */
struct terminal_char {
	uint32_t bytes; /* length in the text: 1 for invalid UTF-8 */
	/* The character itself; a blank for a tab; U+FFFD for a control character or invalid
	 * UTF-8. */
	const char *shown;
	uint32_t shown_bytes;
};

/* Decodes the next character of a text of `len` bytes, at least 1. */
struct terminal_char terminal_char(const char *text, size_t len);

/* Prints a name or a value on one line. Returns the number of characters. */
int terminal_put(FILE *out, const char *text, size_t len);

/* Prints a message on one line, so that text in it can't forge another. All output to standard
 * error passes through here or terminal_fault(), except the progress line. */
void terminal_message(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for the message of a struct error. It keeps the line breaks of source_fault(), which are
 * followed by two blanks, and no others. */
void terminal_fault(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a log of several lines from the kernel or a library, without its control characters. */
void terminal_log(FILE *out, const char *text);

/* Length in bytes of the control character at `text`; 0: it is none. Control characters are C0
 * except NUL, DEL, C1 in UTF-8, marks of direction and line separators. */
uint32_t terminal_control(const char *text, size_t len);

/* ---- tables in colour ---- */

/* Whether to use colours: only on terminals, unless NO_COLOR is set (no-color.org) or TERM is
 * dumb. */
bool terminal_has_colour(FILE *out);

/* SGR sequences (ECMA-48 8.3.117). */
#define TERMINAL_BOLD "\033[1m"
#define TERMINAL_WARN "\033[1;31m"
#define TERMINAL_DIM "\033[2m"
#define TERMINAL_RED "\033[31m"
#define TERMINAL_GREEN "\033[32m"
#define TERMINAL_YELLOW "\033[33m"
#define TERMINAL_END "\033[0m"

/* Prints a sequence if `colour` is set. */
void terminal_paint(FILE *out, bool colour, const char *sequence);

/* Number of characters in a valid UTF-8 text, which is taken as its width. */
uint32_t terminal_columns(const char *text);
/* Skips this many characters. */
const char *terminal_skip(const char *text, uint32_t columns);

/* Prints a trusted text right-aligned in a column. A text that is as wide or wider follows one
 * blank. */
void terminal_put_cell(FILE *out, uint32_t width, const char *text);

#endif
