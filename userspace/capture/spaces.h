/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code in the address spaces of processes over time: the mappings that were first read, and the
 * changes that the kernel reported later (target/mmap_watch.h).
 */
#ifndef WAFFLE_CAPTURE_SPACES_H
#define WAFFLE_CAPTURE_SPACES_H

#include "target/mmap_watch.h"
#include "util/map.h"
#include "util/vec.h"

/* From `ts` on this is mapped there: a file or, with inode 0, something else. */
struct code_told {
	uint64_t ts;
	struct mapping mapping;
};

struct space {
	pid_t pid;
	uint64_t read_ts;  /* of `mappings`, 0: never read */
	uint64_t begin_ts; /* of its program; 0: before the capture */
	struct map seen;   /* hashes of values, alone and with the time from which they are valid */
	bool handles;      /* the process was searched for handles from before the capture */
	struct mappings mappings;
	VEC(struct code_told) told; /* by time */
};

struct spaces {
	VEC(struct space) list;
	struct map index; /* pid → index in `list` */
	uint64_t told_ts; /* the latest, of all processes */
};

struct place {
	const struct mapping *mapping; /* NULL: no code of a file, as far as is known */
	uint64_t since;                /* 0: before the capture */
};

/* NULL: out of memory. */
struct space *spaces_get(struct spaces *spaces, pid_t pid);
void spaces_free(struct spaces *spaces);
/* The kernel reported an event. After a lost one nothing is known of any process. */
void spaces_told(struct spaces *spaces, const struct mmap_event *event);
/* The process has exited. */
void spaces_forget(struct spaces *spaces, pid_t pid);
/* The process runs a new program. Mappings that were reported since then stay. */
void spaces_begin(struct spaces *spaces, pid_t pid, uint64_t ts);

/* Reads the mappings of now, unless they were read before and changes have been reported since. */
void space_read(struct space *space);
/* The code at an address at a time. */
struct place space_place(const struct space *space, uint64_t address, uint64_t ts);

#endif
