// SPDX-License-Identifier: Apache-2.0
#include "target/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>

#define LIBRARY "libdebuginfod.so.1"

struct debuginfod_client; /* of the library */

struct debuginfod {
	void *library;
	struct debuginfod_client *client;
	/* As elfutils/debuginfod.h declares them. */
	struct debuginfod_client *(*begin)(void);
	int (*find)(struct debuginfod_client *client, const unsigned char *id, int size,
		    char **path);
	void (*end)(struct debuginfod_client *client);
};

static bool load_functions(struct debuginfod *debuginfod)
{
	struct {
		const char *name;
		void *function;
	} const wanted[] = {
		{"debuginfod_begin", &debuginfod->begin},
		{"debuginfod_find_debuginfo", &debuginfod->find},
		{"debuginfod_end", &debuginfod->end},
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *function = dlsym(debuginfod->library, wanted[i].name);

		if (!function)
			return false;
		/* C has no cast from an object's pointer to a function's; POSIX has them alike. */
		memcpy(wanted[i].function, &function, sizeof(function));
	}
	return true;
}

struct debuginfod *debuginfod_open(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct debuginfod *debuginfod;

	/* A program without a loader (static) would get a second C library with it. */
	if (!urls || !urls[0] || !getauxval(AT_BASE))
		return NULL;
	debuginfod = calloc(1, sizeof(*debuginfod));
	if (!debuginfod)
		return NULL;
	debuginfod->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (debuginfod->library && load_functions(debuginfod))
		debuginfod->client = debuginfod->begin();
	if (debuginfod->client)
		return debuginfod;
	debuginfod_close(debuginfod);
	return NULL;
}

void debuginfod_close(struct debuginfod *debuginfod)
{
	if (!debuginfod)
		return;
	if (debuginfod->client)
		debuginfod->end(debuginfod->client);
	/* The library stays loaded: the TLS libraries it needs leave memory behind. */
	free(debuginfod);
}

int debuginfod_fetch(struct debuginfod *debuginfod, const struct build_id *id)
{
	return id->size ? debuginfod->find(debuginfod->client, id->bytes, id->size, NULL) : -ENOENT;
}
