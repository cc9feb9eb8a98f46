/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records of a process's rings refer to: threads, by the tid that the process sees, and
 * sites, by the address of their probe. The process may refer to anything, and to look that up
 * costs much more than a record. So lookups are limited, and so is what is remembered.
 */
#ifndef WAFFLE_CAPTURE_TRANSPORT_RING_PROCESS_INTERNAL_H
#define WAFFLE_CAPTURE_TRANSPORT_RING_PROCESS_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/map.h"
#include "util/vec.h"

#define RING_PROCESS_MAPPED_MAX 64

/* The site at an address. A library may have been closed and another one mapped there. */
struct ring_site {
	uint32_t site, before;
	uint64_t since; /* records before this time are of `before` */
};

/* Code that was mapped recently. */
struct ring_mapped {
	uint64_t start, end, ts;
};

/* One program of a process, until it has ended or called exec. */
struct ring_process {
	pid_t pid;
	bool ended;
	bool forgotten;     /* nobody asks any more how many records it had */
	uint32_t rings;     /* that are mapped */
	uint64_t taken;     /* records */
	struct map threads; /* tid as the process sees it → tid */
	struct map seen;    /* the other way round */
	struct map missing; /* tids that it does not have, as was found in the second … */
	uint64_t missing_s; /* … that this is */
	struct map sites;   /* address of a probe → index in `site_list` */
	VEC(struct ring_site) site_list;
	uint64_t last_probe; /* that was looked up, and its index; MAP_NONE: it has none */
	uint32_t last_at;
	struct ring_mapped mapped[RING_PROCESS_MAPPED_MAX]; /* the latest ones */
	uint32_t mapped_next;
	uint32_t unknown;   /* lookups in this second … */
	uint64_t unknown_s; /* … which is this one */
};

void ring_process_free(struct ring_process *process);

/* Without memory, the following are looked up again later. */
void ring_process_thread_set(struct ring_process *process, uint32_t seen_tid, uint32_t tid);
/* The thread has ended, and another process may have its tid by now. */
void ring_process_thread_ended(struct ring_process *process, uint32_t tid);
void ring_process_mapped(struct ring_process *process, uint64_t start, uint64_t end, uint64_t ts);
/* If the address has another site, the new one is valid since code was mapped there. */
void ring_process_site_set(struct ring_process *process, uint64_t probe, uint32_t site);

/* Whether one more lookup is granted. None is for a process that has ended. */
bool ring_process_may_search(struct ring_process *process, uint64_t now_ns);
/* False: the site of the address was never set. */
bool ring_process_site(struct ring_process *process, uint64_t ts, uint64_t probe, uint32_t *site);
/* The tid of a thread. If it was not set, it is looked up in /proc, once in a second. 0: unknown.
 */
uint32_t ring_process_tid(struct ring_process *process, uint32_t seen_tid, uint64_t now_ns);

#endif
