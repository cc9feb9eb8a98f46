/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An error message. The code that knows the context makes it, and cmd/ prints it once.
 *
 * A function whose failure matters to the user takes a struct error * and returns a negative errno.
 * It leaves one line in it: what failed, on what, why, and what to do. The first error stays:
 * callers may add a prefix but not replace the message.
 */
#ifndef WAFFLE_UTIL_ERROR_H
#define WAFFLE_UTIL_ERROR_H

#include <errno.h>

struct error {
	char message[1024]; /* one line, or several from source_fault(); empty: no error */
};

#define ERROR_INIT                                                                                 \
	{                                                                                          \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

/* Replaces line breaks by '?': text from outside (paths, names) must not start a new line. */
void error_one_line(char *text);

/* Sets the message unless one is set. Returns -code, so that callers can return the result. The
 * message is cut to one line, unless `format` is "%s" and its argument is a message of
 * source_fault(). */
int error_set(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message. */
void error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
