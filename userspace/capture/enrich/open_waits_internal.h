/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits that go on when the capture ends. A thread of a hung program never runs again, so no
 * switch shows who ended its wait. Instead we look, at the end, into the memory of the process:
 * which thread holds the lock, and on which stack the thread waits. We only read: no thread is
 * stopped or woken.
 */
#ifndef WAFFLE_CAPTURE_ENRICH_OPEN_WAITS_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_OPEN_WAITS_INTERNAL_H

#include "capture/address_space/processes.h"
#include "capture/enrich/stacks_internal.h"
#include "kernel/kernel.h"
#include "target/process/pipe_ends.h"

struct open_waits;

/* `stacks` NULL: frames of Python are not recorded. NULL: out of memory. */
struct open_waits *open_waits_open(struct kernel *kernel, struct processes *processes,
				   struct stacks *stacks);
void open_waits_close(struct open_waits *waits);

/* Keeps a thread that is blocked. Of very many threads only the first ones are kept. */
void open_waits_add(struct open_waits *waits, const struct waffle_rec_halted *halted);

/* Reads the owners of locks, who has stopped threads, and missing stacks. Call it soon after the
 * threads were added: what a thread that has woken since then waited for is not kept. An error says
 * why it is unknown who holds the other ends of pipes and sockets, and locks of files: -ETIME, the
 * time was too short; -E2BIG, some are unknown, as there are too many; or that of a process that
 * could not be read. */
int open_waits_examine(struct open_waits *waits);

/* A wait at a pipe or Unix socket, for the lock of a file, or at several descriptors with pipes
 * among them. */
struct open_wait_pipes {
	pid_t pid, tid;
	struct file_key key; /* of the descriptor, if there is one */
	const int *fds;      /* at most WAFFLE_POLLED_MAX */
	uint32_t count;      /* of all descriptors */
	/* Of these, eventfds that no other thread can write to. */
	uint32_t own_count;
	/* The other ends, or the lock, of which the holders are known. */
	const struct pipe_end *ends;
	uint32_t end_count;
};

/* Calls `found` for each wait at pipes of which the holders of the other ends are known. Returns
 * what `found` returned if that was not 0. */
int open_waits_pipes(const struct open_waits *waits,
		     int (*found)(const struct open_wait_pipes *pipes, void *arg), void *arg);

/* The same for each wait in open(2) of a named pipe, with the pipe's path, and what it lacks:
 * "nobody has opened it to read". */
int open_waits_fifos(const struct open_waits *waits,
		     int (*found)(pid_t pid, const struct file_key *key, const char *path,
				  const char *lacks, void *arg),
		     void *arg);

/* Calls `pass` for the records of each wait: WAIT if it waits for a file; TRACE for stacks that
 * were read here, or FRAMES for those with frames of Python, of the time when the wait began, if it
 * is known; then OPEN_WAIT, with the kernel's numbers of its stacks. Returns what `pass` returned
 * if that was not 0. */
int open_waits_each(struct open_waits *waits, int (*pass)(struct waffle_rec *rec, void *arg),
		    void *arg);

#endif
