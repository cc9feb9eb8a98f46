/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code in the address spaces of processes over time: the mappings that were read first, and the
 * later changes that the kernel reported (target/mmap_watch.h).
 */
#ifndef WAFFLE_CAPTURE_SPACES_H
#define WAFFLE_CAPTURE_SPACES_H

#include "target/mmap_watch.h"
#include "util/map.h"
#include "util/vec.h"

/* A mapping that exists from `ts` on: a file or, with inode 0, something else. */
struct code_told {
	uint64_t ts;
	struct mapping mapping;
};

struct space {
	pid_t pid;
	uint64_t read_ts;  /* time of `mappings`; 0: never read */
	uint64_t begin_ts; /* start of its program; 0: before the capture */
	struct map seen;   /* hashes of values, alone and with the time from which they are valid */
	bool handles;      /* the process was searched for handles from before the capture */
	struct mappings mappings;
	VEC(struct code_told) told; /* sorted by time */
};

struct spaces {
	VEC(struct space) list;
	struct map index; /* pid → index in `list` */
	uint64_t told_ts; /* the latest event of any process */
};

struct place {
	const struct mapping *mapping; /* NULL: no code of a known file */
	uint64_t since;                /* 0: before the capture */
};

/* NULL: out of memory. */
struct space *spaces_get(struct spaces *spaces, pid_t pid);
void spaces_free(struct spaces *spaces);
/* Adds an event. After MMAP_LOST all mappings are unknown. */
void spaces_told(struct spaces *spaces, const struct mmap_event *event);
/* The process has exited. */
void spaces_forget(struct spaces *spaces, pid_t pid);
/* The process runs a new program. Mappings reported since then stay valid. */
void spaces_begin(struct spaces *spaces, pid_t pid, uint64_t ts);

/* Reads the current mappings, unless they were read before and changes have been reported since. */
void space_read(struct space *space);
/* The code at an address at a time. */
struct place space_place(const struct space *space, uint64_t address, uint64_t ts);

#endif
