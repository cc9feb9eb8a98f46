/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the titles of PostgreSQL's processes say, which are their command lines: "postgres: app shop
 * 127.0.0.1(49032) idle in transaction" of a session, with the user and the database; "postgres:
 * checkpointer". With a cluster_name, they begin with "postgres: main: ".
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_POSTGRES_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_POSTGRES_H

#include "model/model.h"

/* The database of a session, `*len` bytes long; NULL: the title does not say it. */
const char *why_postgres_database(const char *title, size_t *len);
/* Whether it is a session that is idle in a transaction. One that has failed, "idle in transaction
 * (aborted)", holds no lock. */
bool why_postgres_is_idle(const char *title);
/* Whether a thread is a process that PostgreSQL starts by itself, which waits for the time of its
 * next round, or for others to have some work for it. */
bool why_postgres_is_background(const struct model *model, uint32_t thread);
/* Whether a session waits for the next command of its client. `functions`: those of its user stack
 * that have names, innermost first. Not all static functions may have one. */
bool why_postgres_awaits_command(const char *const *functions, uint32_t count);

#endif
