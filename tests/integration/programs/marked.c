// SPDX-License-Identifier: Apache-2.0
/* A library with a span, for Python to call. */
#include "waffle.h"

int mark(int number);

int mark(int number)
{
	WAFFLE_SPAN("mark", KV_I64("number", number));

	return number + 1;
}
