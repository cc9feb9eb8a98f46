// SPDX-License-Identifier: Apache-2.0
/*
 * Registers kernels, as a CUDA program would, with names whose demangling never ends in practice:
 * hostile_names COUNT. Each type of a name contains the previous type twice, and the demangler
 * searches all of them for a parameter pack.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "waffle.h"

#define DEPTH 34

__attribute__((noinline, visibility("default"))) void
__cudaRegisterFunction(void **binary, const char *host, char *device, const char *name, int limit,
		       void *a, void *b, void *c, void *d, int *e)
{
	__asm__ volatile(""
			 :
			 : "r"(binary), "r"(host), "r"(device), "r"(name), "r"(limit), "r"(a),
			   "r"(b), "r"(c), "r"(d), "r"(e)
			 : "memory");
}

int main(int argc, char **argv)
{
	static const char numbers[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[256] = "_Z1fDp", line[8];
	int count = argc > 1 ? atoi(argv[1]) : 0;

	memset(name + strlen(name), 'F', DEPTH);
	strcat(name, "1AS_E");
	for (int i = 0; i < DEPTH - 1; i++)
		snprintf(name + strlen(name), 8, "S%c_E", numbers[i]);
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < count; i++)
		__cudaRegisterFunction(NULL, (const char *)main + i, NULL, name, 0, NULL, NULL,
				       NULL, NULL, NULL);
	WAFFLE_EVENT("named");
	puts("named");
	fflush(stdout);
	return !fgets(line, sizeof(line), stdin);
}
