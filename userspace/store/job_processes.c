// SPDX-License-Identifier: Apache-2.0
/*
 * Finds a process that two files of a job recorded at the same time. Most jobs have none, so the
 * tables come first. Only if two intervals of one pid overlap there are the files read, each once,
 * for the times at which the processes started: a pid may be used again.
 */
#include <stdlib.h>

#include "store/job_internal.h"
#include "util/search.h"

/* When one capture recorded a pid, or one process that had it. */
struct traced {
	uint32_t pid, file, capture; /* `capture` is an index in the job */
	uint64_t start_ts;       /* of the process, in the clock of its host; 0: not known so far */
	uint64_t from_ts, to_ts; /* from its first entry to the end of the capture */
	const char *cmdline;
};
typedef VEC(struct traced) traced_list;

static int no_memory(struct error *err)
{
	return error_set(err, ENOMEM, "out of memory");
}

/* ---- intervals that overlap ---- */

static int by_process_and_time(const void *left, const void *right)
{
	const struct traced *a = left, *b = right;

	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->start_ts != b->start_ts)
		return a->start_ts < b->start_ts ? -1 : 1;
	if (a->from_ts != b->from_ts)
		return a->from_ts < b->from_ts ? -1 : 1;
	return a->file < b->file ? -1 : a->file > b->file;
}

static void traced_sort(traced_list *list)
{
	if (list->len)
		qsort(list->data, list->len, sizeof(*list->data), by_process_and_time);
}

/* Number of sorted intervals from `at` on that are of the same process. */
static size_t run_length(const traced_list *list, size_t at)
{
	size_t end = at;

	while (end < list->len && list->data[end].pid == list->data[at].pid &&
	       list->data[end].start_ts == list->data[at].start_ts)
		end++;
	return end - at;
}

/* The interval that ends last so far, and the one that ends last among those of other files. If a
 * later interval overlaps any of another file, it overlaps one of these two. */
struct latest {
	const struct traced *last, *other;
};

static void latest_add(struct latest *latest, const struct traced *traced)
{
	if (!latest->last || latest->last->file == traced->file) {
		if (!latest->last || traced->to_ts > latest->last->to_ts)
			latest->last = traced;
	} else if (traced->to_ts > latest->last->to_ts) {
		latest->other = latest->last;
		latest->last = traced;
	} else if (!latest->other || traced->to_ts > latest->other->to_ts) {
		latest->other = traced;
	}
}

/* Two of the sorted intervals of a process that overlap and are of different files. */
static bool run_overlaps(const struct traced *run, size_t count, const struct traced **a,
			 const struct traced **b)
{
	struct latest latest = {0};

	for (size_t i = 0; i < count; i++) {
		const struct traced *before = latest.last;

		if (before && before->file == run[i].file)
			before = latest.other;
		if (before && before->to_ts > run[i].from_ts) {
			*a = before;
			*b = &run[i];
			return true;
		}
		latest_add(&latest, &run[i]);
	}
	return false;
}

/* ---- intervals of pids ---- */

static uint64_t capture_end(const struct store_capture *capture)
{
	return capture->end_ts > capture->last_ts ? capture->end_ts : capture->last_ts;
}

static bool collect_capture(const struct store_reader *reader, uint32_t file, uint32_t capture,
			    traced_list *list)
{
	const struct store_capture *of = &reader->captures.data[capture];

	for (uint32_t i = 0; i < of->process_count; i++) {
		const struct store_process *process =
			store_reader_process(reader, of->first_process + i);
		struct traced traced = {.pid = process->pid,
					.file = file,
					.capture = capture,
					.from_ts = process->ts,
					.to_ts = capture_end(of),
					.cmdline = process->cmdline};

		if (traced.from_ts < traced.to_ts && !vec_push(list, traced))
			return false;
	}
	return true;
}

/* A merged file has several captures. */
static bool collect_all(const struct store_reader *reader, traced_list *list)
{
	uint32_t capture = 0;

	for (uint32_t i = 0; i < reader->count; i++) {
		size_t own = reader->files[i].reader.dictionary.captures.len;

		for (size_t at = 0; at < own; at++)
			if (!collect_capture(reader, i, capture++, list))
				return false;
	}
	traced_sort(list);
	return true;
}

static int by_file_and_pid(const void *left, const void *right)
{
	const struct traced *a = left, *b = right;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->capture != b->capture)
		return a->capture < b->capture ? -1 : 1;
	return a->from_ts < b->from_ts ? -1 : a->from_ts > b->from_ts;
}

/* Keeps the pids whose intervals overlap, and of each the first interval in each capture: a process
 * has an entry for each of its programs. */
static void keep_overlapping(traced_list *list)
{
	const struct traced *a, *b;
	size_t kept = 0;

	for (size_t at = 0, len; at < list->len; at += len) {
		len = run_length(list, at);
		if (!run_overlaps(&list->data[at], len, &a, &b))
			continue;
		for (size_t i = at; i < at + len; i++)
			list->data[kept++] = list->data[i];
	}
	list->len = kept;
	if (!kept)
		return;
	qsort(list->data, kept, sizeof(*list->data), by_file_and_pid);
	kept = 1;
	for (size_t i = 1; i < list->len; i++)
		if (list->data[i].capture != list->data[kept - 1].capture ||
		    list->data[i].pid != list->data[kept - 1].pid)
			list->data[kept++] = list->data[i];
	list->len = kept;
}

/* ---- when the processes started ---- */

/* Of processes of one pid in one file. A file with more was made to be slow. */
#define STARTS_MAX 8

/* A pid of a file, and the times at which processes with this pid started. */
struct pid_starts {
	uint32_t pid, count;
	uint64_t ts[STARTS_MAX];
};
typedef VEC(struct pid_starts) starts_list;

static bool starts_init(starts_list *starts, const struct traced *of_file, size_t count)
{
	starts->len = 0;
	for (size_t i = 0; i < count; i++)
		if ((!i || of_file[i - 1].pid != of_file[i].pid) &&
		    !vec_push(starts, (struct pid_starts){.pid = of_file[i].pid}))
			return false;
	return true;
}

static struct pid_starts *starts_of(const starts_list *starts, uint32_t pid)
{
	size_t at = lower_bound(starts->len, i, starts->data[i].pid < pid);

	return at < starts->len && starts->data[at].pid == pid ? &starts->data[at] : NULL;
}

static void starts_add(struct pid_starts *starts, uint64_t ts)
{
	for (uint32_t i = 0; i < starts->count; i++)
		if (starts->ts[i] == ts)
			return;
	if (ts && starts->count < STARTS_MAX)
		starts->ts[starts->count++] = ts;
}

/* The records of a file have its own pids. */
static int starts_read(struct job_file *file, const starts_list *starts, struct error *err)
{
	const struct waffle_rec *rec;
	int ret = file_reader_seek(&file->reader, STORE_ALL, err);

	while (!ret && (ret = file_reader_next(&file->reader, &rec, err)) > 0) {
		const struct waffle_rec_task *task = (const struct waffle_rec_task *)rec;
		struct pid_starts *of;

		ret = 0;
		if (rec->kind != WAFFLE_REC_TASK || !(task->flags & WAFFLE_TASK_TRACED_FLAG))
			continue;
		of = starts_of(starts, store_pid_of(file->renumber.host, store_pid_real(rec->tid)));
		if (of)
			starts_add(of, task->start_ts);
	}
	file_reader_rest(&file->reader);
	return ret;
}

/* The part of an interval in which the process lived: up to the start of the next one. */
static bool process_add(traced_list *processes, const struct traced *traced,
			const struct store_clock *clock, const struct pid_starts *starts,
			uint32_t which)
{
	struct traced process = *traced;

	process.start_ts = starts->ts[which];
	for (uint32_t i = 0; i < starts->count; i++) {
		uint64_t ts = store_clock_apply(clock, starts->ts[i]);

		if (i == which && process.from_ts < ts)
			process.from_ts = ts;
		if (starts->ts[i] > process.start_ts && process.to_ts > ts)
			process.to_ts = ts;
	}
	return process.from_ts >= process.to_ts || vec_push(processes, process);
}

/* Adds to `processes` those of one file. */
static int processes_of_file(struct job_file *file, const struct traced *of_file, size_t count,
			     traced_list *processes, struct error *err)
{
	starts_list starts = {0};
	int ret = starts_init(&starts, of_file, count) ? starts_read(file, &starts, err)
						       : no_memory(err);

	for (size_t i = 0; !ret && i < count; i++) {
		const struct pid_starts *of = starts_of(&starts, of_file[i].pid);

		for (uint32_t which = 0; !ret && of && which < of->count; which++)
			if (!process_add(processes, &of_file[i], file->renumber.clock, of, which))
				ret = no_memory(err);
	}
	vec_free(&starts);
	return ret;
}

static int processes_find(struct store_reader *reader, const traced_list *pids,
			  traced_list *processes, struct error *err)
{
	int ret = 0;

	for (size_t at = 0, end; !ret && at < pids->len; at = end) {
		uint32_t file = pids->data[at].file;

		for (end = at; end < pids->len && pids->data[end].file == file; end++)
			;
		ret = processes_of_file(&reader->files[file], &pids->data[at], end - at, processes,
					err);
	}
	traced_sort(processes);
	return ret;
}

static int process_error(const struct store_reader *reader, const struct traced *a,
			 const struct traced *b, struct error *err)
{
	return error_set(err, EEXIST,
			 "%s and %s both traced process %u (%.60s) at the same time, so its spans "
			 "would count twice; leave one of them out",
			 reader->files[a->file].reader.file.path,
			 reader->files[b->file].reader.file.path, store_pid_real(a->pid),
			 a->cmdline);
}

static int check_run(const struct store_reader *reader, const struct traced *run, size_t count,
		     struct error *err)
{
	const struct traced *a, *b;

	if (!run_overlaps(run, count, &a, &b))
		return 0;
	return a->file < b->file ? process_error(reader, a, b, err)
				 : process_error(reader, b, a, err);
}

int job_check_processes(struct store_reader *reader, struct error *err)
{
	traced_list pids = {0}, processes = {0};
	int ret = collect_all(reader, &pids) ? 0 : no_memory(err);

	if (!ret) {
		keep_overlapping(&pids);
		ret = processes_find(reader, &pids, &processes, err);
	}
	for (size_t at = 0, len; !ret && at < processes.len; at += len) {
		len = run_length(&processes, at);
		ret = check_run(reader, &processes.data[at], len, err);
	}
	vec_free(&pids);
	vec_free(&processes);
	return ret;
}
