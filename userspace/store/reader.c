// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "store/chunkfile_internal.h"
#include "store/decode_internal.h"
#include "store/dictionary_internal.h"
#include "store/store.h"
#include "util/map.h"

struct store_reader {
	struct chunk_file file;
	struct dictionary dictionary;
	struct store_meta meta;
	struct decoder *decoder;
	uint64_t data_chunks;
	/* State of the walk over a window. */
	struct store_window window;
	VEC(struct waffle_rec_task) tasks; /* each thread's last task record before the window */
	size_t next_task, next_entry;
	const struct chunk_entry *current; /* chunk that is being decoded, or NULL */
	uint64_t decoded;
	/* Numbers: of the last record returned, and of the last one of the current chunk. */
	uint64_t number, before;
	int code; /* the error that ended the walk */
};

/* ---- opening ---- */

static int load_meta(struct store_reader *reader, struct error *err)
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

typedef int (*dictionary_get_fn)(struct dictionary *dictionary, struct cursor *cursor,
				 uint32_t count);

/* Chunks that are read when the file is opened. Data is read on demand, and unknown types are
 * ignored: a later minor version may add some. */
static const dictionary_get_fn dictionary_get[CHUNK_TYPE_COUNT] = {
	[CHUNK_STRINGS] = dictionary_get_strings,
	[CHUNK_SITES] = dictionary_get_sites,
	[CHUNK_PROCESSES] = dictionary_get_processes,
	[CHUNK_STACKS] = dictionary_get_stacks,
	[CHUNK_OBJECTS] = dictionary_get_objects,
	[CHUNK_MAPPINGS] = dictionary_get_mappings,
	[CHUNK_SYMBOLS] = dictionary_get_symbols,
	[CHUNK_NAMES] = dictionary_get_names,
	[CHUNK_TIMED_NAMES] = dictionary_get_timed_names,
	[CHUNK_RANKS] = dictionary_get_ranks,
	[CHUNK_HOSTS] = dictionary_get_hosts,
};

/* Older writers did not limit their tables. A large file may use more memory than a small one,
 * whatever its chunks decompress to. */
#define TABLES_BYTES_A_BYTE 64

static int load_dictionaries(struct store_reader *reader, struct error *err)
{
	uint64_t in_proportion = reader->file.size * TABLES_BYTES_A_BYTE;

	if (in_proportion > reader->dictionary.bytes_max)
		reader->dictionary.bytes_max = in_proportion;
	for (size_t i = 0; i < reader->file.entries.len; i++) {
		const struct chunk_entry *entry = &reader->file.entries.data[i];
		struct cursor cursor;
		int ret;

		reader->data_chunks += entry->type == CHUNK_DATA;
		if (entry->type >= CHUNK_TYPE_COUNT || !dictionary_get[entry->type])
			continue;
		ret = chunk_file_load(&reader->file, entry, &cursor, err);
		if (ret)
			return ret;
		ret = dictionary_get[entry->type](&reader->dictionary, &cursor, entry->records);
		if (ret == -ENOMEM)
			return error_set(err, ENOMEM, "%s: out of memory", reader->file.path);
		if (ret)
			return chunk_file_damaged(&reader->file, entry->offset, err);
	}
	return 0;
}

/* A file without hosts is of the one that META describes. */
static int add_own_host(struct store_reader *reader, struct error *err)
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

static int make_decoder(struct store_reader *reader, struct error *err)
{
	bool done;

	reader->decoder = decoder_new();
	done = reader->decoder != NULL;
	if (done)
		decoder_set_lengths(reader->decoder, &reader->dictionary.lengths);
	for (size_t i = 0; done && i < reader->dictionary.sites.len; i++)
		done = decoder_add_site(reader->decoder, &reader->dictionary.sites.data[i]);
	return done ? 0 : error_set(err, ENOMEM, "%s: out of memory", reader->file.path);
}

int store_reader_open(struct store_reader **result, const char *path, struct error *err)
{
	struct store_reader *reader = calloc(1, sizeof(*reader));
	int ret;

	if (!reader || !dictionary_init(&reader->dictionary)) {
		free(reader);
		return error_set(err, ENOMEM, "%s: out of memory", path);
	}
	ret = chunk_file_open(&reader->file, path, err);
	if (!ret)
		ret = load_meta(reader, err);
	if (!ret)
		ret = load_dictionaries(reader, err);
	if (!ret)
		ret = add_own_host(reader, err);
	if (!ret)
		ret = make_decoder(reader, err);
	if (!ret)
		ret = store_reader_seek(reader, STORE_ALL, err);
	if (ret) {
		store_reader_close(reader);
		return ret;
	}
	*result = reader;
	return 0;
}

void store_reader_close(struct store_reader *reader)
{
	if (!reader)
		return;
	chunk_file_close(&reader->file);
	dictionary_free(&reader->dictionary);
	decoder_free(reader->decoder);
	vec_free(&reader->tasks);
	free(reader);
}

/* ---- contents ---- */

const struct store_meta *store_reader_meta(const struct store_reader *reader)
{
	return &reader->meta;
}

uint32_t store_reader_site_count(const struct store_reader *reader)
{
	return (uint32_t)reader->dictionary.sites.len;
}

const struct site_info *store_reader_site(const struct store_reader *reader, uint32_t index)
{
	return index < reader->dictionary.sites.len ? &reader->dictionary.sites.data[index] : NULL;
}

uint32_t store_reader_process_count(const struct store_reader *reader)
{
	return (uint32_t)reader->dictionary.processes.len;
}

const struct store_process *store_reader_process(const struct store_reader *reader, uint32_t index)
{
	return index < reader->dictionary.processes.len ? &reader->dictionary.processes.data[index]
							: NULL;
}

/* An entry of a table, or NULL. */
#define TABLE_AT(table, index)                                                                     \
	((index) < reader->dictionary.table.len ? &reader->dictionary.table.data[index] : NULL)

uint32_t store_reader_host_count(const struct store_reader *reader)
{
	return (uint32_t)reader->dictionary.hosts.len;
}

const struct store_host *store_reader_host(const struct store_reader *reader, uint32_t index)
{
	return TABLE_AT(hosts, index);
}

uint32_t store_reader_rank_count(const struct store_reader *reader)
{
	return (uint32_t)reader->dictionary.ranks.len;
}

const struct store_rank *store_reader_rank(const struct store_reader *reader, uint32_t index)
{
	return TABLE_AT(ranks, index);
}

int store_reader_set_clock(struct store_reader *reader, uint32_t host,
			   const struct store_clock *clock)
{
	if (host >= reader->dictionary.hosts.len ||
	    !(clock->drift >= -STORE_DRIFT_MAX && clock->drift <= STORE_DRIFT_MAX))
		return -EINVAL;
	reader->dictionary.hosts.data[host].clock = *clock;
	return 0;
}

const struct store_stack *store_reader_stack(const struct store_reader *reader, uint32_t number)
{
	return TABLE_AT(stacks, number - 1u);
}

const struct store_object *store_reader_object(const struct store_reader *reader, uint32_t number)
{
	return TABLE_AT(objects, number - 1u);
}

uint32_t store_reader_mapping_count(const struct store_reader *reader)
{
	return (uint32_t)reader->dictionary.mappings.len;
}

const struct store_mapping *store_reader_mapping(const struct store_reader *reader, uint32_t index)
{
	return TABLE_AT(mappings, index);
}

uint32_t store_reader_symbol_count(const struct store_reader *reader)
{
	return (uint32_t)reader->dictionary.symbols.len;
}

const struct store_symbol *store_reader_symbol(const struct store_reader *reader, uint32_t index)
{
	return TABLE_AT(symbols, index);
}

uint32_t store_reader_name_count(const struct store_reader *reader)
{
	return (uint32_t)reader->dictionary.names.len;
}

const struct store_name *store_reader_name(const struct store_reader *reader, uint32_t index)
{
	return TABLE_AT(names, index);
}

bool store_reader_truncated(const struct store_reader *reader, uint64_t *bytes)
{
	uint64_t unused = reader->file.size - reader->file.end;

	if (bytes)
		*bytes = unused;
	return !reader->file.finished || unused;
}

bool store_reader_newer(const struct store_reader *reader)
{
	return record_lengths_newer(&reader->dictionary.lengths);
}

uint64_t store_reader_skipped(const struct store_reader *reader)
{
	return reader->dictionary.skipped;
}

uint64_t store_reader_chunks(const struct store_reader *reader, uint64_t *decoded)
{
	if (decoded)
		*decoded = reader->decoded;
	return reader->data_chunks;
}

/* ---- reading a window ---- */

/* Keeps a task record, in place of an earlier one of the same thread. */
static int keep_task(struct store_reader *reader, struct map *by_tid,
		     const struct waffle_rec_task *task)
{
	uint32_t known = map_get(by_tid, task->rec.tid);

	if (known != MAP_NONE) {
		reader->tasks.data[known] = *task;
		return 0;
	}
	if (reader->tasks.len == STORE_TASKS_MAX)
		return -EBADMSG;
	if (!map_set(by_tid, task->rec.tid, (uint32_t)reader->tasks.len) ||
	    !vec_push(&reader->tasks, *task))
		return -ENOMEM;
	return 0;
}

static int keep_tasks(struct store_reader *reader, struct map *by_tid,
		      const struct chunk_entry *entry, struct error *err)
{
	const struct waffle_rec *rec;
	struct cursor cursor;
	int ret = chunk_file_load(&reader->file, entry, &cursor, err);

	if (ret)
		return ret;
	decoder_begin(reader->decoder, cursor.at, (size_t)(cursor.end - cursor.at), entry->records);
	while ((ret = decoder_next(reader->decoder, &rec)) > 0) {
		if (rec->kind != WAFFLE_REC_TASK)
			ret = -EBADMSG;
		else if (rec->ts < reader->window.from_ts)
			ret = keep_task(reader, by_tid, (const struct waffle_rec_task *)rec);
		if (ret < 0)
			break;
	}
	if (ret == -ENOMEM)
		return error_set(err, ENOMEM, "%s: out of memory", reader->file.path);
	return ret ? chunk_file_damaged(&reader->file, entry->offset, err) : 0;
}

int store_reader_seek(struct store_reader *reader, struct store_window window, struct error *err)
{
	struct map by_tid = {0};
	int ret = 0;

	reader->window = window;
	reader->tasks.len = 0;
	reader->next_task = reader->next_entry = 0;
	reader->current = NULL;
	reader->decoded = 0;
	reader->number = reader->before = 0;
	reader->code = 0;
	for (size_t i = 0; !ret && window.from_ts && i < reader->file.entries.len; i++) {
		const struct chunk_entry *entry = &reader->file.entries.data[i];

		if (entry->type == CHUNK_TASKS && entry->min_ts < window.from_ts)
			ret = keep_tasks(reader, &by_tid, entry, err);
	}
	map_free(&by_tid);
	reader->code = ret;
	return ret;
}

/* Loads the next data chunk of the window. Returns 1, 0 after the last one, or an error. */
static int next_chunk(struct store_reader *reader, struct error *err)
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
		ret = chunk_file_load(&reader->file, entry, &cursor, err);
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

static int next_record(struct store_reader *reader, const struct waffle_rec **rec,
		       struct error *err)
{
	for (;;) {
		int ret = reader->current ? decoder_next(reader->decoder, rec) : 0;

		if (ret < 0)
			return chunk_file_damaged(&reader->file, reader->current->offset, err);
		if (ret)
			reader->number = reader->before - decoder_left(reader->decoder);
		if (ret && (*rec)->ts >= reader->window.from_ts &&
		    (*rec)->ts <= reader->window.to_ts)
			return 1;
		if (ret)
			continue;
		reader->current = NULL;
		ret = next_chunk(reader, err);
		if (ret <= 0)
			return ret;
	}
}

int store_reader_next(struct store_reader *reader, const struct waffle_rec **rec, struct error *err)
{
	int ret;

	if (reader->code)
		return error_set(err, -reader->code, "%s: can't be read any further",
				 reader->file.path);
	if (reader->next_task < reader->tasks.len) {
		*rec = &reader->tasks.data[reader->next_task++].rec;
		return 1;
	}
	ret = next_record(reader, rec, err);
	if (ret < 0)
		reader->code = ret;
	return ret;
}

uint64_t store_reader_number(const struct store_reader *reader)
{
	return reader->number;
}
