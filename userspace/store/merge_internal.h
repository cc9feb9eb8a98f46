/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Merges the records of several files by time. Threads decode the files ahead of the reader:
 *
 *	file 0 --decode--> batch, batch --.
 *	file 1 --decode--> batch, batch ---+--> the earliest record of all files
 *	file 2 --decode--> batch, batch --'
 *
 * Each file has two batches: the reader takes records from one while a thread fills the other. A
 * file takes memory only from its first record in the window to its last one.
 */
#ifndef WAFFLE_STORE_MERGE_INTERNAL_H
#define WAFFLE_STORE_MERGE_INTERNAL_H

#include "store/file_reader_internal.h"
#include "store/renumber_internal.h"

struct merge;

/* A file of the merge. Numbers of its records are added to `number_base`. */
struct merge_source {
	struct file_reader *reader;
	const struct renumber *renumber;
	uint64_t number_base;
};

/* The sources must outlive the merge. While it exists, only it may use their readers. */
int merge_open(struct merge **merge, const struct merge_source *sources, size_t count,
	       struct store_window window, struct error *err);
/* As store_reader_next(); *number is the record's, 0 for a copy of a task record. */
int merge_next(struct merge *merge, const struct waffle_rec **rec, uint64_t *number,
	       struct error *err);
void merge_close(struct merge *merge);

#endif
