// SPDX-License-Identifier: Apache-2.0
/* A dynamic loader that somebody else has written: asked for a program's libraries, it writes down
 * with whose rights it runs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	FILE *log =
		argc > 1 && !strcmp(argv[1], "--list") ? fopen(getenv("LOADER_LOG"), "w") : NULL;

	if (!log)
		return 1;
	fprintf(log, "%d %d %d %d %d\n", getuid(), geteuid(), getgid(), getegid(),
		getgroups(0, NULL));
	return fclose(log);
}
