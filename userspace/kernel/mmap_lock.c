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
/* Then those that have come meanwhile do not count. */
#define LOOKS_MOST (2 * LOOKS)
/* So many are taken at once while records are drained, the others by later calls. */
#define LOOKS_BRIEF 3
#define BETWEEN_NS 10000000

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

static const char *call_name(int number)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].number == number)
			return calls[i].name;
	return NULL;
}

/* Adds a thread that may hold a lock. Many may only wait for one. */
static void wait_take(struct mmap_lock_waits *waits, const struct waffle_mmap_lock_wait *wait)
{
	if (waits->count < MMAP_LOCK_WAITS_MAX && (wait->owner || call_name(wait->syscall)))
		waits->list[waits->count++] = *wait;
}

/* Gets those that may hold a lock. There are none if the kernel does not tell. It gives whole
 * records. */
static void waits_read(struct mmap_lock_waits *waits, struct kernel *kernel)
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

static unsigned looks_of(const struct mmap_lock_waits *waits,
			 const struct waffle_mmap_lock_wait *wait)
{
	for (size_t i = 0; i < waits->count; i++)
		if (waits->list[i].tid == wait->tid && waits->list[i].switches == wait->switches)
			return waits->looks[i];
	return 0;
}

/* Gets the present ones, and how long each has lasted. */
static void waits_look(struct mmap_lock_waits *waits, struct kernel *kernel)
{
	const struct mmap_lock_waits before = *waits;

	waits_read(waits, kernel);
	for (size_t i = 0; i < waits->count; i++)
		waits->looks[i] = looks_of(&before, &waits->list[i]) + 1;
}

static unsigned longest(const struct mmap_lock_waits *waits)
{
	unsigned most = 0;

	for (size_t i = 0; i < waits->count; i++)
		if (waits->looks[i] > most)
			most = waits->looks[i];
	return most;
}

/* Of the threads of a process, the owner is the one that others wait for. */
static const struct waffle_mmap_lock_wait *holder_of(const struct mmap_lock_waits *waits)
{
	const struct waffle_mmap_lock_wait *holder = NULL;

	for (size_t i = 0; i < waits->count; i++)
		if (waits->looks[i] >= LOOKS && (!holder || waits->list[i].owner))
			holder = &waits->list[i];
	return holder;
}

static void holder_set(struct mmap_lock_state *locks)
{
	const struct waffle_mmap_lock_wait *holder = holder_of(&locks->waits);

	locks->looks = 0;
	locks->pid = locks->tid = 0;
	locks->until_ts = clock_monotonic_ns() + (holder ? HELD_NS : FREE_NS);
	if (!holder)
		return;
	locks->pid = holder->tgid;
	locks->tid = holder->tid;
	locks->call = call_name(holder->syscall);
	memcpy(locks->comm, holder->comm, sizeof(holder->comm));
}

/* Where a lock is much used, short waits follow each other without an end. So those that only the
 * last look has shown do not count, unless it was the first. */
static bool is_undecided(const struct mmap_lock_state *locks)
{
	unsigned lasted = longest(&locks->waits);

	return lasted && lasted < LOOKS && locks->looks < LOOKS_MOST &&
	       (lasted > 1 || locks->looks == 1);
}

/* Begins to look at the locks, or goes on with it. A wait that has come since the last look may be
 * old if that was long ago, so then it begins anew. */
static void locks_look(struct kernel *kernel)
{
	const struct timespec between = {.tv_nsec = BETWEEN_NS};
	struct mmap_lock_state *locks = &kernel->locks;
	bool goes_on = locks->looks &&
		       clock_monotonic_ns() < locks->until_ts + (uint64_t)LOOKS * BETWEEN_NS;
	unsigned left = goes_on ? 1 : kernel->drained ? LOOKS_BRIEF : LOOKS;

	if (!goes_on)
		locks->looks = locks->waits.count = 0;
	while (true) {
		waits_look(&locks->waits, kernel);
		locks->looks++;
		if (!is_undecided(locks) || !--left)
			break;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &between, NULL);
	}
	if (is_undecided(locks))
		locks->until_ts = clock_monotonic_ns() + BETWEEN_NS;
	else
		holder_set(locks);
}

bool kernel_locks_may_be_held(struct kernel *kernel)
{
	if (clock_monotonic_ns() >= kernel->locks.until_ts)
		locks_look(kernel);
	return kernel->locks.pid || kernel->locks.looks;
}

bool kernel_lock_may_be_kept(struct kernel *kernel, uint32_t pid)
{
	const struct mmap_lock_waits *waits = &kernel->locks.waits;

	if (!kernel_locks_may_be_held(kernel))
		return false;
	for (size_t i = 0; i < waits->count; i++)
		if (waits->list[i].tgid == pid)
			return true;
	return waits->count == MMAP_LOCK_WAITS_MAX; /* others found no room */
}

uint32_t kernel_locks_holder(const struct kernel *kernel)
{
	return kernel->locks.tid;
}

uint64_t kernel_locks_look_ts(const struct kernel *kernel)
{
	return kernel->locks.until_ts;
}

void kernel_looks_briefly(struct kernel *kernel)
{
	kernel->drained = true;
}

int kernel_locks_check(struct kernel *kernel, const char *path, struct error *err)
{
	const struct mmap_lock_state *locks = &kernel->locks;

	if (!kernel_locks_may_be_held(kernel))
		return 0;
	if (locks->looks)
		return error_set(err, EAGAIN,
				 "arming %s: a process may keep the lock of its mappings", path);
	return error_set(err, EBUSY,
			 "arming %s: thread %u of process %u (%.16s) is blocked%s%s%s and keeps "
			 "the lock of its mappings: the probes would wait for it, and every fork() "
			 "of the machine with them; its sites stay dormant until that ends. If the "
			 "thread waits for a FUSE server, end that or write 1 to its "
			 "/sys/fs/fuse/connections/*/abort",
			 path, locks->tid, locks->pid, locks->comm, locks->call ? " in " : "",
			 locks->call ? locks->call : "", locks->call ? "()" : "");
}
