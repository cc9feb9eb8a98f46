// SPDX-License-Identifier: Apache-2.0
#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void error_one_line(char *text)
{
	for (; (text = strchr(text, '\n')); text++)
		*text = '?';
}

int error_set(struct error *err, int code, const char *format, ...)
{
	va_list args;

	if (!err || err->message[0])
		return -code;
	va_start(args, format);
	vsnprintf(err->message, sizeof(err->message), format, args);
	va_end(args);
	if (strcmp(format, "%s") != 0)
		error_one_line(err->message);
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
	error_one_line(err->message);
	memcpy(err->message + len, ": ", 2);
	keep = strnlen(old.message, room - (size_t)len - 2);
	memcpy(err->message + len + 2, old.message, keep);
	err->message[(size_t)len + 2 + keep] = '\0';
}
