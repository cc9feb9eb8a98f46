// SPDX-License-Identifier: Apache-2.0
#include "usdt/gpu/per_thread.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usdt/ring/signals.h"

/* A thread that needs memory looks at so many of those whose owners may have ended. */
#define RECLAIMS 16

struct per_thread *per_thread_first(const struct per_thread_list *list)
{
	return __atomic_load_n(&list->first, __ATOMIC_ACQUIRE);
}

static uint64_t owner_of(pid_t pid, uint32_t tid)
{
	return (uint64_t)pid << 32 | tid;
}

/* In the child of a fork(), memory of the parent's threads is never reused. One of them goes on in
 * the child and uses its own, but has another tid there, so the owner does not say which it is. */
static bool owner_has_ended(uint64_t owner, pid_t pid)
{
	return owner >> 32 == (uint64_t)pid && syscall(SYS_tgkill, pid, (uint32_t)owner, 0) &&
	       errno == ESRCH;
}

/* Takes the memory of a thread that has ended. NULL: there is none. */
static struct per_thread *memory_reuse(struct per_thread_list *list, pid_t pid, uint64_t self)
{
	uint32_t count = __atomic_load_n(&list->count, __ATOMIC_RELAXED), at = 0;
	uint32_t from = __atomic_fetch_add(&list->reclaim_from, RECLAIMS, __ATOMIC_RELAXED);

	from = count > RECLAIMS ? from % count : 0;
	for (struct per_thread *one = per_thread_first(list); one; one = one->next, at++) {
		uint64_t owner = __atomic_load_n(&one->owner, __ATOMIC_ACQUIRE);

		/* An owner with the tid of this thread is one that has ended. */
		if (owner != self && (at - from >= RECLAIMS || !owner_has_ended(owner, pid)))
			continue;
		if (__atomic_compare_exchange_n(&one->owner, &owner, self, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return one;
	}
	return NULL;
}

/* NULL: out of memory. */
static struct per_thread *memory_make(struct per_thread_list *list, uint64_t self, size_t bytes)
{
	struct per_thread *made =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (made == MAP_FAILED)
		return NULL;
	made->owner = self;
	made->next = per_thread_first(list);
	while (!__atomic_compare_exchange_n(&list->first, &made->next, made, false,
					    __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
		;
	__atomic_fetch_add(&list->count, 1, __ATOMIC_RELAXED);
	return made;
}

/* Signals are blocked: the handler of one may need the memory, too. */
struct per_thread *per_thread_open(struct per_thread_list *list, struct per_thread **own,
				   size_t bytes)
{
	int code = errno;
	uint64_t before = signals_block();
	pid_t pid = getpid();
	uint64_t self = owner_of(pid, (uint32_t)syscall(SYS_gettid));

	if (!*own) {
		*own = memory_reuse(list, pid, self);
		if (*own)
			memset(*own + 1, 0, bytes - sizeof(**own));
		else
			*own = memory_make(list, self, bytes);
	}
	signals_restore(before);
	errno = code;
	return *own;
}
