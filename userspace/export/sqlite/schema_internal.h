/* SPDX-License-Identifier: Apache-2.0 */
/* The schema of the database: docs/sqlite.md explains it. */
#ifndef WAFFLE_EXPORT_SQLITE_SCHEMA_INTERNAL_H
#define WAFFLE_EXPORT_SQLITE_SCHEMA_INTERNAL_H

/* Tables, to be made before the rows; indexes and views, after them. */
extern const char sqlite_tables[], sqlite_indexes[], sqlite_views[];

#endif
