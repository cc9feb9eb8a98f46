/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds the lock that a thread waits for, as the memory of its process says. Two kinds of locks
 * have their owner in the futex word, since the kernel or a convention says so: those with priority
 * inheritance, and robust ones (futex(2)); the plain ones of musl look like the latter. glibc's
 * plain mutexes and read-write locks have it next to the word; the layouts are those of
 * sysdeps/nptl/bits/struct_mutex.h and struct_rwlock.h for 64 bits, the same since glibc 2.25.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_LOCK_OWNER_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_LOCK_OWNER_INTERNAL_H

#include "bpf/record.h"
#include "target/process/image.h"

struct lock_owner {
	uint64_t address; /* of the futex; 0: the thread waits for none */
	uint32_t tid;     /* in the initial pid namespace; 0: unknown */
	uint32_t ended;   /* tid is 0: the owner, which has ended; 0: unknown */
	uint32_t flags;   /* WAFFLE_OPEN_WAIT_* */
};

/* Whether some process is in a PID namespace of its own, and sees other numbers of threads than we
 * do. They are looked at once, when that is first needed. */
struct lock_namespaces {
	uint64_t until_ns; /* limit of the time to look at them */
	bool looked, others;
};

/* Returns false if the thread waits for no futex. The owner is unknown unless it is a thread of the
 * same process, or has ended: then it may have been another process with the same memory.
 * *namespaces: of the call before; at first, with until_ns alone. */
bool lock_owner_find(struct lock_owner *lock, const struct image *image,
		     const struct waffle_rec_halted *halted, struct lock_namespaces *namespaces);

/* What the words of a lock say, for a futex call with these arguments: the owner as the process
 * sees it, or 0. `words` are those of LOCK_WORDS_BEFORE words before the futex and of the rest from
 * it on. */
#define LOCK_WORDS_BEFORE 3
#define LOCK_WORDS 16
uint32_t lock_owner_of(const uint32_t words[LOCK_WORDS], const __u64 args[WAFFLE_SYSCALL_ARGS],
		       uint32_t *flags);

#endif
