// SPDX-License-Identifier: Apache-2.0
/* Makes an event for each line that it reads. */
#include "log.h"

#include "waffle.h"

int main(void)
{
	char line[64];

	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	for (int i = 0; fgets(line, sizeof(line), stdin); i++) {
		WAFFLE_EVENT("made", KV_I64("i", i));
		puts("made");
	}
	return 0;
}
