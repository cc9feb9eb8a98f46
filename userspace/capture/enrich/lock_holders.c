// SPDX-License-Identifier: Apache-2.0
#include "capture/enrich/lock_holders_internal.h"

#include <stdlib.h>
#include <string.h>

#include "target/process/process.h"
#include "util/clock.h"

/* A thread may try many thousand times a second. So a name is kept for a while, in a slot that the
 * number of the process selects. */
#define SLOTS 64 /* a power of two */
#define AGAIN_NS 100000000ull

struct lock_holder {
	uint64_t looked_ts; /* 0: none */
	uint32_t pid;
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

void lock_holders_name(struct lock_holders *holders, struct waffle_rec_lock_refusal *refusal)
{
	struct lock_holder *holder = &holders->slots[refusal->holder_pid % SLOTS];
	uint64_t now = clock_monotonic_ns();

	if ((int32_t)refusal->holder_pid <= 0) { /* a lock of a client of a file server */
		refusal->holder_pid = 0;
		return;
	}
	if (holder->pid != refusal->holder_pid || now - holder->looked_ts >= AGAIN_NS) {
		*holder = (struct lock_holder){.looked_ts = now, .pid = refusal->holder_pid};
		process_comm((pid_t)holder->pid, holder->comm);
	}
	if (!strcmp(holder->comm, "?"))
		refusal->holder_pid = 0;
	memcpy(refusal->holder_comm, holder->comm, sizeof(refusal->holder_comm));
}
