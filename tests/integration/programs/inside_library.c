// SPDX-License-Identifier: Apache-2.0
/* A library that inside.c opens late. Its first site is hit by its constructor. */
#include <waffle.h>

void inside_work(int i);

__attribute__((constructor)) static void library_begin(void)
{
	WAFFLE_EVENT("loaded");
}

void inside_work(int i)
{
	WAFFLE_SPAN("late work", KV_I64("i", i));
}
