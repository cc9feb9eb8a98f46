/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SQLite, which is opened when a database is written: so waffle-bpf needs it neither to be built
 * nor to run. The constants and functions are those of sqlite3.h (sqlite.org/c3ref), whose binary
 * interface does not change.
 */
#ifndef WAFFLE_EXPORT_SQLITE_LIBRARY_INTERNAL_H
#define WAFFLE_EXPORT_SQLITE_LIBRARY_INTERNAL_H

#include <stdint.h>

#include "util/error.h"

#define SQLITE_OK 0
#define SQLITE_NOMEM 7
#define SQLITE_DONE 101
#define SQLITE_OPEN_READWRITE 0x02
#define SQLITE_OPEN_CREATE 0x04
#define SQLITE_OPEN_URI 0x40
#define SQLITE_CONFIG_MEMDB_MAXSIZE 29
#define SQLITE_SERIALIZE_NOCOPY 1u
/* What a bound text is for: it stays until the row is written, or it has to be copied. */
#define SQLITE_STATIC ((void (*)(void *))0)
#define SQLITE_TRANSIENT ((void (*)(void *)) - 1)

struct sqlite_library {
	int (*config)(int option, ...);
	int (*open_v2)(const char *name, void **db, int flags, const char *vfs);
	int (*close)(void *db);
	int (*exec)(void *db, const char *sql, void *callback, void *arg, char **message);
	int (*prepare_v2)(void *db, const char *sql, int bytes, void **statement,
			  const char **tail);
	int (*bind_int64)(void *statement, int column, int64_t value);
	int (*bind_double)(void *statement, int column, double value);
	int (*bind_null)(void *statement, int column);
	int (*bind_text)(void *statement, int column, const char *text, int bytes,
			 void (*free)(void *));
	int (*step)(void *statement);
	int (*reset)(void *statement);
	int (*finalize)(void *statement);
	const char *(*errmsg)(void *db);
	unsigned char *(*serialize)(void *db, const char *schema, int64_t *bytes, unsigned flags);
};

/* NULL with a message: it is not installed. */
const struct sqlite_library *sqlite_library_open(struct error *err);

#endif
