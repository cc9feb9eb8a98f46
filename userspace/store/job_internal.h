/* SPDX-License-Identifier: Apache-2.0 */
/* What a store_reader consists of: the files of a job, and the tables that they share. */
#ifndef WAFFLE_STORE_JOB_INTERNAL_H
#define WAFFLE_STORE_JOB_INTERNAL_H

#include "store/file_reader_internal.h"
#include "store/merge_internal.h"
#include "store/renumber_internal.h"
#include "util/keymap.h"
#include "util/strtab.h"

/* Tables whose entries of all files follow each other. */
enum job_table {
	JOB_PROCESSES,
	JOB_STACKS,
	JOB_OBJECTS,
	JOB_MAPPINGS,
	JOB_SYMBOLS,
	JOB_NAMES,
	JOB_RANKS,
	JOB_ATTRIBUTES,
	JOB_TRANSPORTS,
	JOB_TABLE_COUNT
};

struct job_file {
	struct file_reader reader;
	struct renumber renumber;
	uint32_t *sites; /* owned; of `renumber` */
	kept_times kept;
	uint32_t first[JOB_TABLE_COUNT]; /* index in the job of its first entry */
};

struct store_reader {
	struct chunk_scratch scratch; /* of all files, except while a merge has them */
	struct job_file *files;
	uint32_t count;
	struct store_meta meta;
	VEC(struct store_host) hosts;
	VEC(struct store_capture) captures;
	VEC(struct site_info) sites;
	/* By what a site consists of, with numbers for its strings. */
	struct keymap site_numbers;
	struct strtab *site_strings;
	/* Pointers to the sites, for the files. */
	VEC(const struct site_info *) site_lists;
	uint32_t totals[JOB_TABLE_COUNT];
	/* The walk over a window. */
	struct store_window window;
	struct merge_source *sources; /* NULL: there is a single file */
	struct merge *merge;          /* NULL: not begun */
	struct leaves *leaves;        /* left out by all files; NULL: none */
	uint64_t number;
	int code; /* the error that ended the walk */
};

/* Opens the files and makes one of them. The caller frees the reader also after an error. */
int job_open(struct store_reader *reader, const char *const *paths, uint32_t count,
	     struct error *err);
/* Applies the clock of a host, or of JOB_ALL_HOSTS, to its tables and the facts about the job. */
#define JOB_ALL_HOSTS UINT32_MAX
int job_clock_apply(struct store_reader *reader, uint32_t host, struct error *err);

/* What must not be in a job: the same file or process twice, files of different jobs. */
int job_check(struct store_reader *reader, struct error *err);
/* The part of job_check() that is about processes (job_processes.c). */
int job_check_processes(struct store_reader *reader, struct error *err);
/* Calls `warn` for what is missing in a job. */
int job_warn(const struct store_reader *reader, const struct store_open_options *options,
	     struct error *err);

#endif
