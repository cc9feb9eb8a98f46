// SPDX-License-Identifier: Apache-2.0
#include "target/elf/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>

#define LIBRARY "libdebuginfod.so.1"

struct debuginfod_client; /* defined by the library */

struct debuginfod {
	void *library;
	struct debuginfod_client *client;
	/* Same signatures as in elfutils/debuginfod.h. */
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
		/* C has no cast from an object pointer to a function pointer, but POSIX gives both
		 * the same representation. */
		memcpy(wanted[i].function, &function, sizeof(function));
	}
	return true;
}

struct debuginfod *debuginfod_open(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct debuginfod *debuginfod;

	/* In a static program, which has no loader, dlopen() would load a second C library. */
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
	/* The library stays loaded, since the TLS libraries that it uses would leak memory. */
	free(debuginfod);
}

int debuginfod_fetch(struct debuginfod *debuginfod, const struct build_id *id)
{
	return id->size ? debuginfod->find(debuginfod->client, id->bytes, id->size, NULL) : -ENOENT;
}
