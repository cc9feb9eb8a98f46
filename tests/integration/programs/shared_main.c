// SPDX-License-Identifier: Apache-2.0
/*
 * Calls a library inside a span for each line of its input: one that it is linked with, or with an
 * argument one that it opens.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "shared_context.h"
#include "waffle.h"

int main(int argc, char **argv)
{
	void (*work)(long n) = NULL;
	char line[16];

	if (argc > 1) {
		void *opened = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);

		if (!opened) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		*(void **)&work = dlsym(opened, "library_work");
#ifdef LINKED
	} else {
		work = library_work;
#endif
	}
	if (!work)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	puts("ready");
	for (long n = 0; fgets(line, sizeof(line), stdin); n++) {
		{
			WAFFLE_SPAN("program", KV_I64("n", n));
			work(n);
		}
		puts("did");
	}
	return 0;
}
