// SPDX-License-Identifier: Apache-2.0
#include "target/process/container_id.h"

#include <stdio.h>
#include <string.h>

#define DIGITS "0123456789abcdef"
#define ID_LEN (CONTAINER_ID_BYTES - 1)

static bool ends_with(const char *text, size_t len, const char *end)
{
	size_t of = strlen(end);

	return len >= of && !memcmp(text + len - of, end, of);
}

const char *container_id_in(const char *text, size_t len)
{
	size_t end = ends_with(text, len, ".scope") ? len - strlen(".scope") : len, begin = end;

	while (begin && strchr(DIGITS, text[begin - 1]))
		begin--;
	if (end - begin != ID_LEN || (begin && text[begin - 1] != '-') ||
	    ends_with(text, begin, "conmon-"))
		return NULL;
	return text + begin;
}

bool container_id_parse(char id[CONTAINER_ID_BYTES], const char *line)
{
	bool found = false;

	/* The last one is the innermost container's. */
	for (const char *at = line; *at;) {
		size_t len = strcspn(at, "/\n");
		const char *in = container_id_in(at, len);

		if (in) {
			memcpy(id, in, ID_LEN);
			id[ID_LEN] = '\0';
			found = true;
		}
		at += len + (at[len] != '\0');
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
