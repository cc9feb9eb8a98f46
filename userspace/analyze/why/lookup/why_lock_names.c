// SPDX-License-Identifier: Apache-2.0
#include "analyze/why/lookup/why_lock_names.h"

#include <string.h>

#include "analyze/why/lookup/why_meaning.h"

/* The first row counts of which both lists, as of meaning_is_listed(), have a function in the
 * stack. `within` NULL: any. */
struct lock_row {
	const char *waits, *within;
	const char *object;
};

#define STANDBY_TEXT "a synchronous standby of PostgreSQL, which has to confirm the commit"

#define ADVISORY_TEXT "an advisory lock in PostgreSQL"

#define SHARED_TEXT "a lock of Python's multiprocessing"

/* PostgreSQL's wait for a lock of its table of locks. */
#define PROC_SLEEP "ProcSleep "

/* The wait of MariaDB and MySQL for a metadata lock. */
#define MDL_WAIT "MDL_wait::timed_wait* "
#define METADATA_TEXT "a metadata lock of MariaDB or MySQL"

/* Functions of who waits. */
static const struct lock_row locks[] = {
	{"sqlite3InvokeBusyHandler sqliteDefaultBusyCallback btreeInvokeBusyHandler ", NULL,
	 "the lock of an SQLite database: its holder is not recorded"},
	{PROC_SLEEP, "heap_update heap_delete heap_lock_tuple ", "the lock of a row in PostgreSQL"},
	{PROC_SLEEP, "XactLockTableWait ", "the end of a transaction in PostgreSQL"},
	{PROC_SLEEP, "pg_advisory_* ", ADVISORY_TEXT},
	{PROC_SLEEP, "LockRelation* ", "the lock of a table in PostgreSQL"},
	{PROC_SLEEP, "LockAcquire* ", "a lock in PostgreSQL"},
	{"LWLockAcquire* LWLockWaitForVar ", NULL, "a lock of shared memory in PostgreSQL"},
	{"SyncRepWaitForLSN ", NULL, STANDBY_TEXT},
	{MDL_WAIT, "Item_func_get_lock::val_int* ", "a lock of GET_LOCK() in MariaDB or MySQL"},
	{MDL_WAIT, NULL, METADATA_TEXT},
	{"lock_wait(* lock_wait_suspend_thread(* ",
	 "row_mysql_handle_errors(* row_search_mvcc(* row_upd_step(* row_ins_step(* ",
	 "a lock of a row or table in InnoDB"},
	/* The functions of a semaphore are the same, but a "with" statement of Python gives back
	 * what it takes: __enter__, or SemLock.__enter__ from Python 3.11 on. Until 3.9 the
	 * function of C was semlock_acquire(). */
	{"_multiprocessing_SemLock_acquire* _multiprocessing_SemLock___enter__* semlock_acquire ",
	 "SemLock __enter__ ", SHARED_TEXT},
};

/* Collectives of PyTorch and Gloo in which each rank waits for all others. In a broadcast, they may
 * wait for one that has nothing to do. */
static const struct lock_row ranks[] = {
	{"c10d::Reducer::finalize_backward* ", NULL, WHY_RANKS_TEXT},
	{"c10d::*Work::wait* ",
	 "all_reduce barrier all_gather* reduce_scatter* all_to_all* c10d::Reducer::* "
	 "c10d::verify_params_across_processes* ",
	 WHY_RANKS_TEXT},
	{"gloo::*::waitRecv* gloo::*::waitSend* ",
	 "gloo::*allreduce* gloo::*allgather* gloo::*reduce_scatter* gloo::*alltoall* "
	 "gloo::barrier* ",
	 WHY_RANKS_TEXT},
};

/* Functions of who ends the wait, if the stack of who waited is not recorded. */
static const struct lock_row releases[] = {
	{"ProcLockWakeup ", "LockRelease* ", "a lock in PostgreSQL"},
	{"LWLockRelease* ", NULL, "a lock of shared memory in PostgreSQL"},
	{"MDL_wait::set_status* ", "MDL_lock::reschedule_waiters* ", METADATA_TEXT},
};

static bool has_any(const char *const *functions, uint32_t count, const char *list)
{
	for (uint32_t i = 0; i < count; i++)
		if (functions[i] && meaning_is_listed(functions[i], list))
			return true;
	return false;
}

static const char *row_find(const struct lock_row *rows, size_t row_count,
			    const char *const *functions, uint32_t count)
{
	for (size_t i = 0; i < row_count; i++)
		if (has_any(functions, count, rows[i].waits) &&
		    (!rows[i].within || has_any(functions, count, rows[i].within)))
			return rows[i].object;
	return NULL;
}

/* Debian's module _multiprocessing has no names. From Python 3.11 on that of the method is enough:
 * it calls nothing but the function of C. */
static bool is_nameless_semaphore(const char *const *functions, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (functions[i] && !strcmp(functions[i], "SemLock.__enter__"))
			return true;
	return false;
}

/* Debian's mariadbd 10.11 has no names of InnoDB's functions, but those that it exports to other
 * engines. Only for a lock does an engine wait with a timeout (innodb_lock_wait_timeout). A join
 * may have so many functions that mysql_execute_command() is not among those that are looked at. */
static bool is_nameless_engine(const char *const *functions, uint32_t count)
{
	return has_any(functions, count, "pthread_cond_timedwait* ") &&
	       has_any(functions, count,
		       "handler::ha_index_* handler::ha_rnd_* handler::ha_update_row* "
		       "handler::ha_write_row* handler::ha_delete_row* ") &&
	       has_any(functions, count,
		       "mysql_execute_command* mysql_update* mysql_insert* mysql_delete* "
		       "JOIN::* sub_select* QUICK_* ");
}

const char *why_lock_awaited(const char *const *functions, uint32_t count)
{
	const char *object = row_find(locks, sizeof(locks) / sizeof(locks[0]), functions, count);

	if (object)
		return object;
	if (is_nameless_engine(functions, count))
		return "a lock of a row or table in MariaDB or MySQL";
	return is_nameless_semaphore(functions, count) ? SHARED_TEXT : NULL;
}

const char *why_ranks_awaited(const char *const *functions, uint32_t count)
{
	return row_find(ranks, sizeof(ranks) / sizeof(ranks[0]), functions, count);
}

bool why_is_of_ranks(const char *const *functions, uint32_t count)
{
	return has_any(functions, count, "c10d::* gloo::* ");
}

bool why_lock_is_answer(const char *object)
{
	return !strcmp(object, STANDBY_TEXT);
}

bool why_lock_is_shared(const char *object)
{
	return !strcmp(object, SHARED_TEXT);
}

/* Whether it is the lock of a row with these functions of the wait. */
static bool is_of_row(const char *object, const char *waits)
{
	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		if (!strcmp(locks[i].waits, waits) && !strcmp(locks[i].object, object))
			return true;
	return false;
}

bool why_lock_is_of_transaction(const char *object)
{
	return is_of_row(object, PROC_SLEEP);
}

bool why_lock_ends_with_transaction(const char *object)
{
	return why_lock_is_of_transaction(object) && strcmp(object, ADVISORY_TEXT) != 0;
}

bool why_lock_is_of_metadata(const char *object)
{
	return is_of_row(object, MDL_WAIT);
}

/* A thread that enters a monitor may first have to wait for the collector of garbage. */
const char *why_lock_of_java(const char *const *functions, uint32_t count)
{
	return has_any(functions, count, "ObjectMonitor::enter* ObjectMonitor::EnterI* ") &&
			       !has_any(functions, count,
					"ObjectMonitor::wait* SafepointSynchronize::* "
					"SafepointMechanism::* HandshakeState::* ")
		       ? "the monitor of an object of Java"
		       : NULL;
}

const char *why_lock_released(const char *const *functions, uint32_t count)
{
	return row_find(releases, sizeof(releases) / sizeof(releases[0]), functions, count);
}
