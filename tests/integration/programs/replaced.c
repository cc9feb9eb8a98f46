// SPDX-License-Identifier: Apache-2.0
/* replaced OLD NEW FILE: opens a library, moves another one to its path, and then records. */
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <waffle_trace.h>

int main(int argc, char **argv)
{
	void *library = argc > 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	void (*work)(int) = library ? (void (*)(int))dlsym(library, "library_work") : NULL;
	int (*changed)(void) = library ? (int (*)(void))dlsym(library, "library_changed") : NULL;

	if (!work || !changed)
		return 2;
	work(1);
	if (rename(argv[2], argv[1]) || waffle_trace_start(argv[3], NULL))
		return 3;
	work(2);
	printf("%d\n", changed());
	waffle_trace_stop();
	printf("%d\n", changed());
	return 0;
}
