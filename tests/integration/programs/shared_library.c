// SPDX-License-Identifier: Apache-2.0
/* A library that exports one function. */
#include "shared_context.h"
#include "waffle.h"

void library_work(long n)
{
	WAFFLE_SPAN("library", KV_I64("n", n));
	WAFFLE_EVENT("in the library", KV_I64("n", n));
}
