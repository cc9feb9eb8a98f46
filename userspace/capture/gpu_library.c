// SPDX-License-Identifier: Apache-2.0
#include "capture/gpu_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/inject/inject.h"

int gpu_library_path(char path[PATH_MAX], struct error *err)
{
	static const char *const places[] = {"libwaffle-gpu.so", "../lib/libwaffle-gpu.so"};
	char self[PATH_MAX - 32], place[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (length < 0)
		return error_set(err, errno, "/proc/self/exe: %s", strerror(errno));
	self[length] = '\0';
	*strrchr(self, '/') = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(place, sizeof(place), "%s/%s", self, places[i]);
		if (realpath(place, path))
			return 0;
	}
	return error_set(err, ENOENT, "libwaffle-gpu.so is neither in %s nor in %s/../lib", self,
			 self);
}

int gpu_library_load(pid_t pid, struct error *err)
{
	char path[PATH_MAX];
	struct inject_target target = {
		.library = path, .start = "InitializeInjection", .thread = "waffle-gpu"};
	int result = gpu_library_path(path, err);

	return result ?: inject_library(pid, &target, err);
}
