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

/* ---- the same file twice ---- */

/* No two captures begin at the same nanosecond of the same boot. */
static int file_compare(const struct job_file *a, const struct job_file *b)
{
	const struct store_meta *of_a = &a->reader.meta, *of_b = &b->reader.meta;

	if (of_a->start_ts != of_b->start_ts)
		return of_a->start_ts < of_b->start_ts ? -1 : 1;
	if (of_a->real_ns != of_b->real_ns)
		return of_a->real_ns < of_b->real_ns ? -1 : 1;
	if (a->renumber.host != b->renumber.host)
		return a->renumber.host < b->renumber.host ? -1 : 1;
	return strcmp(of_a->command, of_b->command);
}

static int file_pointer_compare(const void *left, const void *right)
{
	const struct job_file *a = *(const struct job_file *const *)left;
	const struct job_file *b = *(const struct job_file *const *)right;
	int result = file_compare(a, b);

	return result ? result : (a > b) - (a < b);
}

static int check_copies(const struct store_reader *reader, struct error *err)
{
	const struct job_file **files = calloc(reader->count, sizeof(*files));
	int ret = 0;

	if (!files)
		return error_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < reader->count; i++)
		files[i] = &reader->files[i];
	qsort(files, reader->count, sizeof(*files), file_pointer_compare);
	for (uint32_t i = 1; !ret && i < reader->count; i++)
		if (!file_compare(files[i - 1], files[i]))
			ret = error_set(err, EEXIST, "%s and %s are the same capture; give it once",
					files[i - 1]->reader.file.path, files[i]->reader.file.path);
	free(files);
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

/* ---- a process in two files ---- */

struct traced {
	uint32_t pid, file;
	uint64_t from_ts, to_ts; /* from its first entry to the end of its capture */
	const char *cmdline;
};
typedef VEC(struct traced) traced_list;

static int traced_compare(const void *left, const void *right)
{
	const struct traced *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return a->from_ts < b->from_ts ? -1 : a->from_ts > b->from_ts;
}

static uint64_t capture_end(const struct store_capture *capture)
{
	return capture->end_ts > capture->last_ts ? capture->end_ts : capture->last_ts;
}

static bool traced_collect(const struct store_reader *reader, traced_list *list)
{
	for (uint32_t i = 0; i < reader->count; i++) {
		const struct dictionary *dictionary = &reader->files[i].reader.dictionary;
		uint64_t end = capture_end(&reader->captures.data[i]);

		for (size_t at = 0; at < dictionary->processes.len; at++) {
			const struct store_process *process = &dictionary->processes.data[at];

			if (!vec_push(list, (struct traced){process->pid, i, process->ts, end,
							    process->cmdline}))
				return false;
		}
	}
	if (list->len)
		qsort(list->data, list->len, sizeof(*list->data), traced_compare);
	return true;
}

/* When a thread was started, by the first record of its name as a traced thread. 0: unknown. */
static int started_at(struct job_file *file, uint32_t tid, uint64_t *start_ts, struct error *err)
{
	const struct waffle_rec *rec;
	int ret = file_reader_seek(&file->reader, STORE_ALL, err);

	*start_ts = 0;
	while (!ret && !*start_ts && (ret = file_reader_next(&file->reader, &rec, err)) > 0) {
		const struct waffle_rec_task *task = (const struct waffle_rec_task *)rec;

		ret = 0;
		if (rec->kind == WAFFLE_REC_TASK && rec->tid == tid &&
		    task->flags & WAFFLE_TASK_TRACED_FLAG)
			*start_ts = task->start_ts;
	}
	file_reader_rest(&file->reader);
	return ret < 0 ? ret : 0;
}

/* A pid may be used again, so the time of the process's start decides. */
static int check_pair(struct store_reader *reader, const struct traced *a, const struct traced *b,
		      struct error *err)
{
	uint32_t tid = store_pid_real(a->pid);
	uint64_t start_a, start_b;
	int ret = started_at(&reader->files[a->file], tid, &start_a, err)
			  ?: started_at(&reader->files[b->file], tid, &start_b, err);

	if (ret || !start_a || start_a != start_b)
		return ret;
	return error_set(err, EEXIST,
			 "%s and %s both traced process %u (%.60s) at the same time, so its spans "
			 "would count twice; leave one of them out",
			 path_of(reader, a->file), path_of(reader, b->file), tid, a->cmdline);
}

static int check_processes(struct store_reader *reader, struct error *err)
{
	traced_list list = {0};
	int ret = traced_collect(reader, &list) ? 0 : error_set(err, ENOMEM, "out of memory");

	for (size_t i = 1; !ret && i < list.len; i++) {
		const struct traced *a = &list.data[i - 1], *b = &list.data[i];

		if (a->pid == b->pid && a->file != b->file && a->from_ts < b->to_ts &&
		    b->from_ts < a->to_ts)
			ret = check_pair(reader, a, b, err);
	}
	vec_free(&list);
	return ret;
}

/* The times of a host that began to record before the first one booted can't be told. */
static int check_clocks(const struct store_reader *reader, struct error *err)
{
	for (uint32_t i = 0; i < reader->count; i++) {
		const struct job_file *file = &reader->files[i];
		int64_t offset = file->renumber.clock->offset_ns;
		uint64_t start = file->reader.meta.start_ts;

		if (start > RECORD_TS_MAX ||
		    (offset < 0 ? (uint64_t)-offset > start
				: (uint64_t)offset > RECORD_TS_MAX - start))
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
		       ?: check_processes(reader, err);
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

static void warn_ranks(const struct store_rank *const *ranks, size_t count,
		       const struct store_open_options *options)
{
	char list[128], line[512];
	uint32_t missing = ranks_missing(ranks, count, list, sizeof(list));

	if (!missing)
		return;
	snprintf(line, sizeof(line), "no file has rank%s %s%s of %u%s%s, so what %s did is unknown",
		 missing > 1 ? "s" : "", list, strlen(list) + 1 == sizeof(list) ? "…" : "",
		 ranks[0]->world_size, *ranks[0]->job ? " of job " : "", ranks[0]->job,
		 missing > 1 ? "they" : "it");
	options->warn(line, options->arg);
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
		if (i < ranks.len && !strcmp(ranks.data[i]->job, ranks.data[from]->job) &&
		    ranks.data[i]->world_size == ranks.data[from]->world_size)
			continue;
		warn_ranks(ranks.data + from, i - from, options);
		from = i;
	}
	vec_free(&ranks);
	return good ? 0 : error_set(err, ENOMEM, "out of memory");
}

int job_warn(const struct store_reader *reader, const struct store_open_options *options,
	     struct error *err)
{
	if (!options || !options->warn || reader->count == 1)
		return 0;
	for (uint32_t i = 0; i < reader->count; i++) {
		const struct file_reader *file = &reader->files[i].reader;
		const struct store_host *host = &file->dictionary.hosts.data[0];
		uint64_t unused;

		if (file_reader_truncated(file, &unused))
			warn(options,
			     "%s is still being recorded, or was cut off: its last records are "
			     "missing",
			     file->file.path);
		if (!*host->name && !*host->boot_id)
			warn(options,
			     "%s does not say which host it is of, and counts as one of its own",
			     file->file.path);
	}
	return warn_missing(reader, options, err);
}
