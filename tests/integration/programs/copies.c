// SPDX-License-Identifier: Apache-2.0
/* A site that the compiler copies, and one that it does not. A line of input passes both once. */
#include "log.h"

#include "waffle.h"

static inline __attribute__((always_inline)) void copied(void)
{
	WAFFLE_EVENT("copied");
}

static __attribute__((noinline)) void first(void)
{
	copied();
}

static __attribute__((noinline)) void second(void)
{
	copied();
}

int main(void)
{
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		first();
		second();
		WAFFLE_EVENT("single");
		puts("did");
	}
	return 0;
}
