/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of all traced processes (usdt/ring/ring.h), as sources of records for the drain. Each
 * ring is in the order of time, and the drain merges them with its other sources:
 *
 *	ring_set_begin_round() → ring_set_ts(), ring_set_take(), … → ring_set_begin_round() → …
 *
 * The rings are not trusted. A process that overwrites its rings loses its own records, and their
 * times stay within those at which they can have been written: since the capture began, and until
 * now. A ring that contains nonsense is
 * given up. Threads are told apart by what the kernel said of them (ring_set_thread()).
 *
 * Records stay in their ring until it is nearly their turn. So little is buffered here.
 */
#ifndef WAFFLE_CAPTURE_TRANSPORT_RING_SET_H
#define WAFFLE_CAPTURE_TRANSPORT_RING_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/record.h"
#include "util/error.h"

struct ring_set;

#define RING_SITE_UNWANTED (WAFFLE_SITE_UNKNOWN - 1)

struct ring_set_options {
	uint32_t cpu_count;
	/* Finds the site of a probe that ring_set_site() did not name, at the time of the current
	 * record. WAFFLE_SITE_UNKNOWN: none. RING_SITE_UNWANTED: one whose hits are not wanted. */
	uint32_t (*site)(uint64_t ts, pid_t pid, uint64_t probe, void *arg);
	void *arg;
};

int ring_set_open(struct ring_set **set, const struct ring_set_options *options, struct error *err);
/* Whether this process has the privilege to map rings. */
bool ring_set_may_map(const struct ring_set *set);
/* The programs write no more into the rings, but the rings stay. */
void ring_set_close(struct ring_set *set);

/*
 * Reads the ring at an address of a process from now on. `taken_over`: another tracer has read it
 * until it ended. Returns 0 also if the ring is read already or was given up. -ENOSPC: there are
 * too many rings. -EACCES: there is no ring.
 */
int ring_set_add(struct ring_set *set, pid_t pid, uint64_t address, uint64_t bytes,
		 bool taken_over);
/* Whether a ring of a process at this address is read, or was given up. A process whose rings
 * change place under their own addresses harms itself. */
bool ring_set_has(const struct ring_set *set, pid_t pid, uint64_t address);
/* A thread of a process, which sees it by another tid if it is in another pid namespace. */
void ring_set_thread(struct ring_set *set, pid_t pid, uint32_t seen_tid, uint32_t tid);
/* A thread of a process has ended. Its tid is not valid any more some seconds later, since records
 * of a ring that was added late may follow. */
void ring_set_thread_ended(struct ring_set *set, pid_t pid, uint32_t tid);
/* The site of a probe in a process, as in records of the kernel. It is valid for the program that
 * runs now. */
void ring_set_site(struct ring_set *set, pid_t pid, uint64_t probe, uint32_t site);
/* A process has mapped code at these addresses at `ts`. Sites that are named there later are valid
 * from then on. Before, the sites are those that were named earlier. */
void ring_set_mapped(struct ring_set *set, pid_t pid, uint64_t start, uint64_t end, uint64_t ts);
/* The process runs another program: the rings of this one are read to their end. */
void ring_set_ended(struct ring_set *set, pid_t pid);
/* The same for a process that has ended. ring_set_taken() may not count its records any more. */
void ring_set_forget(struct ring_set *set, pid_t pid);
/* What is written after `end_ts` is no part of the capture. */
void ring_set_finish(struct ring_set *set, uint64_t end_ts);
/* The number of records that were taken from the rings of a process and of the programs that it ran
 * before. */
uint64_t ring_set_taken(const struct ring_set *set, pid_t pid);

/* What is in the rings now can be taken in this round. */
void ring_set_begin_round(struct ring_set *set);
/* The rings have the numbers 0, 1, …, which change only when a round begins. */
uint32_t ring_set_count(const struct ring_set *set);
/* The time of a ring's next record. UINT64_MAX: there is none in this round. */
uint64_t ring_set_ts(struct ring_set *set, uint32_t ring);
/* That record, valid until the next call. NULL: it is not wanted, or it was nonsense and counts as
 * lost. */
struct waffle_rec *ring_set_take(struct ring_set *set, uint32_t ring);

/* The part of a ring that was written between the last two begins of a round, in 1/256, of the ring
 * where it is largest. At least 1; 0: there are no rings. */
uint32_t ring_set_filled(const struct ring_set *set);

struct ring_set_counts {
	uint64_t taken; /* records that ring_set_take() returned */
	uint64_t lost;
};
struct ring_set_counts ring_set_counts(const struct ring_set *set);

#endif
