// SPDX-License-Identifier: Apache-2.0
#include "render/job_ranks_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "util/terminal.h"
#include "util/units.h"

/* The ranks of one job, sorted. A rank has several processes if it forks or was started again. */
struct job_ranks {
	const struct model *model;
	const char *job;
	uint32_t world_size;
	const struct model_process **processes;
	size_t count;
};

static int process_compare(const void *left, const void *right)
{
	const struct model_process *a = *(const struct model_process *const *)left;
	const struct model_process *b = *(const struct model_process *const *)right;

	if (a->job != b->job)
		return a->job < b->job ? -1 : 1;
	if (a->world_size != b->world_size)
		return a->world_size < b->world_size ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return (a > b) - (a < b);
}

/* All processes that have a rank, job by job. NULL: none, or out of memory. */
static const struct model_process **ranks_collect(const struct model *model, size_t *count)
{
	const struct model_process **list = calloc(model->processes.len + 1, sizeof(*list));

	*count = 0;
	for (size_t i = 0; list && i < model->processes.len; i++)
		if (model->processes.data[i].rank < model->processes.data[i].world_size)
			list[(*count)++] = &model->processes.data[i];
	if (list && *count)
		qsort(list, *count, sizeof(*list), process_compare);
	return list;
}

static bool is_same_job(const struct model_process *a, const struct model_process *b)
{
	return a->job == b->job && a->world_size == b->world_size;
}

typedef void (*job_fn)(const struct job_ranks *job, void *arg);

static void each_job(const struct model *model, job_fn each, void *arg)
{
	size_t count, from = 0;
	const struct model_process **list = ranks_collect(model, &count);

	for (size_t i = 1; i <= count; i++) {
		struct job_ranks job = {
			.model = model, .processes = list + from, .count = i - from};

		if (i < count && is_same_job(list[i], list[from]))
			continue;
		job.job = strtab_get(model->strings, list[from]->job);
		job.world_size = list[from]->world_size;
		each(&job, arg);
		from = i;
	}
	free(list);
}

/* The next gap in the ranks from *next on: [*from, *to). False: there is none. */
static bool gap_next(const struct job_ranks *job, size_t *at, uint32_t *next, uint32_t *from,
		     uint32_t *to)
{
	while (*at <= job->count) {
		uint32_t rank = *at < job->count ? job->processes[*at]->rank : job->world_size;

		(*at)++;
		*from = *next;
		*to = rank;
		if (rank >= *next)
			*next = rank + 1;
		if (*to > *from)
			return true;
	}
	return false;
}

static uint32_t ranks_known(const struct job_ranks *job)
{
	uint32_t known = 0;

	for (size_t i = 0; i < job->count; i++)
		known += !i || job->processes[i]->rank != job->processes[i - 1]->rank;
	return known;
}

/* Whether a process of the same rank started it: a rank may have children. */
static bool has_parent(const struct job_ranks *job, const struct model_process *process)
{
	uint32_t index = map_get(&job->model->pids, process->ppid);
	const struct model_process *parent =
		index == MAP_NONE ? NULL : &job->model->processes.data[index];

	return parent && is_same_job(parent, process) && parent->rank == process->rank;
}

/* Ranks that were started more than once, as after a failure. `text` gets the first ones. */
static uint32_t ranks_restarted(const struct job_ranks *job, char *text, size_t size)
{
	uint32_t restarted = 0, starts = 0;
	size_t len = 0;

	*text = '\0';
	for (size_t i = 0; i < job->count; i++) {
		uint32_t rank = job->processes[i]->rank;

		starts = i && job->processes[i - 1]->rank == rank ? starts : 0;
		starts += !has_parent(job, job->processes[i]);
		if (starts != 2)
			continue;
		starts++; /* count it once */
		restarted++;
		if (len < size)
			len += (size_t)snprintf(text + len, size - len, "%s%" PRIu32,
						len ? ", " : "", rank);
	}
	return restarted;
}

static void job_put(const struct job_ranks *job, void *arg)
{
	char restarted[80];
	uint32_t next = 0, from, to, known = ranks_known(job);
	FILE *out = arg;
	size_t at = 0;
	const char *glue = ", missing: ";

	fprintf(out, "%-12s%" PRIu32 " of %" PRIu32, "ranks", known, job->world_size);
	if (*job->job) {
		fputs(" of job ", out);
		terminal_put(out, job->job, strlen(job->job));
	}
	while (gap_next(job, &at, &next, &from, &to)) {
		fprintf(out, to - from > 1 ? "%s%" PRIu32 "-%" PRIu32 : "%s%" PRIu32, glue, from,
			to - 1);
		glue = ", ";
	}
	if (ranks_restarted(job, restarted, sizeof(restarted)))
		fprintf(out, "; started again: %s", restarted);
	fputc('\n', out);
}

void job_ranks_put(FILE *out, const struct model *model)
{
	uint32_t count = store_reader_capture_count(model->reader);

	for (uint32_t i = 0; count > 1 && i < count; i++) {
		const struct store_capture *capture = store_reader_capture(model->reader, i);

		fprintf(out, "%-12s", i ? "" : "files");
		terminal_put(out, capture->file, strlen(capture->file));
		if (capture->truncated)
			fputs(", cut off", out);
		if (!capture->sched)
			fputs(", without the scheduler", out);
		fputc('\n', out);
	}
	each_job(model, job_put, out);
}

static void job_json(const struct job_ranks *job, void *arg)
{
	uint32_t next = 0, from, to;
	struct json *json = arg;
	char restarted[80];
	size_t at = 0;

	json_object_begin(json);
	json_field_string(json, "job", job->job);
	json_field_u64(json, "world_size", job->world_size);
	json_field_u64(json, "ranks", ranks_known(job));
	json_field_u64(json, "ranks_restarted", ranks_restarted(job, restarted, sizeof(restarted)));
	json_key(json, "ranks_missing");
	json_array_begin(json);
	while (gap_next(job, &at, &next, &from, &to)) {
		json_object_begin(json);
		json_field_u64(json, "from", from);
		json_field_u64(json, "to", to - 1);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void captures_json(struct json *json, const struct model *model, uint32_t count)
{
	json_key(json, "captures");
	json_array_begin(json);
	for (uint32_t i = 0; i < count; i++) {
		const struct store_capture *capture = store_reader_capture(model->reader, i);

		json_object_begin(json);
		json_field_string(json, "file", capture->file);
		json_field_string(json, "command", capture->command);
		json_field_string(json, "host", model->hosts[capture->host]->name);
		json_field_u64(json, "start_ns", capture->start_ts);
		json_field_u64(json, "end_ns", capture->end_ts);
		json_field_bool(json, "sched", capture->sched);
		json_field_bool(json, "truncated", capture->truncated);
		json_object_end(json);
	}
	json_array_end(json);
}

void job_ranks_json(struct json *json, const struct model *model)
{
	uint32_t count = store_reader_capture_count(model->reader);
	bool ranks = false;

	for (size_t i = 0; !ranks && i < model->processes.len; i++)
		ranks = model->processes.data[i].rank < model->processes.data[i].world_size;
	if (count > 1)
		captures_json(json, model, count);
	if (!ranks)
		return;
	json_key(json, "jobs");
	json_array_begin(json);
	each_job(model, job_json, json);
	json_array_end(json);
}
