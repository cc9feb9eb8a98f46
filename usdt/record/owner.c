// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/owner.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE "WAFFLE_TRACE_OWNER"

/* The variable: "NAME=PID.EXECS:PATH". It is empty until it is set. */
static struct {
	char text[PATH_MAX + 64];
	char path[PATH_MAX];
	unsigned execs;
} owner;

enum owner owner_of(const char *name)
{
	const char *value = getenv(VARIABLE);
	unsigned long pid;
	char *end;

	if (!value)
		return OWNER_NONE;
	pid = strtoul(value, &end, 10);
	if (*end == '.')
		strtoul(end + 1, &end, 10);
	if (*end != ':' || strcmp(end + 1, name) != 0)
		return OWNER_NONE;
	return pid == (unsigned long)getpid() ? OWNER_SELF : OWNER_OTHER;
}

unsigned owner_execs(void)
{
	const char *value = getenv(VARIABLE), *dot = value ? strchr(value, '.') : NULL;

	return dot ? (unsigned)strtoul(dot + 1, NULL, 10) : 0;
}

static void text_make(void)
{
	snprintf(owner.text, sizeof(owner.text), VARIABLE "=%d.%u:%s", (int)getpid(), owner.execs,
		 owner.path);
}

/* putenv() takes the memory as it is, so that a child can change it without the lock of setenv(),
 * which another thread of its parent may have had. */
void owner_set(const char *name, unsigned execs)
{
	snprintf(owner.path, sizeof(owner.path), "%s", name);
	owner.execs = execs;
	text_make();
	putenv(owner.text);
}

void owner_fork_child(void)
{
	owner.execs = 0;
	if (*owner.text)
		text_make();
}

int owner_name(char *path, size_t size, unsigned execs, struct error *err)
{
	char *file = strrchr(path, '/'), *extension = strrchr(file ? file : path, '.'), number[16];
	size_t digits;

	if (!execs || !*path)
		return 0;
	digits = (size_t)snprintf(number, sizeof(number), "-%u", execs + 1);
	if (!extension)
		extension = path + strlen(path);
	if (strlen(path) + digits >= size)
		return error_set(err, ENAMETOOLONG, "the name of the file is too long");
	memmove(extension + digits, extension, strlen(extension) + 1);
	memcpy(extension, number, digits);
	return 0;
}
