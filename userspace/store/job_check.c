// SPDX-License-Identifier: Apache-2.0
/* What is wrong with a job, and what is missing in it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/job_internal.h"

static const char *path_of(const struct store_reader *reader, uint32_t file)
{
	return reader->files[file].reader.file.path;
}

/* ---- the same capture twice ---- */

struct copy {
	const struct store_capture *capture;
	uint32_t file;
	uint64_t start_ts; /* in the clock of its host */
};
typedef VEC(struct copy) copy_list;

/* No two captures begin at the same nanosecond of the same boot. */
static int copy_compare(const struct copy *a, const struct copy *b)
{
	if (a->start_ts != b->start_ts)
		return a->start_ts < b->start_ts ? -1 : 1;
	if (a->capture->host != b->capture->host)
		return a->capture->host < b->capture->host ? -1 : 1;
	return strcmp(a->capture->command, b->capture->command);
}

static int copy_sort_compare(const void *left, const void *right)
{
	const struct copy *a = left, *b = right;
	int result = copy_compare(a, b);

	return result ? result : (a->file > b->file) - (a->file < b->file);
}

static bool is_merged(const struct store_reader *reader, uint32_t file)
{
	return reader->files[file].reader.dictionary.captures.len > 1;
}

static int check_copy(const struct store_reader *reader, const struct copy *a, const struct copy *b,
		      struct error *err)
{
	if (a->file == b->file || copy_compare(a, b))
		return 0;
	if (!is_merged(reader, a->file) && !is_merged(reader, b->file))
		return error_set(err, EEXIST, "%s and %s are the same capture; give it once",
				 path_of(reader, a->file), path_of(reader, b->file));
	return error_set(err, EEXIST,
			 "%s and %s both contain the capture %s; leave one of them out",
			 path_of(reader, a->file), path_of(reader, b->file), a->capture->file);
}

/* A merged file contains the captures that it was made of. */
static bool copies_collect(const struct store_reader *reader, copy_list *copies)
{
	const struct store_capture *capture = reader->captures.data;

	for (uint32_t i = 0; i < reader->count; i++) {
		const struct dictionary *own = &reader->files[i].reader.dictionary;

		for (size_t at = 0; at < own->captures.len; at++, capture++)
			if (!vec_push(copies,
				      (struct copy){capture, i, own->captures.data[at].start_ts}))
				return false;
	}
	return true;
}

static int check_copies(const struct store_reader *reader, struct error *err)
{
	copy_list copies = {0};
	int ret = copies_collect(reader, &copies) ? 0 : error_set(err, ENOMEM, "out of memory");

	if (copies.len)
		qsort(copies.data, copies.len, sizeof(*copies.data), copy_sort_compare);
	for (size_t i = 1; !ret && i < copies.len; i++)
		ret = check_copy(reader, &copies.data[i - 1], &copies.data[i], err);
	vec_free(&copies);
	return ret;
}

/* ---- files of different jobs ---- */

/* Length of the launcher's name in "slurm:4711". */
static size_t launcher_len(const char *job)
{
	return strcspn(job, ":");
}

/* The first job of a launcher that a file has processes of; NULL: none. */
static const char *job_of(const struct dictionary *dictionary, const char *launcher, size_t len)
{
	for (size_t i = 0; i < dictionary->ranks.len; i++) {
		const char *job = dictionary->ranks.data[i].job;

		if (*job && launcher_len(job) == len && !memcmp(job, launcher, len))
			return job;
	}
	return NULL;
}

static bool has_job(const struct dictionary *dictionary, const char *job)
{
	for (size_t i = 0; i < dictionary->ranks.len; i++)
		if (!strcmp(dictionary->ranks.data[i].job, job))
			return true;
	return false;
}

/* Compares with the first file that has a job of the launcher. */
static int check_jobs_of(const struct store_reader *reader, uint32_t first, const char *job,
			 struct error *err)
{
	for (uint32_t i = first + 1; i < reader->count; i++) {
		const struct dictionary *dictionary = &reader->files[i].reader.dictionary;
		const char *other = job_of(dictionary, job, launcher_len(job));

		if (other && !has_job(dictionary, job))
			return error_set(err, EINVAL,
					 "%s is of job %s, and %s of job %s; give files of one job",
					 path_of(reader, first), job, path_of(reader, i), other);
	}
	return 0;
}

static int check_jobs(const struct store_reader *reader, struct error *err)
{
	static const char *const launchers[] = {"torchrun", "openmpi", "slurm"};

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
		for (uint32_t file = 0; file < reader->count; file++) {
			const char *job = job_of(&reader->files[file].reader.dictionary,
						 launchers[i], strlen(launchers[i]));
			int ret = job ? check_jobs_of(reader, file, job, err) : 0;

			if (ret)
				return ret;
			if (job)
				break;
		}
	}
	return 0;
}

/* ---- the whole job ---- */

/* The times of a host that began to record before the first one booted can't be told. */
static int check_clocks(const struct store_reader *reader, struct error *err)
{
	for (uint32_t i = 0; i < reader->count; i++) {
		const struct job_file *file = &reader->files[i];
		int64_t offset = file->renumber.clock->offset_ns;
		uint64_t start = file->reader.meta.start_ts;

		if (start > RECORD_TS_MAX)
			return error_set(err, EBADMSG,
					 "%s: is damaged: its begin is no time; take a good copy "
					 "of it",
					 path_of(reader, i));
		if (offset < 0 ? 0 - (uint64_t)offset > start
			       : (uint64_t)offset > RECORD_TS_MAX - start)
			return error_set(
				err, ERANGE,
				"%s was recorded before the host of %s booted; give it first",
				path_of(reader, i), path_of(reader, 0));
	}
	return 0;
}

int job_check(struct store_reader *reader, struct error *err)
{
	if (reader->count == 1)
		return 0;
	return check_copies(reader, err)
		       ?: check_clocks(reader, err)
		       ?: check_jobs(reader, err)
		       ?: job_check_processes(reader, err);
}

/* ---- warnings ---- */

static void warn(const struct store_open_options *options, const char *format, const char *path)
{
	char line[512];

	snprintf(line, sizeof(line), format, path);
	options->warn(line, options->arg);
}

static int rank_compare(const void *left, const void *right)
{
	const struct store_rank *a = *(const struct store_rank *const *)left;
	const struct store_rank *b = *(const struct store_rank *const *)right;
	int result = strcmp(a->job, b->job);

	if (result)
		return result;
	if (a->world_size != b->world_size)
		return a->world_size < b->world_size ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* The ranks that a job of `count` sorted entries lacks, as "2-3, 7". Returns their number. */
static uint32_t ranks_missing(const struct store_rank *const *ranks, size_t count, char *text,
			      size_t size)
{
	uint32_t next = 0, missing = 0;
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i <= count; i++) {
		uint32_t rank = i < count ? ranks[i]->rank : ranks[0]->world_size;

		if (rank > next) {
			missing += rank - next;
			if (len < size)
				len += (size_t)snprintf(text + len, size - len,
							rank - next > 1 ? "%s%u-%u" : "%s%u",
							len ? ", " : "", next, rank - 1);
		}
		if (rank >= next)
			next = rank + 1;
	}
	return missing;
}

/* The capture that a process was traced in. */
static const char *file_of_process(const struct store_reader *reader, uint32_t pid)
{
	for (size_t i = 0; i < reader->captures.len; i++) {
		const struct store_capture *capture = &reader->captures.data[i];

		for (uint32_t at = 0; at < capture->process_count; at++)
			if (store_reader_process(reader, capture->first_process + at)->pid == pid)
				return capture->file;
	}
	return reader->captures.data[0].file;
}

/* `only`: there is one job, so it needs no name. */
static void warn_ranks(const struct store_reader *reader, const struct store_rank *const *ranks,
		       size_t count, bool only, const struct store_open_options *options)
{
	const char *job = ranks[0]->job, *of = " of job ";
	char list[128], line[512];
	uint32_t missing = ranks_missing(ranks, count, list, sizeof(list));

	if (!missing)
		return;
	if (!*job) {
		of = only ? "" : " of the job in ";
		job = only ? "" : file_of_process(reader, ranks[0]->pid);
	}
	snprintf(line, sizeof(line), "no file has rank%s %s%s of %u%s%s, so what %s did is unknown",
		 missing > 1 ? "s" : "", list, strlen(list) + 1 == sizeof(list) ? "…" : "",
		 ranks[0]->world_size, of, job, missing > 1 ? "they" : "it");
	options->warn(line, options->arg);
}

static bool is_same_job(const struct store_rank *a, const struct store_rank *b)
{
	return !strcmp(a->job, b->job) && a->world_size == b->world_size;
}

static int warn_missing(const struct store_reader *reader, const struct store_open_options *options,
			struct error *err)
{
	VEC(const struct store_rank *) ranks = {0};
	size_t from = 0;
	bool good = true;

	for (uint32_t i = 0; good && i < reader->totals[JOB_RANKS]; i++) {
		const struct store_rank *rank = store_reader_rank(reader, i);

		if (rank->rank < rank->world_size)
			good = vec_push(&ranks, rank);
	}
	if (good && ranks.len)
		qsort(ranks.data, ranks.len, sizeof(*ranks.data), rank_compare);
	for (size_t i = 1; good && i <= ranks.len; i++) {
		if (i < ranks.len && is_same_job(ranks.data[i], ranks.data[from]))
			continue;
		warn_ranks(reader, ranks.data + from, i - from, !from && i == ranks.len, options);
		from = i;
	}
	vec_free(&ranks);
	return good ? 0 : error_set(err, ENOMEM, "out of memory");
}

/* A merged file warns as the files did that it was made of. A capture alone lacks the other ranks
 * on purpose. */
int job_warn(const struct store_reader *reader, const struct store_open_options *options,
	     struct error *err)
{
	if (!options || !options->warn || reader->captures.len < 2)
		return 0;
	for (uint32_t i = 0; reader->count > 1 && i < reader->count; i++) {
		uint64_t unused;

		if (is_merged(reader, i) &&
		    file_reader_truncated(&reader->files[i].reader, &unused))
			warn(options, "%s was cut off: its last records are missing",
			     path_of(reader, i));
	}
	for (size_t i = 0; i < reader->captures.len; i++) {
		const struct store_capture *capture = &reader->captures.data[i];
		const struct store_host *host = &reader->hosts.data[capture->host];

		if (capture->truncated)
			warn(options,
			     "%s is still being recorded, or was cut off: its last records are "
			     "missing",
			     capture->file);
		if (!*host->name && !*host->boot_id)
			warn(options,
			     "%s does not say which host it is of, and counts as one of its own",
			     capture->file);
	}
	return warn_missing(reader, options, err);
}
