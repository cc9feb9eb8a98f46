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

static bool has_wait(const struct mmap_lock_waits *waits, const struct waffle_mmap_lock_wait *wait)
{
	for (size_t i = 0; i < waits->count; i++)
		if (waits->list[i].tid == wait->tid && waits->list[i].switches == wait->switches)
			return true;
	return false;
}

/* Keeps only those that have not ended since they were read. */
static void waits_keep(struct mmap_lock_waits *waits, struct kernel *kernel)
{
	struct mmap_lock_waits now;
	size_t kept = 0;

	waits_read(&now, kernel);
	for (size_t i = 0; i < waits->count; i++)
		if (has_wait(&now, &waits->list[i]))
			waits->list[kept++] = waits->list[i];
	waits->count = kept;
}

/* Of the threads of a process, the owner is the one that others wait for. */
static const struct waffle_mmap_lock_wait *holder_of(const struct mmap_lock_waits *waits)
{
	for (size_t i = 0; i < waits->count; i++)
		if (waits->list[i].owner)
			return &waits->list[i];
	return waits->count ? &waits->list[0] : NULL;
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

/* Begins to look at the locks, or goes on with it. */
static void locks_look(struct kernel *kernel)
{
	const struct timespec between = {.tv_nsec = BETWEEN_NS};
	struct mmap_lock_state *locks = &kernel->locks;
	unsigned most = locks->looks ? locks->looks + 1 : kernel->drained ? LOOKS_BRIEF : LOOKS;

	if (locks->looks)
		waits_keep(&locks->waits, kernel);
	else
		waits_read(&locks->waits, kernel);
	while (++locks->looks < most && locks->waits.count) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &between, NULL);
		waits_keep(&locks->waits, kernel);
	}
	if (!locks->waits.count || locks->looks >= LOOKS)
		holder_set(locks);
	else
		locks->until_ts = clock_monotonic_ns() + BETWEEN_NS;
}

bool kernel_locks_are_held(struct kernel *kernel)
{
	if (clock_monotonic_ns() >= kernel->locks.until_ts)
		locks_look(kernel);
	return kernel->locks.pid || kernel->locks.looks;
}

uint64_t kernel_locks_look_ts(const struct kernel *kernel)
{
	return kernel->locks.until_ts;
}

void kernel_drain_begins(struct kernel *kernel)
{
	kernel->drained = true;
}

int mmap_locks_check(struct kernel *kernel, const char *path, struct error *err)
{
	const struct mmap_lock_state *locks = &kernel->locks;

	if (!kernel_locks_are_held(kernel))
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
