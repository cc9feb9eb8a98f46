/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes text from traced programs, files and captures safe to print. It may contain characters that
 * control a terminal: ESC and its 8-bit forms (C1), which can type and paint; marks of text
 * direction, which disguise a name; line breaks, which forge a message. All such text passes
 * through here, also to files and pipes, since their contents end up on terminals.
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

/* Reads the next character of `len` bytes, at least 1. */
struct terminal_char terminal_char(const char *text, size_t len);

/* Prints a name or a value on one line. Returns the number of characters. */
int terminal_put(FILE *out, const char *text, size_t len);

/* Prints a message on one line, so that text in it can't forge another. Everything for standard
 * error passes here or through terminal_fault(), except the progress line. */
void terminal_message(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same for the message of a struct error, whose only line breaks are those of source_fault():
 * each is in front of two blanks. */
void terminal_fault(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints a log of several lines from the kernel or a library, without its control characters. */
void terminal_log(FILE *out, const char *text);

/* The length in bytes of the control character at `text`: C0 except NUL, DEL, C1 in UTF-8, marks of
 * direction, line separators. 0: it is none. */
uint32_t terminal_control(const char *text, size_t len);

#endif
