// SPDX-License-Identifier: Apache-2.0
/*
 * Looks for processes that keep their mmap_lock before a uprobe is set (bpf/mmap_lock.bpf.c). A
 * process of any user can do so for ever: it unmaps a changed page of a FUSE file whose server does
 * not answer. A process that wedges itself after the look still stops us and every fork().
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bpf/mmap_lock.h"
#include "kernel/kernel_internal.h"
#include "util/clock.h"
#include "waffle.skel.h"

/* A wait that lasts through all looks is one that does not end by itself. */
#define LOOKS 11
#define BETWEEN_NS 10000000
#define WAITS_MAX 64 /* of one look */

/* A result holds for all files that are armed together; that a lock is held, for longer, since the
 * session waits for such a look. */
#define FREE_NS 20000000ull
#define HELD_NS 1000000000ull

/* System calls that take the mmap_lock, and may keep it while they wait for a file. */
static const struct {
	int number;
	const char *name;
} calls[] = {
	{SYS_munmap, "munmap"},     {SYS_mmap, "mmap"},       {SYS_mremap, "mremap"},
	{SYS_mprotect, "mprotect"}, {SYS_madvise, "madvise"}, {SYS_brk, "brk"},
	{SYS_mlock, "mlock"},       {SYS_mlock2, "mlock2"},   {SYS_shmdt, "shmdt"},
	{SYS_shmat, "shmat"},
};

struct waits {
	struct waffle_mmap_lock_wait list[WAITS_MAX];
	size_t count;
};

static const char *call_name(int number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == number)
			return calls[i].name;
	return NULL;
}

/* Adds a thread that may hold a lock. Many may only wait for one. */
static void wait_take(struct waits *waits, const struct waffle_mmap_lock_wait *wait)
{
	if (waits->count < WAITS_MAX && (wait->owner || call_name(wait->syscall)))
		waits->list[waits->count++] = *wait;
}

/* Gets those that may hold a lock. There are none if the kernel does not tell. It gives whole
 * records. */
static void waits_read(struct waits *waits, struct kernel *kernel)
{
	struct waffle_mmap_lock_wait part[16];
	int fd = iterator_open(kernel->bpf->progs.mmap_lock_waits);
	ssize_t len = 0;

	waits->count = 0;
	while (fd >= 0 && ((len = read(fd, part, sizeof(part))) > 0 ||
			   (len < 0 && (errno == EINTR || errno == EAGAIN))))
		for (size_t i = 0; len > 0 && i < (size_t)len / sizeof(part[0]); i++)
			wait_take(waits, &part[i]);
	if (fd >= 0)
		close(fd);
}

static bool has_wait(const struct waits *waits, const struct waffle_mmap_lock_wait *wait)
{
	for (size_t i = 0; i < waits->count; i++)
		if (waits->list[i].tid == wait->tid && waits->list[i].switches == wait->switches)
			return true;
	return false;
}

/* Keeps only those of the first look that are waiting in all others, too. */
static void waits_last(struct waits *waits, struct kernel *kernel)
{
	const struct timespec between = {.tv_nsec = BETWEEN_NS};
	struct waits now;

	waits_read(waits, kernel);
	for (unsigned look = 1; waits->count && look < LOOKS; look++) {
		size_t kept = 0;

		clock_nanosleep(CLOCK_MONOTONIC, 0, &between, NULL);
		waits_read(&now, kernel);
		for (size_t i = 0; i < waits->count; i++)
			if (has_wait(&now, &waits->list[i]))
				waits->list[kept++] = waits->list[i];
		waits->count = kept;
	}
}

/* Of the threads of a process, the owner is the one that others wait for. */
static const struct waffle_mmap_lock_wait *holder_of(const struct waits *waits)
{
	for (size_t i = 0; i < waits->count; i++)
		if (waits->list[i].owner)
			return &waits->list[i];
	return waits->count ? &waits->list[0] : NULL;
}

static void locks_look(struct kernel *kernel)
{
	const struct waffle_mmap_lock_wait *holder;
	struct waits waits;

	kernel->locks = (struct mmap_lock_state){0};
	waits_last(&waits, kernel);
	holder = holder_of(&waits);
	if (holder) {
		kernel->locks.pid = holder->tgid;
		kernel->locks.tid = holder->tid;
		kernel->locks.call = call_name(holder->syscall);
		memcpy(kernel->locks.comm, holder->comm, sizeof(holder->comm));
	}
	kernel->locks.until_ts = clock_monotonic_ns() + (holder ? HELD_NS : FREE_NS);
}

bool kernel_locks_are_held(struct kernel *kernel)
{
	if (clock_monotonic_ns() >= kernel->locks.until_ts)
		locks_look(kernel);
	return kernel->locks.pid;
}

int mmap_locks_check(struct kernel *kernel, const char *path, struct error *err)
{
	const struct mmap_lock_state *locks = &kernel->locks;

	if (!kernel_locks_are_held(kernel))
		return 0;
	return error_set(err, EBUSY,
			 "arming %s: thread %u of process %u (%.16s) is blocked%s%s%s and keeps "
			 "the lock of its mappings: the probes would wait for it, and every fork() "
			 "of the machine with them; its sites stay dormant. If the thread waits "
			 "for a FUSE server, end that or write 1 to its "
			 "/sys/fs/fuse/connections/*/abort, and attach again",
			 path, locks->tid, locks->pid, locks->comm, locks->call ? " in " : "",
			 locks->call ? locks->call : "", locks->call ? "()" : "");
}
