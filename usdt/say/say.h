/* SPDX-License-Identifier: Apache-2.0 */
/* What libwaffle tells people on standard error. A program whose standard error is a pipe that
 * nobody reads must not wait for it, so a line that finds no room is dropped. So is one when
 * descriptor 2 may be a file of the program (standard_error.h). */
#ifndef WAFFLE_USDT_SAY_SAY_H
#define WAFFLE_USDT_SAY_SAY_H

/* Writes "waffle: ", the text and a newline. Leaves errno and the stdio of the program alone. Not
 * async-signal-safe. */
__attribute__((format(printf, 1, 2))) void say_line(const char *format, ...);
/* The same for a text that is there already. */
void say_text(const char *text);

#endif
