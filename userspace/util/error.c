// SPDX-License-Identifier: Apache-2.0
#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int error_set(struct error *err, int code, const char *format, ...)
{
	va_list args;

	if (!err || err->message[0])
		return -code;
	va_start(args, format);
	vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	return -code;
}

void error_prefix(struct error *err, const char *format, ...)
{
	struct error old = *err;
	size_t keep, room = sizeof(err->message) - 1;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(err->message, room, format, args);
	va_end(args);
	if (len < 0 || (size_t)len + 2 >= room)
		return;
	memcpy(err->message + len, ": ", 2);
	keep = strnlen(old.message, room - (size_t)len - 2);
	memcpy(err->message + len + 2, old.message, keep);
	err->message[(size_t)len + 2 + keep] = '\0';
}
