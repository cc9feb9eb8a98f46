// SPDX-License-Identifier: Apache-2.0
/* A program without libwaffle and without sites. It opens a plugin that has both, and calls it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	void (*work)(int) = library ? dlsym(library, "inside_work") : NULL;

	if (!work) {
		fprintf(stderr, "%s\n",
			argc > 2 ? dlerror() : "usage: inside_plugin LIBRARY COUNT");
		return 1;
	}
	for (int i = 0; i < atoi(argv[2]); i++)
		work(i);
	dlclose(library);
	return 0;
}
