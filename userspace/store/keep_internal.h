/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chunks of a writer without a file: the memory of a flight recorder.
 *
 *	tables │ segment │ segment │ … │ the current segment
 *
 * Tables are kept whole, except those of stacks and objects (keep_rows_internal.h). Records are in
 * segments, each with the time from which it has all records. Old segments are dropped as a whole,
 * so that the records that are left are complete from a known time on. Before the records of its
 * first segment, a file gets what else a reader needs to know at that time: the names of threads
 * and tracks, the speed of CPUs, the states of threads, and the begins of spans that are open.
 */
#ifndef WAFFLE_STORE_KEEP_INTERNAL_H
#define WAFFLE_STORE_KEEP_INTERNAL_H

#include "store/format_internal.h"
#include "store/keep_rows_internal.h"
#include "store/record.h"
#include "store/store.h"
#include "util/map.h"
#include "util/vec.h"

/* Records of each source, and those lost. */
struct keep_tally {
	uint64_t delivered[WAFFLE_SOURCE_COUNT], lost[WAFFLE_SOURCE_COUNT];
};

/* A chunk in the form of the file, with its header. */
struct kept_chunk {
	struct chunk_entry entry;
	struct keep_tally tally;
	uint64_t until_ts; /* all its records were made by then, whatever their times are */
	uint32_t bytes;
	unsigned char *packed;
};

struct kept_segment {
	uint64_t from_ts; /* it has all records since this time */
	uint64_t bytes;   /* of chunks and head */
	VEC(struct kept_chunk) chunks;
	VEC(unsigned char) head; /* records, one behind the other */
};

/* The last task record of a thread, and the last one with its own name. */
struct kept_task {
	struct waffle_rec_task task;
	struct waffle_rec_thread_name name; /* kind 0: none */
	uint64_t ended; /* number of the segment in which it exited, from 1; 0: it lives */
};

/* The last record of a track. */
struct kept_track {
	struct waffle_rec_track track;
	uint64_t ended; /* as of a task, of its process */
};

/* The begin of a span or call that is open, or whose end is in a later segment. */
struct kept_begin {
	uint64_t id;
	uint64_t began, ended; /* numbers of segments; ended 0: it is open */
	struct waffle_rec_hit *hit;
	/* Indexes of the neighbours among the open ones of its process; MAP_NONE: none. `younger`
	 * of a free entry: the next free one. */
	uint32_t older, younger;
};

/* A process that has ended. */
struct kept_end {
	uint64_t ts;
	uint64_t segment; /* number of the segment in which it ended */
	uint32_t pid;
};

struct keep {
	VEC(struct kept_chunk) tables; /* but for the entries that are no chunk yet */
	VEC(struct kept_segment) segments;
	uint64_t dropped; /* number of segments dropped so far */
	uint64_t bytes, table_bytes, begin_bytes;
	struct keep_tally tally; /* of the chunk that is being made */
	uint64_t now;            /* when the last record was made, as far as it is known */
	VEC(struct kept_task) tasks;
	struct map task_at; /* tid → index in `tasks` */
	size_t task_victim; /* the thread that made room last */
	VEC(struct kept_track) tracks;
	struct map track_at; /* tgid << 32 | track → index in `tracks` */
	struct map track_of; /* tgid → 1: it has some that have not ended */
	uint64_t on_track;   /* id of the last span or event that belongs to one */
	VEC(struct waffle_rec_frequency) frequencies; /* by CPU; kind 0: unknown */
	VEC(struct kept_begin) begins;                /* hit NULL: a free entry */
	uint32_t begin_count;                         /* entries in use */
	uint32_t free_begin; /* index of the first free entry, if fewer are in use than there are */
	size_t victim;       /* the next entry that makes room when there are too many */
	struct map begin_at; /* id → index in `begins` */
	struct map open_of;  /* tgid → index of its youngest open one */
	struct keep_rows rows[2];   /* by enum store_numbered */
	VEC(struct kept_end) ended; /* processes whose rows are kept */
	size_t compact_at;          /* see store_writer_compact() */
	uint64_t compacted_first;   /* oldest segment at that time */
	uint64_t compactions;       /* see store_writer_names_dropped() */
	VEC(bool) spans;            /* by the number of the site: its hits begin spans */
};

/* The number of the oldest segment. */
uint64_t keep_first(const struct keep *keep);
bool keep_add_stack(struct keep *keep, const struct store_stack *stack, size_t *more);
bool keep_add_object(struct keep *keep, const struct store_object *object, size_t *more);

struct keep *keep_new(void); /* NULL: out of memory */
void keep_free(struct keep *keep);

/* Takes a chunk; a table, or of the current segment. False: out of memory. */
bool keep_chunk(struct keep *keep, const struct chunk_entry *entry, const void *packed,
		size_t bytes);
/* The next site. False: out of memory. */
bool keep_site(struct keep *keep, const struct site_info *site);
/* Follows a record that is appended to the current segment. */
void keep_record(struct keep *keep, const struct waffle_rec *rec);
bool keep_segment(struct keep *keep, uint64_t from_ts);
/* Adds a record to what a file gets before the current segment. */
bool keep_head(struct keep *keep, const struct waffle_rec *rec);
/* Drops the first segment, or if it is the only one, its first chunk. False: there is nothing to
 * drop. */
bool keep_drop(struct keep *keep);

/* Calls `each` for the records that precede the first segment in a file. */
int keep_each_head(const struct keep *keep, int (*each)(const struct waffle_rec *rec, void *arg),
		   void *arg);

#endif
