// SPDX-License-Identifier: Apache-2.0
/*
 * A program that closes all its descriptors and opens files of its own under their numbers, or goes
 * to another directory, as daemons do, while it gives its records to processors:
 * "own_files closes FOLDER" or "own_files moves FOLDER".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <waffle.h>
#include <waffle_trace.h>

#define FILES 64

int main(int argc, char **argv)
{
	if (argc != 3)
		return 9;
	WAFFLE_EVENT("before", KV_I64("i", 0));
	waffle_trace_flush();
	if (chdir(argv[2]))
		return 8;
	if (!strcmp(argv[1], "closes")) {
		for (int fd = 3; fd < FILES; fd++)
			close(fd);
		for (int i = 3; i < FILES; i++) {
			char name[32];

			snprintf(name, sizeof(name), "own-%d", i);
			if (open(name, O_CREAT | O_WRONLY | O_EXCL, 0600) < 0)
				return 7;
		}
	}
	for (int i = 0; i < 100; i++)
		WAFFLE_EVENT("after", KV_I64("i", i));
	waffle_trace_flush();
	puts("end");
	return 0;
}
