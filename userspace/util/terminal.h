/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text from traced programs, files and captures on its way to people. It may hold what a terminal
 * obeys: ESC and its 8-bit forms (C1), which type and paint; marks that turn the direction of text,
 * which show another name than there is; line breaks, which forge a message. All such text goes
 * through here, also to files and pipes, which end up on terminals.
 */
#ifndef WAFFLE_UTIL_TERMINAL_H
#define WAFFLE_UTIL_TERMINAL_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One character of the text. */
struct terminal_char {
	uint32_t bytes;    /* taken from the text: 1 if they are no UTF-8 */
	const char *shown; /* itself; a blank for a tab; U+FFFD for a control or what is no UTF-8 */
	uint32_t shown_bytes;
};

/* The next one of `len` bytes, of which there is at least one. */
struct terminal_char terminal_char(const char *text, size_t len);

/* Prints a name or a value on one line. Returns the number of characters. */
int terminal_put(FILE *out, const char *text, size_t len);

/* Prints a message, and ends its line. Further lines of it begin with two blanks, and what does not
 * is no line of its own. All that goes to standard error, but the progress line, goes by here. */
void terminal_message(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A log of several lines from the kernel or a library, as it is but for controls. */
void terminal_log(FILE *out, const char *text);

/* How many bytes the control at `text` has: C0 but the NUL, DEL, C1 in UTF-8, marks of direction,
 * separators of lines. 0: it is none. */
uint32_t terminal_control(const char *text, size_t len);

#endif
