/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code in the address spaces of processes over time: the mappings that were read first, and the
 * later changes that the kernel reported (target/process/mmap_watch.h).
 */
#ifndef WAFFLE_CAPTURE_ENRICH_SPACES_INTERNAL_H
#define WAFFLE_CAPTURE_ENRICH_SPACES_INTERNAL_H

#include "capture/address_space/mmap_queue.h"
#include "kernel/kernel.h"
#include "target/process/mmap_watch.h"
#include "util/map.h"
#include "util/vec.h"

struct space {
	pid_t pid;
	uint64_t read_ts;  /* time of `mappings`; 0: never read */
	uint64_t tried_ts; /* time of the last attempt to read them */
	uint64_t begin_ts; /* start of its program; 0: before the capture */
	struct map seen;   /* hashes of values, alone and with the time from which they are valid */
	bool handles;      /* the process was searched for handles from before the capture */
	struct mappings mappings; /* as read */
	/* As reported; these take the place of what was read. An exec maps all addresses. */
	struct mappings told;
};

struct spaces {
	VEC(struct space) list;
	struct map index; /* pid → index in `list` */
};

struct space_place {
	const struct mapping *mapping; /* NULL: no code of a known file */
	uint64_t since;                /* 0: before the capture */
};

/* NULL: out of memory. */
struct space *spaces_get(struct spaces *spaces, pid_t pid);
void spaces_free(struct spaces *spaces);
/* Adds an event, in the order of time. After MMAP_LOST all mappings are unknown. */
void spaces_told(struct spaces *spaces, const struct mmap_event *event);
/* The process has exited. */
void spaces_forget(struct spaces *spaces, pid_t pid);
/* The process runs a new program. Mappings reported since then stay valid. */
void spaces_begin(struct spaces *spaces, pid_t pid, uint64_t ts);

/* Reads the mappings of the program that the process runs at `ts`, unless they were read before and
 * changes have been reported since. Without `kernel`, assumes that no process calls exec. */
void space_read(struct space *space, const struct kernel *kernel, uint64_t ts);
/* The code at an address at the time of the last event. `told`: the queue of the later ones. */
struct space_place space_place(const struct space *space, const struct mmap_queue *told,
			       uint64_t address);

#endif
