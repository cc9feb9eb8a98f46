/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What code was where in the memory of processes, and when: as it was first read, and what the
 * kernel told of it later (target/mmap_watch.h).
 */
#ifndef WAFFLE_CAPTURE_SPACES_H
#define WAFFLE_CAPTURE_SPACES_H

#include "target/mmap_watch.h"
#include "util/map.h"
#include "util/vec.h"

/* From a time on something is mapped there: a file, or by its inode 0 none. */
struct code_told {
	uint64_t ts;
	struct mapping mapping;
};

struct space {
	pid_t pid;
	uint64_t read_ts;  /* of `mappings`, 0: never read */
	uint64_t begin_ts; /* of its program, 0: from before the capture */
	struct map seen;   /* hashes of values, alone and with the time since which they hold */
	bool handles;      /* those from before the capture were looked for */
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
	uint64_t since;                /* 0: from the begin of the capture on */
};

/* NULL: out of memory. */
struct space *spaces_get(struct spaces *spaces, pid_t pid);
void spaces_free(struct spaces *spaces);
/* What the kernel told of a process; of an event that is lost, all are begun anew. */
void spaces_told(struct spaces *spaces, const struct mmap_event *event);
/* The process has exited. */
void spaces_forget(struct spaces *spaces, pid_t pid);
/* The process runs a new program. What was told of since then stays. */
void spaces_begin(struct spaces *spaces, pid_t pid, uint64_t ts);

/* Reads what is mapped now. What was read before stays where changes are told since. */
void space_read(struct space *space);
/* What was at an address at a time. */
struct place space_place(const struct space *space, uint64_t address, uint64_t ts);

#endif
