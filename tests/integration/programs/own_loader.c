// SPDX-License-Identifier: Apache-2.0
/* A dynamic loader that somebody else has written: it writes down with how many arguments each time
 * it is run. */
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
