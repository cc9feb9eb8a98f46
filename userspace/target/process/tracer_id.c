// SPDX-License-Identifier: Apache-2.0
#include "target/process/tracer_id.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of /proc/PID/stat: the field with the time, in ticks since the machine started, counted from the
 * state, which follows the name of the program in brackets. */
#define START_FIELD 19

/* 0: there is no such process. */
static unsigned long long start_of(long pid)
{
	char path[32], text[1024], *at;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[got < 0 ? 0 : got] = '\0';
	at = strrchr(text, ')');
	for (int field = -1; at && field < START_FIELD; field++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

bool tracer_id_make(char id[TRACER_ID_BYTES])
{
	unsigned long long start = start_of(getpid());

	snprintf(id, TRACER_ID_BYTES, "%ld.%llu", (long)getpid(), start);
	return start != 0;
}

bool tracer_id_is_alive(const char *id)
{
	char *end;
	long pid = strtol(id, &end, 10);
	unsigned long long start = *end == '.' ? strtoull(end + 1, &end, 10) : 0;

	return pid > 0 && start && !*end && start_of(pid) == start;
}
