// SPDX-License-Identifier: Apache-2.0
#include "export/sqlite/library_internal.h"

#include <dlfcn.h>
#include <stddef.h>

#include "util/library.h"

#define NAME "libsqlite3.so.0"
/* Larger than any model that fits in memory; the default is 1 GiB. */
#define BYTES_MAX (INT64_C(1) << 42)

static const struct library_function functions[] = {
#define FUNCTION(name)                                                                             \
	{                                                                                          \
		"sqlite3_" #name, offsetof(struct sqlite_library, name)                            \
	}
	FUNCTION(config),     FUNCTION(open_v2),     FUNCTION(close),     FUNCTION(exec),
	FUNCTION(prepare_v2), FUNCTION(bind_int64),  FUNCTION(bind_null), FUNCTION(bind_text),
	FUNCTION(step),       FUNCTION(bind_double), FUNCTION(reset),     FUNCTION(finalize),
	FUNCTION(errmsg),     FUNCTION(serialize),
#undef FUNCTION
};

const struct sqlite_library *sqlite_library_open(struct error *err)
{
	static struct sqlite_library library;
	void *handle = dlopen(NAME, RTLD_NOW | RTLD_LOCAL);
	const char *missing;

	if (!handle) {
		error_set(err, ENOENT, "%s can't be opened; install libsqlite3-0", NAME);
		return NULL;
	}
	missing =
		library_find(handle, functions, sizeof(functions) / sizeof(functions[0]), &library);
	if (missing) {
		error_set(err, ENOSYS, "%s is too old: it has no %s", NAME, missing);
		dlclose(handle);
		return NULL;
	}
	library.config(SQLITE_CONFIG_MEMDB_MAXSIZE, BYTES_MAX);
	return &library;
}
