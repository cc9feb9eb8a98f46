// SPDX-License-Identifier: Apache-2.0
/* What the program's functions on a stack show about a futex: mainly, whether it is a lock. */
#include "analyze/why_walk.h"

#include <string.h>

/* Functions of a stack to examine: library functions lie between the system call and the
 * program. */
#define FUNCTIONS_MAX 12

/* Prefixes of function names, without the library's own prefixes ("__", "__GI_"). An entry with a
 * leading space matches anywhere in the name, because modules and classes precede it. */
static const struct {
	const char *begin;
	enum wait_told told;
} told_functions[] = {
	{"lll_lock_wait", WAIT_TOLD_LOCK},
	{"lll_lock_wake", WAIT_TOLD_LOCK},
	{"lll_timedlock_wait", WAIT_TOLD_LOCK},
	{"lll_clocklock_wait", WAIT_TOLD_LOCK},
	{"pthread_mutex_", WAIT_TOLD_LOCK},
	{"pthread_rwlock_wrlock", WAIT_TOLD_SHARED},
	{"pthread_rwlock_timedwrlock", WAIT_TOLD_SHARED},
	{"pthread_rwlock_clockwrlock", WAIT_TOLD_SHARED},
	{"pthread_rwlock_rdunlock", WAIT_TOLD_SHARED},
	{"pthread_rwlock_unlock", WAIT_TOLD_SHARED}, /* for readers and writers */
	{"pthread_rwlock_", WAIT_TOLD_LOCK},
	{"mtx_lock", WAIT_TOLD_LOCK},
	{"mtx_timedlock", WAIT_TOLD_LOCK},
	{"mtx_unlock", WAIT_TOLD_LOCK},
	{" futex::Mutex::", WAIT_TOLD_LOCK}, /* Rust */
	{" futex::RwLock::write", WAIT_TOLD_SHARED},
	{" futex::RwLock::", WAIT_TOLD_LOCK},
	{" RawMutex::lock_slow", WAIT_TOLD_LOCK}, /* parking_lot */
	{" RawMutex::unlock_slow", WAIT_TOLD_LOCK},
	{" RawRwLock::", WAIT_TOLD_LOCK},
	{"pthread_cond_", WAIT_TOLD_OTHER},
	{"pthread_join", WAIT_TOLD_ENDS},
	{"pthread_timedjoin", WAIT_TOLD_ENDS},
	{"pthread_clockjoin", WAIT_TOLD_ENDS},
	{"pthread_barrier_", WAIT_TOLD_ENDS},
	{"cnd_", WAIT_TOLD_OTHER},
	{"sem_", WAIT_TOLD_OTHER},
	{"new_sem_", WAIT_TOLD_OTHER},
	{" futex::Condvar::", WAIT_TOLD_OTHER},
	{" std::__atomic_", WAIT_TOLD_OTHER},
	{"syscall", WAIT_TOLD_OWN},
	{"runtime.futex", WAIT_TOLD_OTHER}, /* Go: everything its scheduler waits for */
};

static enum wait_told told_by(const char *function)
{
	const char *plain = function + strspn(function, "_");

	if (!strncmp(plain, "GI_", 3))
		plain += 3 + strspn(plain + 3, "_");
	for (size_t i = 0; i < sizeof(told_functions) / sizeof(told_functions[0]); i++) {
		const char *begin = told_functions[i].begin;

		if (*begin == ' ' ? strstr(function, begin + 1) != NULL
				  : !strncmp(plain, begin, strlen(begin)))
			return told_functions[i].told;
	}
	return WAIT_TOLD_NOTHING;
}

static bool says_all(enum wait_told told)
{
	return told != WAIT_TOLD_NOTHING && told != WAIT_TOLD_OWN;
}

enum wait_told wait_told_by(const char *const *functions, size_t count)
{
	enum wait_told told = WAIT_TOLD_NOTHING;

	for (size_t i = 0; i < count && !says_all(told); i++) {
		enum wait_told now = functions[i] ? told_by(functions[i]) : WAIT_TOLD_NOTHING;

		if (now != WAIT_TOLD_NOTHING)
			told = now;
	}
	return told;
}

static enum wait_told told_by_stack(struct why_walk *walk, uint32_t stack, uint64_t ts)
{
	const struct why_names *names = walk->names;
	const char *functions[FUNCTIONS_MAX];
	enum wait_told told;
	uint32_t known;

	if (!store_reader_stack(walk->model->reader, stack))
		return WAIT_TOLD_NOTHING;
	known = map_get(&walk->told, stack);
	if (known != MAP_NONE)
		return (enum wait_told)known;
	told = wait_told_by(functions,
			    names->functions(names->arg, stack, ts, functions, FUNCTIONS_MAX));
	/* If out of memory, the stack is examined again next time. */
	(void)map_set(&walk->told, stack, told);
	return told;
}

enum wait_told why_futex_told(struct why_walk *walk, uint32_t thread,
			      const struct why_interval *interval, const struct model_wait *wait)
{
	const unsigned interrupts = WAFFLE_SWITCH_WAKER_HARDIRQ | WAFFLE_SWITCH_WAKER_SOFTIRQ;
	const struct model_wake *wake;
	enum wait_told told = WAIT_TOLD_NOTHING, woken = WAIT_TOLD_NOTHING;

	if (!walk->names || !walk->names->functions)
		return told;
	if (wait)
		told = told_by_stack(walk, wait->user_stack, wait->from_ts);
	if (says_all(told) || interval->open)
		return told;
	/* The waker's functions belong to the same lock. */
	wake = model_wake_at(walk->model, thread, interval->to_ts);
	if (wake && !(wake->flags & interrupts))
		woken = told_by_stack(walk, wake->user_stack, wake->ts);
	return says_all(woken) ? woken : told;
}
