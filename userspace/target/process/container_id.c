// SPDX-License-Identifier: Apache-2.0
#include "target/process/container_id.h"

#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789abcdef"

bool container_id_parse(char id[CONTAINER_ID_BYTES], const char *line)
{
	bool found = false;

	/* The last one is the innermost container's. */
	for (const char *at = line; *at;) {
		size_t len = strspn(at, DIGITS);
		bool alone = at == line || strchr("/-", at[-1]);

		if (len == CONTAINER_ID_BYTES - 1 && alone &&
		    (strchr("/\n", at[len]) || !strncmp(at + len, ".scope", 6))) {
			memcpy(id, at, len);
			id[len] = '\0';
			found = true;
		}
		at += len ?: 1;
	}
	return found;
}

bool container_id_read(char id[CONTAINER_ID_BYTES], pid_t pid)
{
	char path[32], line[4096];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = container_id_parse(id, line);
	fclose(file);
	return found;
}
