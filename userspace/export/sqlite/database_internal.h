/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A database in memory, and rows for its tables:
 *
 *	struct database_rows rows;
 *
 *	if (!database_rows_begin(&rows, &database, "link", 3, err)) {
 *		database_put_int(&rows, 4711);
 *		database_put_text(&rows, "text");
 *		database_put_null(&rows);
 *		database_row_end(&rows);
 *		…
 *		result = database_rows_end(&rows, err);
 *	}
 *
 * An error is kept until database_rows_end().
 */
#ifndef WAFFLE_EXPORT_SQLITE_DATABASE_INTERNAL_H
#define WAFFLE_EXPORT_SQLITE_DATABASE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "export/sqlite/library_internal.h"

struct database {
	const struct sqlite_library *library;
	void *db;
	uint64_t rows; /* that were written */
};

struct database_rows {
	struct database *database;
	void *statement;
	int column; /* that was bound last, from 1 */
	bool failed;
};

int database_open(struct database *database, struct error *err);
void database_close(struct database *database);
/* Runs statements that have no result. */
int database_run(struct database *database, const char *sql, struct error *err);
/* Writes the file that it would be. A write error is left to the stream. */
int database_write(struct database *database, FILE *out, struct error *err);

int database_rows_begin(struct database_rows *rows, struct database *database, const char *table,
			unsigned columns, struct error *err);
int database_rows_end(struct database_rows *rows, struct error *err);
void database_row_end(struct database_rows *rows);

void database_put_null(struct database_rows *rows);
void database_put_int(struct database_rows *rows, int64_t value);
/* A number that is not finite is a text, since SQLite takes NaN for NULL. */
void database_put_double(struct database_rows *rows, double value);
/* The text stays until the row's end. Invalid UTF-8 becomes U+FFFD. */
void database_put_text_len(struct database_rows *rows, const char *text, size_t len);
/* An empty text is NULL. */
void database_put_text(struct database_rows *rows, const char *text);
/* The index of a row of another table; `none`: NULL. */
void database_put_index(struct database_rows *rows, uint32_t index, uint32_t none);

#endif
