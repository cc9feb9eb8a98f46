// SPDX-License-Identifier: Apache-2.0
/* A library of which only one function is meant for others. */
#include "shared_context.h"
#include "waffle.h"

void library_work(long n)
{
	WAFFLE_SPAN("library", KV_I64("n", n));
	WAFFLE_EVENT("in the library", KV_I64("n", n));
}
