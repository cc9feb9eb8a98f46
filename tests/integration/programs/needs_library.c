// SPDX-License-Identifier: Apache-2.0
/* Linked with programs/library.c. */
#include "waffle.h"

int library_call(int i);

int main(void)
{
	for (int i = 0; i < 100; i++) {
		WAFFLE_EVENT("main event", KV_I64("i", i));
		library_call(i);
	}
	return 0;
}
