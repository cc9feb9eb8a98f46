// SPDX-License-Identifier: Apache-2.0
/* starts N: spans in which other programs are started, one after the other. */
#include <stdlib.h>

#include "waffle_macros.h"

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;

	for (int i = 0; i < count; i++) {
		SPAN("start");
		if (system("/bin/true; /bin/sleep 0.01"))
			return 1;
	}
	return 0;
}
