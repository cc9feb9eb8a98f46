// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/lock_owner_internal.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>

#include "target/process/process.h"
#include "target/process/process_tids.h"

#define COMMAND_MASK 127u
#define LOCK_PI2 13u /* FUTEX_LOCK_PI2, which older headers lack */
#define MUTEX_CONTENDED 2u
#define MUTEX_KIND_MAX 0x3ffu /* type, and flags such as robust, protocol, shared, elision */
/* The kernel gives no thread a higher number (PID_MAX_LIMIT). What looks like an owner may be any
 * word of the program's memory. */
#define TID_LIMIT (4u << 20)
#define RWLOCK_USED 2u /* PTHREAD_RWLOCK_FUTEX_USED: somebody waits */
#define RWLOCK_FLAGS_MAX 2u

/* struct __pthread_mutex_s, in words from the futex on: lock, count, owner, nusers, kind, one of
 * spinning and elision, and a list of two pointers, which only robust ones are in. */
static uint32_t mutex_owner(const uint32_t *mutex)
{
	bool listed = mutex[6] | mutex[7] | mutex[8] | mutex[9];
	bool plausible = mutex[0] == MUTEX_CONTENDED && mutex[3] && mutex[3] <= TID_LIMIT &&
			 mutex[4] <= MUTEX_KIND_MAX && !listed;

	return plausible ? mutex[2] : 0;
}

/*
 * struct __pthread_rwlock_arch_t, in words: readers, writers, wrphase_futex, writers_futex, two of
 * padding, cur_writer, shared, four more, flags. Threads wait for both futexes. cur_writer is 0
 * while readers hold the lock.
 */
static uint32_t rwlock_owner(const uint32_t words[LOCK_WORDS], unsigned futex_at)
{
	const uint32_t *lock = words + LOCK_WORDS_BEFORE - futex_at;
	bool plausible = lock[futex_at] & RWLOCK_USED && lock[7] <= 1 &&
			 lock[12] <= RWLOCK_FLAGS_MAX && !lock[4] && !lock[5];

	return plausible ? lock[6] : 0;
}

uint32_t lock_owner_of(const uint32_t words[LOCK_WORDS], const __u64 args[WAFFLE_SYSCALL_ARGS],
		       uint32_t *flags)
{
	const uint32_t *futex = words + LOCK_WORDS_BEFORE;
	uint32_t command = (uint32_t)args[1] & COMMAND_MASK, expected = (uint32_t)args[2], owner;
	bool waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;

	*flags = WAFFLE_OPEN_WAIT_WORD;
	if (command == FUTEX_LOCK_PI || command == LOCK_PI2 ||
	    (waits && expected & FUTEX_WAITERS && expected & FUTEX_TID_MASK))
		return futex[0] & FUTEX_TID_MASK;
	if (!waits || futex[0] != expected)
		return 0;
	/* The kernel clears the word and wakes the waiter, so it is not private. The word of a
	 * mutex in shared memory has no tid. */
	*flags = WAFFLE_OPEN_WAIT_JOIN;
	if (!(args[1] & FUTEX_PRIVATE_FLAG) && expected > MUTEX_CONTENDED)
		return expected;
	*flags = WAFFLE_OPEN_WAIT_MUTEX;
	if (expected == MUTEX_CONTENDED)
		return mutex_owner(futex);
	*flags = WAFFLE_OPEN_WAIT_RWLOCK;
	owner = rwlock_owner(words, 2);
	return owner ?: rwlock_owner(words, 3);
}

struct owner_search {
	uint32_t seen, tid;
};

static void owner_match(uint32_t seen, uint32_t tid, void *arg)
{
	struct owner_search *search = arg;

	if (seen == search->seen)
		search->tid = tid;
}

/* The thread of a process that sees it as `seen`; 0: it has no such thread. */
static uint32_t owner_thread(pid_t pid, uint32_t seen)
{
	struct owner_search search = {.seen = seen};

	if (process_has_tid(pid, seen))
		return seen;
	process_tids_each(pid, owner_match, &search);
	return search.tid;
}

/* Which processes have mapped some memory is not asked: reading the mappings of a process that
 * keeps its mmap_lock may take for ever. */
static bool any_sees_others(struct lock_namespaces *namespaces)
{
	if (!namespaces->looked)
		namespaces->others = process_any_sees_others(namespaces->until_ns);
	namespaces->looked = true;
	return namespaces->others;
}

/* Whether an owner in memory that processes share has ended. It may have been in another namespace,
 * where it had another number, and any program that has the memory can write any number there. So
 * it has to be a process of the same user, which its parent has not waited for. Or no thread has
 * the number, and all processes see the same numbers as we do. */
static bool shared_owner_has_ended(pid_t pid, pid_t owner, struct lock_namespaces *namespaces)
{
	long user = process_user(pid);
	int status;

	if (process_is_zombie(owner, &status))
		return user >= 0 && process_user(owner) == user;
	return process_has_ended(owner) && !any_sees_others(namespaces);
}

/* Whether the owner of a mutex has ended. If the process is in a namespace of its own, we can't
 * tell by the number that it sees. */
static bool owner_has_ended(const struct waffle_rec_halted *halted, uint32_t seen, uint32_t flags,
			    struct lock_namespaces *namespaces)
{
	if (flags != WAFFLE_OPEN_WAIT_MUTEX || seen >= TID_LIMIT ||
	    !process_has_tid((pid_t)halted->tgid, halted->tgid))
		return false;
	return halted->args[1] & FUTEX_PRIVATE_FLAG
		       ? process_has_ended((pid_t)seen)
		       : shared_owner_has_ended((pid_t)halted->tgid, (pid_t)seen, namespaces);
}

/* The owner that the memory of a lock says now, as the process sees it; 0: none. A lock may lie at
 * the begin or the end of a mapping. */
static uint32_t owner_read(const struct image *image, const struct waffle_rec_halted *halted,
			   uint32_t *flags)
{
	uint32_t words[LOCK_WORDS] = {0};
	uint64_t address = halted->args[0];

	if (address % sizeof(uint32_t) ||
	    !image_read_some(image, address, words + LOCK_WORDS_BEFORE,
			     sizeof(words) - LOCK_WORDS_BEFORE * sizeof(uint32_t)))
		return 0;
	if (!image_read(image, address - LOCK_WORDS_BEFORE * sizeof(uint32_t), words,
			LOCK_WORDS_BEFORE * sizeof(uint32_t)))
		memset(words, 0, LOCK_WORDS_BEFORE * sizeof(uint32_t));
	return lock_owner_of(words, halted->args, flags);
}

bool lock_owner_find(struct lock_owner *lock, const struct image *image,
		     const struct waffle_rec_halted *halted, struct lock_namespaces *namespaces)
{
	uint32_t seen, flags = 0;

	if (halted->syscall != SYS_futex || !halted->args[0])
		return false;
	*lock = (struct lock_owner){.address = halted->args[0]};
	seen = owner_read(image, halted, &flags);
	lock->tid = seen ? owner_thread((pid_t)halted->tgid, seen) : 0;
	/* It may have released the lock before it ended, so it is looked at again. */
	if (!lock->tid && seen && owner_has_ended(halted, seen, flags, namespaces) &&
	    owner_read(image, halted, &flags) == seen)
		lock->ended = seen;
	if (lock->tid || lock->ended)
		lock->flags = flags;
	return true;
}
