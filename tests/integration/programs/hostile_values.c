// SPDX-License-Identifier: Apache-2.0
/* A span with a key that is not UTF-8, a value of 64 KiB, and numbers that JSON does not have. */
#include <math.h>
#include <string.h>

#include <waffle.h>

int main(void)
{
	static char large[65536];

	memset(large, 'x', sizeof(large) - 1);
	WAFFLE_SPAN("hostile \xff", KV_STR("key \xff\xc3", large), KV_F64("nan", NAN),
		    KV_F64("inf", -INFINITY), KV_STR("event", "a key"));
	WAFFLE_EVENT("inside", KV_STR("event", "not its name"), KV_F64("nan", NAN));
	return 0;
}
