// SPDX-License-Identifier: Apache-2.0
#include "store/file_reader_internal.h"

#include <stdlib.h>
#include <string.h>

#include "store/record_schema.h"
#include "util/map.h"

/* ---- opening ---- */

static int load_meta(struct file_reader *reader, struct error *err)
{
	const struct chunk_entry *entry = &reader->file.entries.data[0];
	struct cursor cursor;
	int ret = chunk_file_load(&reader->file, entry, &cursor, err);

	if (ret)
		return ret;
	if (meta_get(&reader->meta, &reader->dictionary, reader->file.version, &cursor))
		return chunk_file_damaged(&reader->file, entry->offset, err);
	reader->meta.end_ts = reader->file.end_ts;
	memcpy(reader->meta.counts, reader->file.counts, sizeof(reader->meta.counts));
	return 0;
}

/* Older writers did not limit their tables. A large file may use more memory than a small one,
 * whatever its chunks decompress to. */
#define TABLES_BYTES_A_BYTE 64

static int load_dictionaries(struct file_reader *reader, struct error *err)
{
	uint64_t in_proportion = reader->file.size * TABLES_BYTES_A_BYTE;

	if (in_proportion > reader->dictionary.bytes_max)
		reader->dictionary.bytes_max = in_proportion;
	for (size_t i = 0; i < reader->file.entries.len; i++) {
		const struct chunk_entry *entry = &reader->file.entries.data[i];
		struct cursor cursor;
		int ret;

		if (entry->type == CHUNK_DATA) {
			reader->data_chunks++;
			reader->data_records += entry->records;
		}
		if (!dictionary_has(entry->type))
			continue;
		ret = chunk_file_load(&reader->file, entry, &cursor, err);
		if (ret)
			return ret;
		ret = dictionary_get(&reader->dictionary, entry->type, &cursor, entry->records);
		if (ret == -ENOMEM)
			return error_set(err, ENOMEM, "%s: out of memory", reader->file.path);
		if (ret)
			return chunk_file_damaged(&reader->file, entry->offset, err);
	}
	return 0;
}

/* The captures of a merged file have its processes one after the other. */
static int processes_divide(struct file_reader *reader, struct error *err)
{
	uint32_t first = 0, all = (uint32_t)reader->dictionary.processes.len;

	for (size_t i = 0; i < reader->dictionary.captures.len; i++) {
		struct store_capture *capture = &reader->dictionary.captures.data[i];

		if (capture->host >= reader->dictionary.hosts.len)
			return error_set(
				err, EBADMSG,
				"%s: is damaged: capture '%s' is of host %u, and there are "
				"%zu; take a good copy of it",
				reader->file.path, capture->file, capture->host,
				reader->dictionary.hosts.len);
		capture->first_process = first;
		if (capture->process_count > all - first)
			capture->process_count = all - first;
		first += capture->process_count;
	}
	return 0;
}

static uint64_t last_record_ts(const struct file_reader *reader)
{
	uint64_t last = 0;

	for (size_t i = 0; i < reader->file.entries.len; i++) {
		const struct chunk_entry *entry = &reader->file.entries.data[i];

		if (entry->type == CHUNK_DATA && entry->max_ts > last)
			last = entry->max_ts;
	}
	return last;
}

/* A file that was not merged is of one capture, which META describes. */
static int add_own_capture(struct file_reader *reader, struct error *err)
{
	const struct store_meta *meta = &reader->meta;
	uint64_t unused;
	struct store_capture capture = {
		.file = reader->file.path,
		.command = meta->command,
		.start_ts = meta->start_ts,
		.end_ts = meta->end_ts,
		.last_ts = last_record_ts(reader),
		.sched = meta->sched,
		.truncated = file_reader_truncated(reader, &unused),
		.process_count = (uint32_t)reader->dictionary.processes.len,
	};

	if (reader->dictionary.captures.len)
		return processes_divide(reader, err);
	return vec_push(&reader->dictionary.captures, capture)
		       ? 0
		       : error_set(err, ENOMEM, "%s: out of memory", reader->file.path);
}

/* A file without hosts is of the one that META describes. */
static int add_own_host(struct file_reader *reader, struct error *err)
{
	const struct store_meta *meta = &reader->meta;
	struct store_host host = {.name = meta->hostname,
				  .boot_id = meta->boot_id,
				  .kernel = meta->kernel,
				  .machine = meta->machine,
				  .cpu_count = meta->cpu_count,
				  .mono_ns = meta->start_ts,
				  .boot_ns = meta->boot_ns,
				  .real_ns = meta->real_ns};

	if (reader->dictionary.hosts.len || vec_push(&reader->dictionary.hosts, host))
		return 0;
	return error_set(err, ENOMEM, "%s: out of memory", reader->file.path);
}

int file_reader_open(struct file_reader *reader, const char *path, struct chunk_scratch *scratch,
		     struct error *err)
{
	int ret;

	*reader = (struct file_reader){.file.fd = -1};
	if (!dictionary_init(&reader->dictionary))
		return error_set(err, ENOMEM, "%s: out of memory", path);
	ret = chunk_file_open(&reader->file, path, scratch, err)
		      ?: load_meta(reader, err)
		      ?: load_dictionaries(reader, err)
		      ?: add_own_host(reader, err)
		      ?: add_own_capture(reader, err);
	if (ret)
		file_reader_close(reader);
	return ret;
}

void file_reader_close(struct file_reader *reader)
{
	chunk_file_close(&reader->file);
	dictionary_free(&reader->dictionary);
	decoder_free(reader->decoder);
	vec_free(&reader->tasks);
	*reader = (struct file_reader){.file.fd = -1};
}

bool file_reader_truncated(const struct file_reader *reader, uint64_t *bytes)
{
	*bytes = reader->file.size - reader->file.end;
	return !reader->file.finished || *bytes;
}

static int decoder_ready(struct file_reader *reader, struct error *err)
{
	bool done;

	if (reader->decoder)
		return 0;
	reader->decoder = decoder_new();
	done = reader->decoder != NULL;
	if (done)
		decoder_set_lengths(reader->decoder, &reader->dictionary.lengths);
	for (size_t i = 0; done && i < reader->site_count; i++)
		done = decoder_add_site(reader->decoder, reader->sites[i]);
	return done ? 0 : error_set(err, ENOMEM, "%s: out of memory", reader->file.path);
}

/* ---- reading a window ---- */

/* Identifies a thread or a track. */
static uint64_t naming_key(const union file_naming *naming)
{
	const struct waffle_rec_track *track = &naming->track;

	return naming->rec.kind == WAFFLE_REC_TRACK ? (uint64_t)track->tgid << 32 | track->track
						    : naming->rec.tid;
}

/* Of records that name something, by kind: its key → index in `tasks`. */
struct namings {
	struct map tasks, tracks, thread_names;
};

/* Keeps a record in place of an earlier one of the same kind and thread or track. */
static int keep_task(struct file_reader *reader, struct namings *namings,
		     const struct waffle_rec *rec)
{
	union file_naming naming = {.rec = {0}};
	struct map *keys = rec->kind == WAFFLE_REC_TRACK  ? &namings->tracks
			   : rec->kind == WAFFLE_REC_TASK ? &namings->tasks
							  : &namings->thread_names;
	uint32_t known;

	memcpy(&naming, rec, record_kinds[rec->kind].bytes);
	known = map_get(keys, naming_key(&naming));
	if (known != MAP_NONE) {
		reader->tasks.data[known] = naming;
		return 0;
	}
	if (reader->tasks.len == STORE_TASKS_MAX)
		return -EBADMSG;
	if (!map_set(keys, naming_key(&naming), (uint32_t)reader->tasks.len) ||
	    !vec_push(&reader->tasks, naming))
		return -ENOMEM;
	return 0;
}

static int keep_tasks(struct file_reader *reader, struct namings *namings,
		      const struct chunk_entry *entry, struct error *err)
{
	const struct waffle_rec *rec;
	struct cursor cursor;
	int ret = decoder_ready(reader, err) ?: chunk_file_load(&reader->file, entry, &cursor, err);

	if (ret)
		return ret;
	decoder_begin(reader->decoder, cursor.at, (size_t)(cursor.end - cursor.at), entry->records);
	while ((ret = decoder_next(reader->decoder, &rec)) > 0) {
		if (!record_names(rec->kind))
			ret = -EBADMSG;
		else if (rec->ts < reader->window.from_ts)
			ret = keep_task(reader, namings, rec);
		if (ret < 0)
			break;
	}
	if (ret == -ENOMEM)
		return error_set(err, ENOMEM, "%s: out of memory", reader->file.path);
	return ret ? chunk_file_damaged(&reader->file, entry->offset, err) : 0;
}

static int decode_failed(struct file_reader *reader, int code, struct error *err)
{
	return code == -ENOMEM ? error_set(err, ENOMEM, "%s: out of memory", reader->file.path)
			       : chunk_file_damaged(&reader->file, reader->current->offset, err);
}

int file_reader_seek(struct file_reader *reader, struct store_window window, struct error *err)
{
	struct namings namings = {0};
	int ret = 0;

	reader->window = window;
	reader->tasks.len = 0;
	reader->next_task = reader->next_entry = 0;
	reader->current = NULL;
	reader->decoded = 0;
	reader->number = reader->before = 0;
	reader->left_out = (struct store_left_out){0};
	for (size_t i = 0; !ret && window.from_ts && i < reader->file.entries.len; i++) {
		const struct chunk_entry *entry = &reader->file.entries.data[i];

		if (entry->type == CHUNK_TASKS && entry->min_ts < window.from_ts)
			ret = keep_tasks(reader, &namings, entry, err);
	}
	map_free(&namings.tasks);
	map_free(&namings.tracks);
	map_free(&namings.thread_names);
	return ret;
}

uint64_t file_reader_next_ts(const struct file_reader *reader)
{
	uint64_t first = UINT64_MAX;

	if (reader->next_task < reader->tasks.len || reader->current)
		return 0;
	for (size_t i = reader->next_entry; i < reader->file.entries.len; i++) {
		const struct chunk_entry *entry = &reader->file.entries.data[i];

		if (entry->type == CHUNK_DATA && entry->max_ts >= reader->window.from_ts &&
		    entry->min_ts <= reader->window.to_ts && entry->min_ts < first)
			first = entry->min_ts;
	}
	return first < reader->window.from_ts ? reader->window.from_ts : first;
}

/* Loads the next data chunk of the window. Returns 1, 0 after the last one, or an error. */
static int next_chunk(struct file_reader *reader, struct error *err)
{
	while (reader->next_entry < reader->file.entries.len) {
		const struct chunk_entry *entry = &reader->file.entries.data[reader->next_entry++];
		struct cursor cursor;
		int ret;

		if (entry->type != CHUNK_DATA)
			continue;
		reader->before += entry->records;
		if (entry->max_ts < reader->window.from_ts || entry->min_ts > reader->window.to_ts)
			continue;
		ret = decoder_ready(reader, err)
			      ?: chunk_file_load(&reader->file, entry, &cursor, err);
		if (ret)
			return ret;
		decoder_begin(reader->decoder, cursor.at, (size_t)(cursor.end - cursor.at),
			      entry->records);
		reader->current = entry;
		reader->decoded++;
		return 1;
	}
	return 0;
}

static uint32_t site_number(const struct waffle_rec *rec)
{
	switch (rec->kind) {
	case WAFFLE_REC_HIT:
		return ((const struct waffle_rec_hit *)rec)->site;
	case WAFFLE_REC_SPAN_END:
		return ((const struct waffle_rec_span_end *)rec)->site;
	case WAFFLE_REC_RETURN:
		return ((const struct waffle_rec_return *)rec)->site;
	default:
		return WAFFLE_SITE_UNKNOWN;
	}
}

/* Whether a record is left out; counts it then. */
static bool is_left_out(struct file_reader *reader, const struct waffle_rec *rec)
{
	struct store_left_out *left_out = &reader->left_out;
	uint32_t site;

	if (!(reader->leave_out_kinds >> rec->kind & 1)) {
		if (!reader->leaves || !reader->has_leaves)
			return false;
		site = site_number(rec);
		if (site >= reader->site_count || !leaves_may_have(reader->sites[site]) ||
		    !leaves_has(reader->leaves, rec))
			return false;
	}
	left_out->records[rec->kind]++;
	if (rec->ts > left_out->last_ts[rec->kind])
		left_out->last_ts[rec->kind] = rec->ts;
	return true;
}

int file_reader_next(struct file_reader *reader, const struct waffle_rec **rec, struct error *err)
{
	if (reader->next_task < reader->tasks.len) {
		*rec = &reader->tasks.data[reader->next_task++].rec;
		return 1;
	}
	for (;;) {
		int ret = reader->current ? decoder_next(reader->decoder, rec) : 0;

		if (ret < 0)
			return decode_failed(reader, ret, err);
		if (ret)
			reader->number = reader->before - decoder_left(reader->decoder);
		if (ret && (*rec)->ts >= reader->window.from_ts &&
		    (*rec)->ts <= reader->window.to_ts && !is_left_out(reader, *rec))
			return 1;
		if (ret)
			continue;
		reader->current = NULL;
		ret = next_chunk(reader, err);
		if (ret <= 0)
			return ret;
	}
}

void file_reader_rest(struct file_reader *reader)
{
	decoder_free(reader->decoder);
	reader->decoder = NULL;
	reader->current = NULL;
	reader->next_entry = reader->file.entries.len;
	vec_free(&reader->tasks);
	chunk_file_rest(&reader->file);
}
