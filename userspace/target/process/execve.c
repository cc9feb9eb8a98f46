// SPDX-License-Identifier: Apache-2.0
#include "target/process/execve.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "target/process/image_pages_internal.h"
#include "target/process/injection.h"
#include "target/process/process.h"

#define VARIABLES_MAX 4096
#define TEXT_MAX 131072 /* limit of one variable: MAX_ARG_STRLEN of the kernel */
#define VARIABLES_READ 64
#define PAGES 64
#define PAUSE_NS 50000
#define PAUSES_MAX 40

/* Reads the system call that the main thread is in, and its arguments. A thread that is being
 * stopped may still be on its CPU; the kernel then reports "running". */
static bool call_read(pid_t pid, long *number, uint64_t arguments[6])
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	for (unsigned i = 0; i < PAUSES_MAX; i++) {
		FILE *file = fopen(path, "re");
		int count;

		if (!file)
			return false;
		count = fscanf(file, "%ld %lx %lx %lx %lx %lx %lx", number, &arguments[0],
			       &arguments[1], &arguments[2], &arguments[3], &arguments[4],
			       &arguments[5]);
		fclose(file);
		if (count)
			return count == 7;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* Address of the environment list of the execve() in progress. 0: the process is not in
 * execve(). */
static uint64_t environment_address(pid_t pid)
{
	uint64_t arguments[6];
	long number;

	if (!call_read(pid, &number, arguments))
		return 0;
	return number == SYS_execve ? arguments[2] : number == SYS_execveat ? arguments[3] : 0;
}

bool execve_is_main(pid_t pid)
{
	uint64_t arguments[6];
	long number;

	if (process_thread_count(pid) == 1)
		return true;
	return call_read(pid, &number, arguments) &&
	       (number == SYS_execve || number == SYS_execveat);
}

/* Memory of a process. Each read of it takes two switches of processes, and the strings of an
 * environment lie on few pages: those that the program began with, and those that it has set. */
struct memory {
	const struct image *image;
	struct image_pages *pages;
};

static size_t memory_read(const struct memory *memory, uint64_t address, char *to, size_t size)
{
	return image_pages_read_some(memory->pages, memory->image, address, to, size);
}

static bool decides(const struct memory *memory, uint64_t address)
{
	static const char *const names[] = {"LD_", "HOME=", "VIRTUAL_ENV="};
	char begin[32] = "";

	memory_read(memory, address, begin, sizeof(begin) - 1);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(begin, names[i], strlen(names[i])))
			return true;
	return injection_sets(begin);
}

/* Appends a variable and its NUL to the text, which has room. Returns its length. */
static size_t variable_read(const struct memory *memory, uint64_t address, char *text, size_t room)
{
	size_t len = 0;

	while (len + 1 < room) {
		size_t want = room - len - 1 < 256 ? room - len - 1 : 256;
		size_t got = memory_read(memory, address + len, text + len, want);
		const char *end = memchr(text + len, '\0', got);

		if (end)
			return (size_t)(end - text) + 1;
		len += got;
		if (got < want)
			break;
	}
	text[len] = '\0';
	return len + 1;
}

static char **list_make(const struct memory *memory, const uint64_t *addresses, size_t count,
			char *text)
{
	char **list = calloc(VARIABLES_READ + 1, sizeof(*list));
	size_t used = 0, found = 0;

	for (size_t i = 0; list && i < count && found < VARIABLES_READ; i++) {
		if (!decides(memory, addresses[i]) || TEXT_MAX - used < 2)
			continue;
		list[found++] = text + used;
		used += variable_read(memory, addresses[i], text + used, TEXT_MAX - used);
	}
	return list;
}

/* Reads the environment of the next program from that address. */
static char **environment_read(const struct image *image, uint64_t address, char **text)
{
	uint64_t *addresses = calloc(VARIABLES_MAX, sizeof(*addresses));
	struct memory memory = {image, image_pages_new(PAGES)};
	char **list = NULL;
	size_t count;

	*text = calloc(1, TEXT_MAX);
	if (*text && addresses && memory.pages) {
		count = image_read_some(image, address, addresses,
					VARIABLES_MAX * sizeof(*addresses)) /
			sizeof(*addresses);
		for (size_t i = 0; i < count; i++)
			if (!addresses[i])
				count = i;
		list = list_make(&memory, addresses, count, *text);
	}
	image_pages_free(memory.pages);
	free(addresses);
	return list;
}

char **execve_environment(pid_t pid, char **text)
{
	uint64_t address = environment_address(pid);
	struct image image;
	char **list;

	*text = NULL;
	/* A program that gained privileges by its exec must not be read. */
	if (image_open(&image, pid))
		return calloc(1, sizeof(*list));
	list = address ? environment_read(&image, address, text) : image_environment(&image, text);
	image_close(&image);
	return list;
}
