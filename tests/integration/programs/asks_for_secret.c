// SPDX-License-Identifier: Apache-2.0
/*
 * Registers names of kernels, as a CUDA program does, at an address where it has nothing mapped.
 * Then it executes a program that has something there: asks_for_secret ADDRESS COUNT COMMAND ….
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
	char *address = (char *)strtoul(argv[1], NULL, 0), line[8];
	int count = atoi(argv[2]);

	(void)argc;
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	for (int i = 0; i < count; i++)
		__cudaRegisterFunction(NULL, (const char *)main + i, NULL, address, 0, NULL, NULL,
				       NULL, NULL, NULL);
	execv(argv[3], argv + 3);
	return 1;
}
