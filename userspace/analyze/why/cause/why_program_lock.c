// SPDX-License-Identifier: Apache-2.0
/* Locks that a program has made itself, and waits for in its own way: it sleeps to try again, or
 * waits for a message of who releases the lock. Only its functions show that. */
#include "analyze/why/cause/why_blocked_internal.h"

#include <string.h>

#include "analyze/why/lookup/why_meaning.h"
#include "analyze/why/why_walk_types.h"
#include "util/memory.h"

/* The first row counts of which both lists, as of meaning_is_listed(), have a function in the
 * stack. `within` NULL: any. */
struct lock_row {
	const char *waits, *within;
	const char *object;
};

/* Functions of who waits. */
static const struct lock_row locks[] = {
	{"sqlite3InvokeBusyHandler sqliteDefaultBusyCallback btreeInvokeBusyHandler ", NULL,
	 "the lock of an SQLite database: its holder is not recorded"},
	{"ProcSleep ", "heap_update heap_delete heap_lock_tuple ",
	 "the lock of a row in PostgreSQL"},
	{"ProcSleep ", "XactLockTableWait ", "the end of a transaction in PostgreSQL"},
	{"ProcSleep ", "pg_advisory_* ", "an advisory lock in PostgreSQL"},
	{"ProcSleep ", "LockRelation* ", "the lock of a table in PostgreSQL"},
	{"ProcSleep ", "LockAcquire* ", "a lock in PostgreSQL"},
	{"LWLockAcquire* LWLockWaitForVar ", NULL, "a lock of shared memory in PostgreSQL"},
};

/* Functions of who ends the wait, if the stack of who waited is not recorded. */
static const struct lock_row releases[] = {
	{"ProcLockWakeup ", "LockRelease* ", "a lock in PostgreSQL"},
	{"LWLockRelease* ", NULL, "a lock of shared memory in PostgreSQL"},
};

static bool has_any(const char *const *functions, uint32_t count, const char *list)
{
	for (uint32_t i = 0; i < count; i++)
		if (functions[i] && meaning_is_listed(functions[i], list))
			return true;
	return false;
}

static uint32_t row_find(struct why_walk *walk, uint32_t stack, uint64_t ts,
			 const struct lock_row *rows, size_t row_count)
{
	const char *functions[STACK_NAMES_FUNCTIONS];
	uint32_t count =
		stack_names_functions(walk->names, stack, ts, functions, STACK_NAMES_FUNCTIONS);

	for (size_t i = 0; i < row_count; i++)
		if (has_any(functions, count, rows[i].waits) &&
		    (!rows[i].within || has_any(functions, count, rows[i].within)))
			return strtab_put(walk->why->texts, rows[i].object, strlen(rows[i].object));
	return 0;
}

/* Many waits have the same stack, which may be a waker's as well. */
static uint32_t lock_by_stack(struct why_walk *walk, uint32_t stack, uint64_t ts, bool waker)
{
	uint64_t key = (uint64_t)stack << 1 | waker;
	uint32_t text;

	if (!stack)
		return 0;
	text = map_get(&walk->program_locks, key);
	if (text == MAP_NONE) {
		text = waker ? row_find(walk, stack, ts, releases,
					sizeof(releases) / sizeof(releases[0]))
			     : row_find(walk, stack, ts, locks, sizeof(locks) / sizeof(locks[0]));
		map_put(&walk->program_locks, key, text);
	}
	return text;
}

uint32_t why_program_lock(struct why_walk *walk, const struct why_blocked *blocked)
{
	const unsigned interrupts = WAFFLE_SWITCH_WAKER_HARDIRQ | WAFFLE_SWITCH_WAKER_SOFTIRQ;
	bool wakes = blocked->kind == WAIT_POLL || blocked->kind == WAIT_FUTEX;
	const struct model_wake *wake;

	if (!walk->names || (!wakes && blocked->kind != WAIT_SLEEP))
		return 0;
	if (blocked->wait && blocked->wait->user_stack)
		return lock_by_stack(walk, blocked->wait->user_stack, blocked->wait->from_ts,
				     false);
	wake = wakes && !blocked->interval->open
		       ? model_wake_at(walk->model, blocked->thread, blocked->interval->to_ts)
		       : NULL;
	if (!wake || wake->flags & interrupts)
		return 0;
	return lock_by_stack(walk, wake->user_stack, wake->ts, true);
}
