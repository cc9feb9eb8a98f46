/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that a program has made itself, and waits for in its own way: it sleeps to try again, waits
 * for a message of who releases the lock, or for a condition variable. Only its functions show
 * that.
 */
#ifndef WAFFLE_ANALYZE_WHY_LOOKUP_WHY_LOCK_NAMES_H
#define WAFFLE_ANALYZE_WHY_LOOKUP_WHY_LOCK_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "the lock of a row in PostgreSQL": what a thread waits for that has these functions on its stack;
 * NULL: no such lock is known. A name may be NULL: unknown. */
const char *why_lock_awaited(const char *const *functions, uint32_t count);
/* Whether this text of why_lock_awaited() is not a lock, but something that another program,
 * perhaps on another machine, has to answer. */
bool why_lock_is_answer(const char *object);
/* Whether this text of why_lock_awaited() is a lock that a program shares with its children,
 * without a timeout. */
bool why_lock_is_shared(const char *object);
/* Whether this text of why_lock_awaited() is a lock of PostgreSQL that a session may hold until its
 * transaction ends. */
bool why_lock_is_of_transaction(const char *object);
/* The same, if the session can hold it no longer than that. */
bool why_lock_ends_with_transaction(const char *object);
/* Whether this text of why_lock_awaited() is a metadata lock of MariaDB or MySQL, which a
 * connection may hold while it waits for its client. */
bool why_lock_is_of_metadata(const char *object);
/* WHY_RANKS_TEXT, if a thread with these functions waits for them; or NULL. */
#define WHY_RANKS_TEXT "the other ranks in a collective"
const char *why_ranks_awaited(const char *const *functions, uint32_t count);
/* Whether they are of a library by which ranks of a job talk to each other. */
bool why_is_of_ranks(const char *const *functions, uint32_t count);
/* The same as why_lock_awaited() for the locks of a JVM, whose process it must be. */
const char *why_lock_of_java(const char *const *functions, uint32_t count);
/* The same, of a thread that releases the lock. */
const char *why_lock_released(const char *const *functions, uint32_t count);

#endif
