// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as the dynamic loader's sources of library paths: its cache, an ELF file, and a list of
 * directories. All may come from a container.
 */
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/loader/loader.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_path(const char *path, void *arg)
{
	size_t *count = arg;

	require(path[0] == '/' && strlen(path) < PATH_MAX);
	(*count)++;
}

static bool check_folder(const char *folder, void *arg)
{
	check_path(folder, arg);
	require(!strchr(folder, '$'));
	return false;
}

static void check_list(const char *list)
{
	static const struct loader_base bases[] = {
		{"/usr/bin/program", "/tmp", "lib64"}, {"/program", "/", NULL}, {"", "", ""}};

	for (unsigned i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		size_t count = 0;

		loader_folders_each(list, &bases[i], check_folder, &count);
		require(count <= strlen(list) + 1);
	}
}

static void check_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct loader_file file;

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	if (loader_file_read(&file, fd)) {
		char *runpath = loader_runpath(fd);

		require(!runpath == !(file.runpath || file.rpath));
		if (runpath)
			check_list(runpath);
		for (size_t i = 0; i < file.needed.len; i++)
			require(file.needed.data[i][0]);
		free(runpath);
		loader_file_free(&file);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	size_t count = 0;

	require(text);
	memcpy(text, data, size);
	text[size] = '\0';
	check_list(text);
	free(text);
	check_file(data, size);
	loader_cache_each((const char *)data, size, check_path, &count);
	return 0;
}
