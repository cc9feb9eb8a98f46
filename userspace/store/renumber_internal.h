/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the numbers of one file those of a job. What means something only in a file or on its host
 * is changed here and nowhere else: pids, CPUs, sites, stacks, objects, inodes, addresses of the
 * kernel, times. Which members of a record these are is in the rows of store/record_schema.h.
 */
#ifndef WAFFLE_STORE_RENUMBER_INTERNAL_H
#define WAFFLE_STORE_RENUMBER_INTERNAL_H

#include "store/dictionary_internal.h"
#include "store/record.h"

struct renumber {
	bool keeps_all; /* changes nothing: it is the only file */
	uint32_t host;
	uint32_t cpu_base, cpu_count;
	uint32_t stack_base, object_base; /* added to numbers other than 0 */
	const uint32_t *sites;            /* number in the job of each of the file's sites */
	uint32_t site_count;
	const struct store_clock *clock;
};

/* A time of the file in the clock of the job. */
uint64_t renumber_time(const struct renumber *renumber, uint64_t ts);
/* Changes a record in place. A number that its file can't have becomes none. */
void renumber_record(const struct renumber *renumber, struct waffle_rec *rec);

/* Changes the tables of a file, but not their times. */
void renumber_tables(const struct renumber *renumber, struct dictionary *dictionary);

/* The times of a file's tables as they are in the file. Before the first change of the clock they
 * are copied to `kept`, which the caller frees. False: out of memory. */
typedef VEC(uint64_t) kept_times;
bool renumber_table_times(const struct renumber *renumber, struct dictionary *dictionary,
			  kept_times *kept);

/* The window of a file's own times that corresponds to one of the job's. */
struct store_window renumber_window(const struct renumber *renumber, struct store_window window);

#endif
