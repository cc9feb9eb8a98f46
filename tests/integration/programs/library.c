// SPDX-License-Identifier: Apache-2.0
/* An instrumented library, to be linked or to be opened late. */
#include "log.h"

#include "waffle.h"

int library_call(int i);

int library_call(int i)
{
	WAFFLE_SPAN("library span", KV_I64("i", i));
	WAFFLE_EVENT("library event", KV_I64("i", i));
	return i;
}

__attribute__((constructor)) static void library_begin(void)
{
	library_call(-1);
}
