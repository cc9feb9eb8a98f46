// SPDX-License-Identifier: Apache-2.0
/* What the program's functions on a stack show about a futex: mainly, whether it is a lock. */
#include "analyze/why/lookup/why_futex.h"

#include <string.h>

#include "analyze/why/why_walk_types.h"
#include "util/memory.h"

/* Prefixes of function names, without the library's own prefixes ("__", "__GI_"). An entry with a
 * leading space matches anywhere in the name, because modules and classes precede it. */
static const struct {
	const char *begin;
	enum futex_use use;
} futex_functions[] = {
	{"lll_lock_wait", FUTEX_USE_LOCK},
	{"lll_lock_wake", FUTEX_USE_LOCK},
	{"lll_timedlock_wait", FUTEX_USE_LOCK},
	{"lll_clocklock_wait", FUTEX_USE_LOCK},
	{"pthread_mutex_", FUTEX_USE_LOCK},
	{"pthread_rwlock_wrlock", FUTEX_USE_SHARED},
	{"pthread_rwlock_timedwrlock", FUTEX_USE_SHARED},
	{"pthread_rwlock_clockwrlock", FUTEX_USE_SHARED},
	{"pthread_rwlock_rdunlock", FUTEX_USE_SHARED},
	{"pthread_rwlock_unlock", FUTEX_USE_SHARED}, /* for readers and writers */
	{"pthread_rwlock_", FUTEX_USE_LOCK},
	{"mtx_lock", FUTEX_USE_LOCK},
	{"mtx_timedlock", FUTEX_USE_LOCK},
	{"mtx_unlock", FUTEX_USE_LOCK},
	{" futex::Mutex::", FUTEX_USE_LOCK}, /* Rust */
	{" futex::RwLock::write", FUTEX_USE_SHARED},
	{" futex::RwLock::", FUTEX_USE_LOCK},
	{" RawMutex::lock_slow", FUTEX_USE_LOCK}, /* parking_lot */
	{" RawMutex::unlock_slow", FUTEX_USE_LOCK},
	{" RawRwLock::", FUTEX_USE_LOCK},
	{"pthread_cond_", FUTEX_USE_OTHER},
	{"pthread_join", FUTEX_USE_ENDS},
	{"pthread_timedjoin", FUTEX_USE_ENDS},
	{"pthread_clockjoin", FUTEX_USE_ENDS},
	{"pthread_barrier_", FUTEX_USE_ENDS},
	{"cnd_", FUTEX_USE_OTHER},
	{"sem_", FUTEX_USE_OTHER},
	{"new_sem_", FUTEX_USE_OTHER},
	{" futex::Condvar::", FUTEX_USE_OTHER},
	{" std::__atomic_", FUTEX_USE_OTHER},
	{"syscall", FUTEX_USE_OWN},
	{"runtime.futex", FUTEX_USE_OTHER}, /* Go: everything its scheduler waits for */
};

static enum futex_use use_by(const char *function)
{
	const char *plain = function + strspn(function, "_");

	if (!strncmp(plain, "GI_", 3))
		plain += 3 + strspn(plain + 3, "_");
	for (size_t i = 0; i < sizeof(futex_functions) / sizeof(futex_functions[0]); i++) {
		const char *begin = futex_functions[i].begin;

		if (*begin == ' ' ? strstr(function, begin + 1) != NULL
				  : !strncmp(plain, begin, strlen(begin)))
			return futex_functions[i].use;
	}
	return FUTEX_USE_UNKNOWN;
}

static bool is_conclusive(enum futex_use use)
{
	return use != FUTEX_USE_UNKNOWN && use != FUTEX_USE_OWN && use != FUTEX_USE_LIBC;
}

enum futex_use futex_use_by(const char *const *functions, size_t count)
{
	enum futex_use use = FUTEX_USE_UNKNOWN;

	for (size_t i = 0; i < count && !is_conclusive(use); i++) {
		enum futex_use now = functions[i] ? use_by(functions[i]) : FUTEX_USE_UNKNOWN;

		if (now != FUTEX_USE_UNKNOWN)
			use = now;
	}
	return use;
}

/*
 * Whether glibc itself made the call. Its functions that wait for mutexes are often without names.
 * Those that wait for other things with the same futex operation have names.
 */
static bool is_of_glibc(struct why_walk *walk, const struct store_stack *stack, uint64_t ts)
{
	const struct store_mapping *mapping;
	const char *base;

	if (!stack->pid || !stack->count)
		return false;
	mapping = stack_mappings_find(walk->mappings, stack->pid, stack->addresses[0], ts);
	base = mapping ? strrchr(mapping->path, '/') : NULL;
	return base && (!strncmp(base, "/libc.so.6", 10) || !strncmp(base, "/libc-2.", 8) ||
			!strncmp(base, "/libpthread", 11));
}

static enum futex_use use_by_stack(struct why_walk *walk, uint32_t number, uint64_t ts)
{
	const struct store_stack *stack = store_reader_stack(walk->model->reader, number);
	const char *functions[STACK_NAMES_FUNCTIONS];
	enum futex_use use;
	uint32_t known;

	if (!stack)
		return FUTEX_USE_UNKNOWN;
	known = map_get(&walk->futex_uses, number);
	if (known != MAP_NONE)
		return (enum futex_use)known;
	use = futex_use_by(functions, stack_names_functions(walk->names, number, ts, functions,
							    STACK_NAMES_FUNCTIONS));
	if (use == FUTEX_USE_UNKNOWN && is_of_glibc(walk, stack, ts))
		use = FUTEX_USE_LIBC;
	map_put(&walk->futex_uses, number, use);
	return use;
}

enum futex_use why_futex_use(struct why_walk *walk, uint32_t thread,
			     const struct why_interval *interval, const struct model_wait *wait)
{
	const struct model_wake *wake;
	enum futex_use use = FUTEX_USE_UNKNOWN, woken = FUTEX_USE_UNKNOWN;

	if (!walk->names)
		return use;
	if (wait)
		use = use_by_stack(walk, wait->user_stack, wait->from_ts);
	if (is_conclusive(use) || interval->open)
		return use;
	/* The waker's functions belong to the same lock. */
	wake = model_wake_at(walk->model, thread, interval->to_ts);
	if (wake && !(wake->flags & WAFFLE_SWITCH_WAKER_INTERRUPT))
		woken = use_by_stack(walk, wake->user_stack, wake->ts);
	return is_conclusive(woken) || use == FUTEX_USE_UNKNOWN ? woken : use;
}
