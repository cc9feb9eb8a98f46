// SPDX-License-Identifier: Apache-2.0
/* Who holds a lock, by the memory of locks of this machine's C library that threads wait for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capture/enrich/lock_owner_internal.h"
#include "target/process/process_tids.h"

#define PRIVATE_WAIT (FUTEX_WAIT | FUTEX_PRIVATE_FLAG)
#define BITSET_WAIT (FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG)

static uint32_t owner_at(const void *futex, size_t before, uint32_t command, uint32_t value,
			 uint32_t *flags)
{
	const __u64 args[WAFFLE_SYSCALL_ARGS] = {(uintptr_t)futex, command, value};
	uint32_t words[LOCK_WORDS] = {0};

	memcpy(words + LOCK_WORDS_BEFORE - before, (const uint32_t *)futex - before,
	       (LOCK_WORDS - LOCK_WORDS_BEFORE) * sizeof(uint32_t));
	return lock_owner_of(words, args, flags);
}

static uint32_t own_tid(void)
{
	return (uint32_t)syscall(SYS_gettid);
}

static void test_a_contended_mutex_has_its_owner(void **state)
{
	/* As large as what is read. */
	union {
		pthread_mutex_t lock;
		uint32_t words[LOCK_WORDS];
	} of = {.lock = PTHREAD_MUTEX_INITIALIZER};
	uint32_t flags, *words = of.words;

	(void)state;
	pthread_mutex_lock(&of.lock);
	assert_int_equal(words[0], 1);
	words[0] = 2; /* as a waiter leaves it */
	assert_int_equal(owner_at(words, 0, PRIVATE_WAIT, 2, &flags), own_tid());
	assert_int_equal(flags, WAFFLE_OPEN_WAIT_MUTEX);
	/* The waiter has been woken meanwhile, or nobody has it. */
	words[0] = 0;
	assert_int_equal(owner_at(words, 0, PRIVATE_WAIT, 2, &flags), 0);
	words[0] = 1;
	pthread_mutex_unlock(&of.lock);
	words[0] = 2;
	assert_int_equal(owner_at(words, 0, PRIVATE_WAIT, 2, &flags), 0);
}

/* The number of its users, its kind, and the list, in which only robust ones are. */
static void test_words_that_no_mutex_has_name_no_owner(void **state)
{
	static const struct {
		unsigned word;
		uint32_t value;
	} rows[] = {{3, 0}, {3, (4u << 20) + 1}, {4, 0x400}, {6, 1}, {7, 1}, {8, 1}, {9, 1}};
	uint32_t flags;

	(void)state;
	for (size_t i = 0; i <= sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t words[LOCK_WORDS] = {2, 0, 4711, 1};
		bool other = i < sizeof(rows) / sizeof(rows[0]);

		if (other)
			words[rows[i].word] = rows[i].value;
		assert_int_equal(owner_at(words, 0, PRIVATE_WAIT, 2, &flags), other ? 0 : 4711);
	}
}

static void *shared_words(void)
{
	void *words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(words, MAP_FAILED);
	return words;
}

/* The ended owner of the mutex at `lock`, which has this one; 0: none is known. */
static uint32_t ended_owner(uint32_t *lock, pid_t owner, uint32_t command)
{
	const struct waffle_rec_halted halted = {.tgid = (uint32_t)getpid(),
						 .syscall = SYS_futex,
						 .args = {(uintptr_t)lock, command, 2}};
	struct lock_namespaces namespaces = {.until_ns = UINT64_MAX};
	struct lock_owner found;
	struct image image;

	memcpy(lock, (uint32_t[]){2, 0, (uint32_t)owner, 1}, 4 * sizeof(*lock));
	assert_int_equal(image_open(&image, getpid()), 0);
	assert_true(lock_owner_find(&found, &image, &halted, &namespaces));
	image_close(&image);
	return found.ended;
}

static pid_t ended_child(void)
{
	pid_t child = fork();
	siginfo_t ended;

	if (!child)
		_exit(0);
	waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
	return child;
}

/* A process of a namespace of its own, until `hold` is closed. */
static bool runs_elsewhere(int hold[2])
{
	char ready = 0;
	int answer[2];
	pid_t parent;

	if (geteuid() || pipe(hold) || pipe(answer))
		return false;
	parent = fork();
	if (!parent) {
		close(hold[1]);
		if (unshare(CLONE_NEWPID) || fork())
			_exit(0);
		(void)!write(answer[1], "", 1);
		(void)!read(hold[0], &ready, 1);
		_exit(0);
	}
	close(answer[1]);
	close(hold[0]);
	waitpid(parent, NULL, 0);
	return read(answer[0], &ready, 1) == 1;
}

/* A process waits for a mutex whose owner, its child, has ended: of which it has not waited yet, or
 * has. */
static void test_a_mutex_has_an_owner_that_has_ended(void **state)
{
	uint32_t *lock = (uint32_t *)shared_words() + LOCK_WORDS_BEFORE;
	pid_t child = ended_child();

	(void)state;
	assert_int_equal(ended_owner(lock, child, FUTEX_WAIT), child);
	assert_int_equal(ended_owner(lock, child, PRIVATE_WAIT), child);
	waitpid(child, NULL, 0);
	assert_int_equal(ended_owner(lock, child, PRIVATE_WAIT), child);
	if (!process_any_sees_others(UINT64_MAX))
		assert_int_equal(ended_owner(lock, child, FUTEX_WAIT), child);
	assert_true(process_any_sees_others(0)); /* no time is left to look at all */
}

/* The number may be that of a process in another namespace, which may have the memory, too. */
static void test_the_number_of_an_owner_may_be_that_of_another_namespace(void **state)
{
	uint32_t *lock = (uint32_t *)shared_words() + LOCK_WORDS_BEFORE;
	pid_t child = ended_child();
	int hold[2];

	(void)state;
	if (!runs_elsewhere(hold))
		skip();
	assert_int_equal(ended_owner(lock, child, FUTEX_WAIT), child);
	waitpid(child, NULL, 0);
	assert_int_equal(ended_owner(lock, child, FUTEX_WAIT), 0);
	close(hold[1]);
}

/* Any program that has the memory can write the number of another user's process there. */
static void test_a_process_of_another_user_is_no_owner_of_a_shared_mutex(void **state)
{
	uint32_t *lock = (uint32_t *)shared_words() + LOCK_WORDS_BEFORE;
	siginfo_t ended;
	pid_t child;

	(void)state;
	if (geteuid())
		skip();
	child = fork();
	if (!child)
		_exit(setuid(65534));
	waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT);
	assert_int_equal(ended.si_status, 0);
	assert_int_equal(ended_owner(lock, child, FUTEX_WAIT), 0);
	waitpid(child, NULL, 0);
}

static void test_a_read_write_lock_has_an_owner_while_a_writer_holds_it(void **state)
{
	union {
		pthread_rwlock_t lock;
		uint32_t words[2 * LOCK_WORDS];
	} of = {.lock = PTHREAD_RWLOCK_INITIALIZER};
	uint32_t flags, *words = of.words;

	(void)state;
	pthread_rwlock_wrlock(&of.lock);
	words[2] |= 2; /* a reader waits for the phase, */
	words[3] |= 2; /* and another writer for its turn */
	assert_int_equal(owner_at(words + 2, 2, BITSET_WAIT, words[2], &flags), own_tid());
	assert_int_equal(flags, WAFFLE_OPEN_WAIT_RWLOCK);
	assert_int_equal(owner_at(words + 3, 3, BITSET_WAIT, words[3], &flags), own_tid());
	words[2] &= ~2u;
	words[3] &= ~2u;
	pthread_rwlock_unlock(&of.lock);
	pthread_rwlock_rdlock(&of.lock);
	words[3] |= 2;
	assert_int_equal(owner_at(words + 3, 3, BITSET_WAIT, words[3], &flags), 0);
	words[3] &= ~2u;
	pthread_rwlock_unlock(&of.lock);
}

static void test_the_futex_word_of_a_robust_or_inheriting_lock_has_the_owner(void **state)
{
	uint32_t words[LOCK_WORDS] = {4711 | FUTEX_WAITERS}, flags;

	(void)state;
	assert_int_equal(owner_at(words, 0, FUTEX_LOCK_PI, 0, &flags), 4711);
	assert_int_equal(flags, WAFFLE_OPEN_WAIT_WORD);
	assert_int_equal(owner_at(words, 0, FUTEX_WAIT, 4711 | FUTEX_WAITERS, &flags), 4711);
	words[0] = FUTEX_WAITERS | FUTEX_OWNER_DIED;
	assert_int_equal(owner_at(words, 0, FUTEX_LOCK_PI, 0, &flags), 0);
}

static void test_a_join_waits_for_the_thread_in_the_word(void **state)
{
	uint32_t words[LOCK_WORDS] = {4711}, flags;

	(void)state;
	assert_int_equal(owner_at(words, 0, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 4711, &flags),
			 4711);
	assert_int_equal(flags, WAFFLE_OPEN_WAIT_JOIN);
	/* A private one is something else, such as a condition variable. */
	assert_int_equal(owner_at(words, 0, BITSET_WAIT, 4711, &flags), 0);
}

static void test_any_words_are_read_within_bounds(void **state)
{
	uint32_t words[LOCK_WORDS], flags;
	uint64_t seed = 1;

	(void)state;
	for (unsigned round = 0; round < 100000; round++) {
		__u64 args[WAFFLE_SYSCALL_ARGS];

		for (unsigned i = 0; i < LOCK_WORDS; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			words[i] = (uint32_t)(seed >> 33) & (seed >> 62 ? ~0u : 7u);
		}
		args[0] = 1;
		args[1] = words[1] & 15;
		args[2] = words[LOCK_WORDS_BEFORE];
		(void)lock_owner_of(words, args, &flags);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_contended_mutex_has_its_owner),
		cmocka_unit_test(test_words_that_no_mutex_has_name_no_owner),
		cmocka_unit_test(test_a_mutex_has_an_owner_that_has_ended),
		cmocka_unit_test(test_the_number_of_an_owner_may_be_that_of_another_namespace),
		cmocka_unit_test(test_a_process_of_another_user_is_no_owner_of_a_shared_mutex),
		cmocka_unit_test(test_a_read_write_lock_has_an_owner_while_a_writer_holds_it),
		cmocka_unit_test(test_the_futex_word_of_a_robust_or_inheriting_lock_has_the_owner),
		cmocka_unit_test(test_a_join_waits_for_the_thread_in_the_word),
		cmocka_unit_test(test_any_words_are_read_within_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
