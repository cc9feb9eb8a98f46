// SPDX-License-Identifier: Apache-2.0
#include "usdt/say/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "export/process/chain.h"
#include "usdt/say/standard_error.h"
#include "util/error.h"

void say_text(const char *text)
{
	if (standard_error_is_there())
		chain_say("waffle", text);
}

void say_line(const char *format, ...)
{
	struct error line = ERROR_INIT;
	int code = errno;
	va_list args;

	va_start(args, format);
	vsnprintf(line.message, sizeof(line.message), format, args);
	va_end(args);
	say_text(line.message);
	errno = code;
}
