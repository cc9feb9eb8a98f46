// SPDX-License-Identifier: Apache-2.0
#include "export/sqlite/database_internal.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"
#include "util/utf8.h"

static int failed(const struct database *database, int code, struct error *err)
{
	if (code == SQLITE_NOMEM)
		memory_failed();
	return error_set(err, EIO, "sqlite: %s", database->library->errmsg(database->db));
}

int database_open(struct database *database, struct error *err)
{
	int code;

	*database = (struct database){.library = sqlite_library_open(err)};
	if (!database->library)
		return -ENOENT;
	/* In memory, so that no file is in the folder but the finished one. */
	code = database->library->open_v2(
		"file:waffle?vfs=memdb", &database->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI, NULL);
	if (code != SQLITE_OK)
		return failed(database, code, err);
	return database_run(database,
			    "PRAGMA page_size = 8192; PRAGMA journal_mode = OFF;"
			    "PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;",
			    err);
}

void database_close(struct database *database)
{
	if (database->db)
		database->library->close(database->db);
	database->db = NULL;
}

int database_run(struct database *database, const char *sql, struct error *err)
{
	int code = database->library->exec(database->db, sql, NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : failed(database, code, err);
}

int database_write(struct database *database, FILE *out, struct error *err)
{
	int64_t bytes = 0;
	unsigned char *data =
		database->library->serialize(database->db, "main", &bytes, SQLITE_SERIALIZE_NOCOPY);

	if (!data)
		return error_set(err, EIO, "sqlite: this libsqlite3 can't give the database away");
	fwrite(data, 1, (size_t)bytes, out);
	return 0;
}

int database_rows_begin(struct database_rows *rows, struct database *database, const char *table,
			unsigned columns, struct error *err)
{
	char sql[256];
	size_t len = (size_t)snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES (?", table);
	int code;

	*rows = (struct database_rows){.database = database};
	for (unsigned i = 1; i < columns && len < sizeof(sql) - 4; i++)
		len += (size_t)snprintf(sql + len, sizeof(sql) - len, ",?");
	snprintf(sql + len, sizeof(sql) - len, ")");
	code = database->library->prepare_v2(database->db, sql, -1, &rows->statement, NULL);
	return code == SQLITE_OK ? 0 : failed(database, code, err);
}

int database_rows_end(struct database_rows *rows, struct error *err)
{
	int result = 0;

	if (rows->failed)
		result = error_set(err, EIO, "sqlite: %s",
				   rows->database->library->errmsg(rows->database->db));
	rows->database->library->finalize(rows->statement);
	return result;
}

static void check(struct database_rows *rows, int code)
{
	if (code == SQLITE_NOMEM)
		memory_failed();
	rows->failed = rows->failed || code != SQLITE_OK;
}

void database_row_end(struct database_rows *rows)
{
	const struct sqlite_library *library = rows->database->library;

	if (!rows->failed) {
		int code = library->step(rows->statement);

		check(rows, code == SQLITE_DONE ? SQLITE_OK : code);
	}
	/* After a failure its message stays until the end. */
	if (!rows->failed)
		library->reset(rows->statement);
	rows->database->rows++;
	rows->column = 0;
}

void database_put_null(struct database_rows *rows)
{
	check(rows, rows->database->library->bind_null(rows->statement, ++rows->column));
}

void database_put_int(struct database_rows *rows, int64_t value)
{
	check(rows, rows->database->library->bind_int64(rows->statement, ++rows->column, value));
}

void database_put_double(struct database_rows *rows, double value)
{
	if (isnan(value))
		database_put_text(rows, "NaN");
	else if (isinf(value))
		database_put_text(rows, value > 0 ? "Infinity" : "-Infinity");
	else
		check(rows,
		      rows->database->library->bind_double(rows->statement, ++rows->column, value));
}

void database_put_text_len(struct database_rows *rows, const char *text, size_t len)
{
	const struct sqlite_library *library = rows->database->library;
	char *clean;

	if (len > INT_MAX / 4)
		len = INT_MAX / 4;
	if (utf8_valid(text, len) == len) {
		check(rows, library->bind_text(rows->statement, ++rows->column, text, (int)len,
					       SQLITE_STATIC));
		return;
	}
	clean = memory_get(UTF8_CLEAN_MAX(len) + 1);
	len = utf8_clean(text, len, clean);
	check(rows, library->bind_text(rows->statement, ++rows->column, clean, (int)len,
				       SQLITE_TRANSIENT));
	free(clean);
}

void database_put_text(struct database_rows *rows, const char *text)
{
	if (text && *text)
		database_put_text_len(rows, text, strlen(text));
	else
		database_put_null(rows);
}

void database_put_index(struct database_rows *rows, uint32_t index, uint32_t none)
{
	if (index == none)
		database_put_null(rows);
	else
		database_put_int(rows, index);
}
