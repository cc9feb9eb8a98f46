/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An error message, made where the context is known and printed once, in cmd/.
 *
 * Functions that can fail for a reason a user should read take a struct error *, return a negative
 * errno and leave one line in it: what failed, on what, why, and what to do. The first error stays:
 * callers may add a prefix, not replace it.
 */
#ifndef WAFFLE_UTIL_ERROR_H
#define WAFFLE_UTIL_ERROR_H

#include <errno.h>

struct error {
	char message[1024]; /* one line, or of source_fault(); empty: no error */
};

#define ERROR_INIT                                                                                 \
	{                                                                                          \
		{                                                                                  \
			0                                                                          \
		}                                                                                  \
	}

/* Puts '?' in place of line breaks: text from outside (paths, names) must not begin a line. */
void error_one_line(char *text);

/* Sets the message unless one is set. Returns -code, so that it can be returned at once. The
 * message is one line, unless `format` is "%s" and its argument is a message of source_fault(). */
int error_set(struct error *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message. */
void error_prefix(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
