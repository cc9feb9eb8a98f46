// SPDX-License-Identifier: Apache-2.0
#include "usdt/record/owner.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#define VARIABLE "WAFFLE_TRACE_OWNER"

/* The variable: "NAME=PID.EXECS.PROGRAM:PATH". It is empty until it is set. */
static struct {
	char text[PATH_MAX + 64];
	char path[PATH_MAX];
	unsigned execs;
} owner;

/* A number that differs for each program that a process executes. The random bytes that it is made
 * of are secret, and these few bits of their sum tell nothing of a part of them. */
static uint32_t program(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t words[2] = {0};

	if (random)
		memcpy(words, random, sizeof(words));
	return (uint32_t)((words[0] + words[1]) * 0x9e3779b97f4a7c15ull >> 32);
}

enum owner owner_of(const char *name)
{
	const char *value = getenv(VARIABLE);
	unsigned long pid, of = 0;
	char *end;

	if (!value)
		return OWNER_NONE;
	pid = strtoul(value, &end, 10);
	if (*end == '.')
		strtoul(end + 1, &end, 10);
	if (*end == '.')
		of = strtoul(end + 1, &end, 16);
	if (*end != ':' || strcmp(end + 1, name) != 0)
		return OWNER_NONE;
	if (pid != (unsigned long)getpid())
		return OWNER_OTHER;
	return of == program() ? OWNER_COPY : OWNER_SELF;
}

unsigned owner_execs(void)
{
	const char *value = getenv(VARIABLE), *dot = value ? strchr(value, '.') : NULL;

	return dot ? (unsigned)strtoul(dot + 1, NULL, 10) : 0;
}

static void text_make(void)
{
	snprintf(owner.text, sizeof(owner.text), VARIABLE "=%d.%u.%x:%s", (int)getpid(),
		 owner.execs, program(), owner.path);
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
