// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/lock_holders_internal.h"

#include <stdlib.h>
#include <string.h>

#include "target/process/descriptors.h"
#include "target/process/process.h"
#include "util/clock.h"

/* A thread may try many thousand times a second. So what was found is kept for a while, in a slot
 * that the number of the process selects; for longer if the search took long. */
#define SLOTS 64 /* a power of two */
#define AGAIN_NS 100000000ull
#define AGAIN_TIMES 100
#define SEARCH_NS 5000000ull

struct lock_holder {
	uint64_t until_ts; /* 0: none */
	struct file_key file;
	uint32_t pid;
	int open;                     /* as descriptor_is_open() says */
	char comm[WAFFLE_COMM_BYTES]; /* as process_comm() has it */
};

struct lock_holders {
	struct lock_holder slots[SLOTS];
};

struct lock_holders *lock_holders_open(void)
{
	return calloc(1, sizeof(struct lock_holders));
}

void lock_holders_close(struct lock_holders *holders)
{
	free(holders);
}

/* Gets the file as statx() shows it: some file systems (btrfs, overlayfs) have another device
 * there. False: the process that was refused has closed it, so the device is the kernel's. */
static bool file_of(struct file_key *file, const struct waffle_rec_lock_refusal *refusal,
		    pid_t refused)
{
	struct file_key shown;
	char kind[32];
	bool open = descriptor_key(&shown, kind, sizeof(kind), refused, (int)refusal->object) &&
		    shown.ino == refusal->ino;

	*file = open ? shown : (struct file_key){.ino = refusal->ino, .dev = refusal->dev};
	return open;
}

static void holder_look(struct lock_holder *holder, const struct waffle_rec_lock_refusal *refusal,
			pid_t refused)
{
	uint64_t begin = clock_monotonic_ns(), end;
	struct file_key file;
	bool known = file_of(&file, refusal, refused);

	*holder = (struct lock_holder){.file = {.ino = refusal->ino, .dev = refusal->dev},
				       .pid = refusal->holder_pid};
	process_comm((pid_t)holder->pid, holder->comm);
	holder->open = descriptor_is_open((pid_t)holder->pid, &file, begin + SEARCH_NS);
	if (!holder->open && !known)
		holder->open = -ENOENT;
	end = clock_monotonic_ns();
	holder->until_ts = end + AGAIN_NS + (end - begin) * AGAIN_TIMES;
}

void lock_holders_name(struct lock_holders *holders, struct waffle_rec_lock_refusal *refusal,
		       pid_t refused)
{
	struct lock_holder *holder = &holders->slots[refusal->holder_pid % SLOTS];

	if ((int32_t)refusal->holder_pid <= 0) { /* a lock of a client of a file server */
		refusal->holder_pid = 0;
		return;
	}
	if (holder->pid != refusal->holder_pid || holder->file.ino != refusal->ino ||
	    holder->file.dev != refusal->dev || clock_monotonic_ns() >= holder->until_ts)
		holder_look(holder, refusal, refused);
	if (holder->open > 0)
		memcpy(refusal->holder_comm, holder->comm, sizeof(refusal->holder_comm));
	else if (!holder->open)
		refusal->flags |= WAFFLE_LOCK_FORMER;
	else
		refusal->holder_pid = 0;
}
