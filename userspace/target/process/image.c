// SPDX-License-Identifier: Apache-2.0
#include "target/process/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/process/opener.h"
#include "target/process/process.h"

#define AUXILIARY_MAX 64 /* pairs of the auxiliary vector (getauxval(3)) */
#define ENVIRONMENT_MAX (1024 * 1024)

struct auxiliary {
	uint64_t pairs[AUXILIARY_MAX][2];
	size_t count;
};

static bool auxiliary_read(struct auxiliary *vector, int process)
{
	int fd = openat(process, "auxv", O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, vector->pairs, sizeof(vector->pairs));

	if (fd >= 0)
		close(fd);
	vector->count = got > 0 ? (size_t)got / sizeof(vector->pairs[0]) : 0;
	return vector->count;
}

static bool auxiliary_value(const struct auxiliary *vector, uint64_t type, uint64_t *value)
{
	for (size_t i = 0; i < vector->count && vector->pairs[i][0] != AT_NULL; i++) {
		if (vector->pairs[i][0] == type) {
			*value = vector->pairs[i][1];
			return true;
		}
	}
	return false;
}

/*
 * Checks that the auxiliary vector belongs to the memory of the image. If the process called exec
 * in between, the image still refers to the old memory and cannot read the addresses in the new
 * vector. During an exec the vector is empty at first.
 */
static int image_check(const struct image *image)
{
	struct auxiliary vector;
	uint64_t secure, random;
	char byte;

	if (!auxiliary_read(&vector, image->process) ||
	    !auxiliary_value(&vector, AT_SECURE, &secure) || secure)
		return -EACCES;
	return auxiliary_value(&vector, AT_RANDOM, &random) && image_read(image, random, &byte, 1)
		       ? 0
		       : -ESRCH;
}

static bool task_vector(struct auxiliary *vector, pid_t task)
{
	char path[32];
	int process;
	bool found;

	snprintf(path, sizeof(path), "/proc/%d", task);
	process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	found = process >= 0 && auxiliary_read(vector, process);
	if (process >= 0)
		close(process);
	return found;
}

bool image_may_be_read(pid_t pid)
{
	struct auxiliary vector;
	uint64_t secure;

	/* A main thread that has exited has no memory, so another live thread is tried. */
	return (task_vector(&vector, pid) || task_vector(&vector, process_live_task(pid))) &&
	       auxiliary_value(&vector, AT_SECURE, &secure) && !secure;
}

int image_open(struct image *image, pid_t pid)
{
	char path[32];
	int result;

	*image = (struct image){-1, -1};
	snprintf(path, sizeof(path), "/proc/%d", pid);
	image->process = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (image->process < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	image->memory = openat(image->process, "mem", O_RDONLY | O_CLOEXEC);
	result = image->memory < 0 ? (errno == ENOENT ? -ESRCH : -errno) : image_check(image);
	if (result)
		image_close(image);
	return result;
}

void image_close(struct image *image)
{
	if (image->memory >= 0)
		close(image->memory);
	if (image->process >= 0)
		close(image->process);
	*image = (struct image){-1, -1};
}

bool image_is_there(const struct image *image)
{
	return !image_check(image);
}

size_t image_read_some(const struct image *image, uint64_t address, void *to, size_t size)
{
	ssize_t got = address <= INT64_MAX ? opener_read(image->memory, to, size, address) : -1;

	return got > 0 ? (size_t)got : 0;
}

bool image_read(const struct image *image, uint64_t address, void *to, size_t size)
{
	return image_read_some(image, address, to, size) == size;
}

char **image_environment(const struct image *image, char **text)
{
	char **list;
	size_t len = 0, count = 0;
	ssize_t got;
	int fd;

	*text = NULL;
	fd = openat(image->process, "environ", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	*text = calloc(1, ENVIRONMENT_MAX + 1);
	while (*text && len < ENVIRONMENT_MAX &&
	       (got = opener_read(fd, *text + len, ENVIRONMENT_MAX - len, len)) > 0)
		len += (size_t)got;
	close(fd);
	for (size_t i = 0; *text && i < len; i++)
		count += !(*text)[i];
	list = *text ? calloc(count + 1, sizeof(*list)) : NULL;
	if (list) {
		char *at = *text;

		for (size_t i = 0; i < count; i++, at += strlen(at) + 1)
			list[i] = at;
	}
	return list;
}
