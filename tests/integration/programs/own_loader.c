// SPDX-License-Identifier: Apache-2.0
/* A dynamic loader that the target brings along. Each time it is run, it logs how many arguments it
 * got. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	FILE *log = fopen(getenv("LOADER_LOG"), "a");

	(void)argv;
	if (!log)
		return 1;
	fprintf(log, "%d\n", argc);
	return fclose(log);
}
