// SPDX-License-Identifier: Apache-2.0
/* The reader of a file or of a job. A single file is read directly, several through a merge. */
#include <stdlib.h>
#include <string.h>

#include "store/job_internal.h"
#include "store/leaves_find_internal.h"
#include "store/store.h"

/* ---- opening ---- */

int store_reader_open_files(struct store_reader **result, const char *const *paths, uint32_t count,
			    const struct store_open_options *options, struct error *err)
{
	struct store_reader *reader = calloc(1, sizeof(*reader));
	int ret;

	if (!reader || !chunk_scratch_init(&reader->scratch)) {
		free(reader);
		return error_set(err, ENOMEM, "%s: out of memory", paths[0]);
	}
	ret = job_open(reader, paths, count, err)
		      ?: job_check(reader, err)
		      ?: job_warn(reader, options, err)
		      ?: store_reader_seek(reader, STORE_ALL, err);
	if (ret) {
		store_reader_close(reader);
		return ret;
	}
	*result = reader;
	return 0;
}

int store_reader_open(struct store_reader **reader, const char *path, struct error *err)
{
	return store_reader_open_files(reader, &path, 1, NULL, err);
}

void store_reader_close(struct store_reader *reader)
{
	if (!reader)
		return;
	merge_close(reader->merge);
	leaves_free(reader->leaves);
	for (uint32_t i = 0; i < reader->count; i++) {
		file_reader_close(&reader->files[i].reader);
		free(reader->files[i].sites);
		vec_free(&reader->files[i].kept);
	}
	free(reader->files);
	free(reader->sources);
	vec_free(&reader->hosts);
	vec_free(&reader->captures);
	vec_free(&reader->sites);
	vec_free(&reader->site_lists);
	chunk_scratch_free(&reader->scratch);
	free(reader);
}

/* ---- contents ---- */

const struct store_meta *store_reader_meta(const struct store_reader *reader)
{
	return &reader->meta;
}

uint32_t store_reader_site_count(const struct store_reader *reader)
{
	return (uint32_t)reader->sites.len;
}

const struct site_info *store_reader_site(const struct store_reader *reader, uint32_t index)
{
	return index < reader->sites.len ? &reader->sites.data[index] : NULL;
}

uint32_t store_reader_host_count(const struct store_reader *reader)
{
	return (uint32_t)reader->hosts.len;
}

const struct store_host *store_reader_host(const struct store_reader *reader, uint32_t index)
{
	return index < reader->hosts.len ? &reader->hosts.data[index] : NULL;
}

uint32_t store_reader_capture_count(const struct store_reader *reader)
{
	return (uint32_t)reader->captures.len;
}

const struct store_capture *store_reader_capture(const struct store_reader *reader, uint32_t index)
{
	return index < reader->captures.len ? &reader->captures.data[index] : NULL;
}

/* The file that has an entry of a table, and the entry's index there. NULL: no file has it. */
static const struct dictionary *entry_of(const struct store_reader *reader, enum job_table table,
					 uint32_t index, size_t *at)
{
	uint32_t low = 0, high = reader->count;

	if (index >= reader->totals[table])
		return NULL;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (reader->files[middle].first[table] <= index)
			low = middle;
		else
			high = middle;
	}
	*at = index - reader->files[low].first[table];
	return &reader->files[low].reader.dictionary;
}

/* Defines the function that looks up an entry of a table by its index, or by its number from 1. */
#define TABLE_AT(name, type, table, member, from)                                                  \
	const struct type *store_reader_##name(const struct store_reader *reader, uint32_t index)  \
	{                                                                                          \
		size_t at;                                                                         \
		const struct dictionary *of = entry_of(reader, table, index - (from), &at);        \
                                                                                                   \
		return of ? &of->member.data[at] : NULL;                                           \
	}
#define TABLE_COUNT(name, table)                                                                   \
	uint32_t store_reader_##name##_count(const struct store_reader *reader)                    \
	{                                                                                          \
		return reader->totals[table];                                                      \
	}

TABLE_COUNT(process, JOB_PROCESSES)
TABLE_AT(process, store_process, JOB_PROCESSES, processes, 0u)
TABLE_AT(stack, store_stack, JOB_STACKS, stacks, 1u)
TABLE_AT(object, store_object, JOB_OBJECTS, objects, 1u)
TABLE_COUNT(mapping, JOB_MAPPINGS)
TABLE_AT(mapping, store_mapping, JOB_MAPPINGS, mappings, 0u)
TABLE_COUNT(symbol, JOB_SYMBOLS)
TABLE_AT(symbol, store_symbol, JOB_SYMBOLS, symbols, 0u)
TABLE_COUNT(name, JOB_NAMES)
TABLE_AT(name, store_name, JOB_NAMES, names, 0u)
TABLE_COUNT(rank, JOB_RANKS)
TABLE_AT(rank, store_rank, JOB_RANKS, ranks, 0u)
TABLE_COUNT(attribute, JOB_ATTRIBUTES)
TABLE_AT(attribute, store_attribute, JOB_ATTRIBUTES, attributes, 0u)
TABLE_COUNT(transport, JOB_TRANSPORTS)
TABLE_AT(transport, store_transport, JOB_TRANSPORTS, transports, 0u)

bool store_reader_truncated(const struct store_reader *reader, uint64_t *bytes)
{
	uint64_t all = 0, of_file;
	bool truncated = false;

	for (uint32_t i = 0; i < reader->count; i++) {
		truncated |= file_reader_truncated(&reader->files[i].reader, &of_file);
		all += of_file;
	}
	for (size_t i = 0; i < reader->captures.len; i++)
		truncated |= reader->captures.data[i].truncated;
	if (bytes)
		*bytes = all;
	return truncated;
}

bool store_reader_newer(const struct store_reader *reader)
{
	for (uint32_t i = 0; i < reader->count; i++)
		if (record_lengths_newer(&reader->files[i].reader.dictionary.lengths))
			return true;
	return false;
}

uint64_t store_reader_skipped(const struct store_reader *reader)
{
	uint64_t skipped = 0;

	for (uint32_t i = 0; i < reader->count; i++)
		skipped += reader->files[i].reader.dictionary.skipped;
	return skipped;
}

uint64_t store_reader_chunks(const struct store_reader *reader, uint64_t *decoded)
{
	uint64_t chunks = 0, sum = 0;

	for (uint32_t i = 0; i < reader->count; i++) {
		chunks += reader->files[i].reader.data_chunks;
		sum += reader->files[i].reader.decoded;
	}
	if (decoded)
		*decoded = sum;
	return chunks;
}

int store_reader_set_clock(struct store_reader *reader, uint32_t host,
			   const struct store_clock *clock)
{
	struct error err = ERROR_INIT;

	if (host >= reader->hosts.len ||
	    !(clock->drift >= -STORE_DRIFT_MAX && clock->drift <= STORE_DRIFT_MAX))
		return -EINVAL;
	if (reader->count == 1)
		return -ENOTSUP;
	merge_close(reader->merge);
	reader->merge = NULL;
	reader->hosts.data[host].clock = *clock;
	return job_clock_apply(reader, host, &err);
}

/* ---- reading a window ---- */

int store_reader_seek(struct store_reader *reader, struct store_window window, struct error *err)
{
	merge_close(reader->merge);
	reader->merge = NULL;
	reader->window = window;
	reader->number = 0;
	reader->code = 0;
	if (!reader->sources) {
		reader->files[0].reader.file.scratch = &reader->scratch;
		reader->code = file_reader_seek(&reader->files[0].reader, window, err);
	}
	return reader->code;
}

int store_reader_leave_out(struct store_reader *reader, const struct store_leave_out *what,
			   struct error *err)
{
	struct file_reader **files = calloc(reader->count, sizeof(*files));
	int ret = 0;

	if (!files)
		return error_set(err, ENOMEM, "out of memory");
	merge_close(reader->merge);
	reader->merge = NULL;
	leaves_free(reader->leaves);
	reader->leaves = NULL;
	for (uint32_t i = 0; i < reader->count; i++) {
		files[i] = &reader->files[i].reader;
		files[i]->leave_out_kinds = 0;
		files[i]->leaves = NULL;
	}
	if (what && what->leaves_if)
		ret = leaves_find(&reader->leaves, files, reader->count, what->leaves_if, err);
	for (uint32_t i = 0; i < reader->count; i++) {
		files[i]->leave_out_kinds = what ? what->kinds : 0;
		files[i]->leaves = reader->leaves;
	}
	free(files);
	return ret;
}

void store_reader_left_out(const struct store_reader *reader, struct store_left_out *left_out)
{
	*left_out = (struct store_left_out){0};
	for (uint32_t i = 0; i < reader->count; i++) {
		const struct job_file *file = &reader->files[i];

		for (unsigned kind = 0; kind < WAFFLE_REC_KIND_COUNT; kind++) {
			uint64_t ts = file->reader.left_out.last_ts[kind];

			left_out->records[kind] += file->reader.left_out.records[kind];
			if (ts)
				ts = renumber_time(&file->renumber, ts);
			if (ts > left_out->last_ts[kind])
				left_out->last_ts[kind] = ts;
		}
	}
}

/* The merge begins with the first record, since its threads read ahead at once. */
static int next_of_job(struct store_reader *reader, const struct waffle_rec **rec,
		       struct error *err)
{
	int ret = 0;

	if (!reader->merge)
		ret = merge_open(&reader->merge, reader->sources, reader->count, reader->window,
				 err);
	return ret ?: merge_next(reader->merge, rec, &reader->number, err);
}

static int next_of_file(struct store_reader *reader, const struct waffle_rec **rec,
			struct error *err)
{
	int ret = file_reader_next(&reader->files[0].reader, rec, err);

	reader->number = reader->files[0].reader.number;
	return ret;
}

int store_reader_next(struct store_reader *reader, const struct waffle_rec **rec, struct error *err)
{
	int ret;

	if (reader->code)
		return error_set(err, -reader->code, "%s: can't be read any further",
				 reader->files[0].reader.file.path);
	ret = reader->sources ? next_of_job(reader, rec, err) : next_of_file(reader, rec, err);
	if (ret < 0)
		reader->code = ret;
	return ret;
}

uint64_t store_reader_number(const struct store_reader *reader)
{
	return reader->number;
}
