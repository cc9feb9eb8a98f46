// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/cupti_find.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "usdt/gpu/cupti.h"

#define MAJOR_OLDEST 12u
#define MAJOR_NEWEST 13u

struct loaded {
	char cupti[PATH_MAX];   /* "": the process has none */
	char runtime[PATH_MAX]; /* the folder of its libcudart, or "" */
	unsigned major;         /* of its libcudart; 0: it has none */
};

static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "libcudart.so.13" and "libcudart-80664282.so.12.2" */
static unsigned runtime_major(const char *name)
{
	const char *at = strstr(name, ".so.");
	unsigned major = 0;

	return at && sscanf(at, ".so.%u", &major) == 1 ? major : 0;
}

static int file_look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct loaded *loaded = arg;
	const char *path = info->dlpi_name ? info->dlpi_name : "";
	const char *name = name_of(path);

	(void)size;
	if (strlen(path) >= PATH_MAX)
		return 0;
	if (!strncmp(name, "libcupti", 8) && (name[8] == '.' || name[8] == '-'))
		strcpy(loaded->cupti, path);
	if (!strncmp(name, "libcudart", 9) && (name[9] == '.' || name[9] == '-')) {
		strcpy(loaded->runtime, path);
		loaded->runtime[name == path ? 0 : name - path - 1] = '\0';
		loaded->major = runtime_major(name);
	}
	return 0;
}

/* The major version of CUDA that the driver has at most. */
static unsigned driver_major(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	int (*get)(int *version) = NULL;
	int version = 0;

	if (driver)
		*(void **)&get = dlsym(driver, "cuDriverGetVersion");
	if (get && get(&version))
		version = 0;
	if (driver)
		dlclose(driver);
	return (unsigned)version / 1000;
}

static void *try(const char *folder, const char *under, unsigned major)
{
	char path[2 * PATH_MAX];

	snprintf(path, sizeof(path), "%s%slibcupti.so.%u", folder, under, major);
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* Where CUDA's wheels, its toolkit and conda have CUPTI, from the folder of the runtime. */
static void *load_beside(const struct loaded *loaded)
{
	static const char *const folders[] = {"/", "/../../cuda_cupti/lib/",
					      "/../extras/CUPTI/lib64/",
					      "/../../../extras/CUPTI/lib64/"};
	void *handle = NULL;

	if (!*loaded->runtime || !loaded->major)
		return NULL;
	for (size_t i = 0; !handle && i < sizeof(folders) / sizeof(folders[0]); i++)
		handle = try(loaded->runtime, folders[i], loaded->major);
	return handle;
}

static void *load(const struct loaded *loaded, char *reason)
{
	unsigned most = loaded->major ? loaded->major : driver_major();
	unsigned least = loaded->major ? loaded->major : MAJOR_OLDEST;
	void *handle = load_beside(loaded);

	if (!most || most > MAJOR_NEWEST)
		most = MAJOR_NEWEST;
	for (unsigned major = most; !handle && major >= least; major--)
		handle = try("", "", major);
	if (!handle && loaded->major)
		snprintf(reason, CUPTI_REASON,
			 "no libcupti.so.%u in the process, beside its libcudart or where the "
			 "loader looks; install NVIDIA's CUPTI of the same CUDA",
			 loaded->major);
	else if (!handle)
		snprintf(reason, CUPTI_REASON,
			 "no libcupti.so.%u in the process or where the loader looks; install "
			 "NVIDIA's CUPTI or add its folder to LD_LIBRARY_PATH",
			 most);
	return handle;
}

bool cuda_is_loaded(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	if (driver)
		dlclose(driver);
	return driver != NULL;
}

void *cupti_find(char *reason)
{
	struct loaded loaded = {0};
	void *handle;

	dl_iterate_phdr(file_look, &loaded);
	if (*loaded.cupti) {
		handle = dlopen(loaded.cupti, RTLD_NOW | RTLD_NOLOAD);
		if (handle)
			return handle;
	}
	/* It may be a part of the program. */
	if (dlsym(RTLD_DEFAULT, "cuptiSubscribe"))
		return dlopen(NULL, RTLD_NOW);
	return load(&loaded, reason);
}
