// SPDX-License-Identifier: Apache-2.0
/* A library with one event, whose name the compiler is told. */
#include <waffle.h>

void inside_work(int i);

void inside_work(int i)
{
	WAFFLE_EVENT(EVENT_NAME, KV_I64("i", i));
}
